package embedded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A disk that lost what it had said it kept, or a copy of the files of a process that ran, can have
// a database that is newer than the log.
func TestSaysThatTheLogEndsBeforeTheDatabase(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "data")
	s := startIn(t, dir)
	logs, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%v %v", logs, err)
	}
	early, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := s.Client().Put(ctx, fmt.Sprint("k", i), "v"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(logs[0], early, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := Start(Options{Dir: dir})
	if err == nil {
		_ = again.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "hooklock embedded restore") {
		t.Fatalf("got %v", err)
	}
}

// A log comes back in parts, and a machine that is busy takes its time between them, or is stopped
// itself: whoever took that for a loss would advise to replace records that are there.
func TestALogThatStillComesBackIsNotBehindItsDatabase(t *testing.T) {
	log := &catchUp{kept: 100, first: 10}
	for has := uint64(10); has <= 101; has += 7 {
		for range standstill - 1 {
			if err := log.checkProgress(has); err != nil {
				t.Fatalf("%d of 100: %v", has, err)
			}
		}
	}
	log = &catchUp{kept: 100, first: 10}
	for range 2 * standstill {
		if err := log.checkProgress(10); err != nil {
			t.Fatalf("it has not begun: %v", err)
		}
	}
	for look := 1; ; look++ {
		if err := log.checkProgress(41); err != nil && look == standstill {
			break
		} else if err != nil || look > standstill {
			t.Fatalf("look %d at a log that goes on no more: %v", look, err)
		}
	}
}
