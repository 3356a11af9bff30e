package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"hooklock/test/fault/cluster"
	"hooklock/test/testkit"
)

// smallDisk is a file system of 200 MiB; etcd's log alone takes 128 of them.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	dir := t.TempDir()
	if err := unix.Mount("hooklock-fault", dir, "tmpfs", 0, "size=200m"); err != nil {
		t.Skipf("cannot mount a small file system here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// fill writes to a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("fill the disk: %v", err)
	}
}

func TestAFullDiskUnderTheEmbeddedEtcdIsSaidAndLosesNothingRecorded(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t)
	up := cluster.NewUpstream(t)
	large := strings.Repeat("x", 60<<10)
	up.Always(func(x *cluster.Exchange) bool {
		return x.ReadBody() == nil && x.Effect() && x.Answer(200, x.Receipt()+large) == nil
	})
	config := cluster.Config{Upstream: up.Addr, DataDir: filepath.Join(disk, "data"), SessionTTL: ttl}
	r := cluster.StartReplica(t, programs, config)
	sender := cluster.NewSender()
	filler := filepath.Join(disk, "filler")
	settled := map[string]cluster.Answer{}
	sent := 0
	for range 20 {
		event := next(&sent)
		settled[event] = sender.Send(context.Background(), r.Door, numbered(sent))
	}
	fill(t, filler)

	var odd cluster.Answer
	for odd.Status == 0 && !odd.Cut && sent < 3000 {
		event := next(&sent)
		if a := sender.Send(context.Background(), r.Door, numbered(sent)); a.Settled() {
			settled[event] = a
		} else {
			odd = a
		}
	}
	if odd.Status == 0 && !odd.Cut {
		t.Fatalf("the disk is full and %d events were recorded all the same", len(settled))
	}
	t.Logf("%d events were recorded; then a sender saw %v", len(settled), odd)
	testkit.Until(t, "the log names the reason", func() bool {
		return strings.Contains(r.Stderr.String(), "no space left on device")
	})
	r.Kill()

	second := cluster.BeginFailing(t, programs, config)
	if code := second.ExitCode(t); code == 0 {
		t.Error("a start on a full disk ends with code 0")
	}
	if said := second.Stderr.String(); !strings.Contains(said, "no space left on device") ||
		!strings.Contains(said, "free some space") {
		t.Errorf("a start on a full disk says:\n%s", said)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	r = cluster.StartReplica(t, programs, config)
	for event, first := range settled {
		d := numbered(0)
		d.Event = event
		if a := sender.Send(context.Background(), r.Door, d); a.String() != "200 replayed" || a.Body != first.Body {
			t.Errorf("%s was recorded before the disk was full, and gets %v now", event, a)
		}
	}
	r.Signal(t, unix.SIGTERM)
	if code := r.ExitCode(t); code != 0 {
		t.Errorf("the process ends with code %d", code)
	}
}

func next(n *int) string {
	*n++
	return numbered(*n).Event
}

func numbered(n int) cluster.Delivery {
	return cluster.Delivery{Route: "hook", Workflow: "w", Event: fmt.Sprintf("event-%d", n), Body: []byte("{}")}
}
