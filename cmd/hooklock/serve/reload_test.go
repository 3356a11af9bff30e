package serve

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/idem"
)

// TestAReloadAndWhatRunsBesideDoNotMeet is for the race detector: the carrier drops requests while
// a reload puts another configuration in the place of the one before.
func TestAReloadAndWhatRunsBesideDoNotMeet(t *testing.T) {
	dir := t.TempDir()
	e := &cli.Environment{Stderr: io.Discard}
	defer e.Close()
	path := filepath.Join(dir, "sidecar.yaml")
	load := func(waiting int) *config.Loaded {
		text := fmt.Sprintf(
			"listen: 127.0.0.1:0\nadmin: {listen: \"127.0.0.1:0\"}\ndata_dir: %s\nlimits: {waiting: %d}\nroutes: [{name: a, path: /a}]\n", dir, waiting)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		loaded, err := wiring.Load(e, path, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		return loaded
	}
	loaded := load(10)
	s, err := Start(t.Context(), path, loaded, OpenLog(e, loaded), nil)
	if err != nil {
		t.Fatal(err)
	}
	next := &reading{loaded: load(11)}
	var carrier sync.WaitGroup
	var over atomic.Bool
	carrier.Go(func() {
		for !over.Load() {
			s.dropRequest(idem.NewExecutionID("w", "", [4]byte{1}), 0)
		}
	})
	if _, err := s.takeOver(path, next); err != nil {
		t.Error(err)
	}
	over.Store(true)
	carrier.Wait()
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}
