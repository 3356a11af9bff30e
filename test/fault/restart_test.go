package fault

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/fault/cluster"
	"hooklock/test/testkit"
)

// longTTL is longer than any of these tests takes: what ends a session in them is no lease that
// expires.
const longTTL = 10 * time.Minute

// inPlace is processes that run one after the other, or together, with one data directory.
type inPlace struct {
	*stage
	finish func() // ends the call that began
}

// startInPlace starts a process in data and lets it begin a call.
func startInPlace(t *testing.T, data string) *inPlace {
	t.Helper()
	etcd := etcdtest.Start(t)
	s := arranged(t, etcd, "retry")
	s.config.Endpoints, s.config.SessionTTL, s.config.DataDir = []string{etcd.Endpoint}, longTTL, data
	s.victim = cluster.StartReplica(t, programs, s.config)
	running, over := s.works()
	finish := sync.OnceFunc(func() { close(over) })
	t.Cleanup(finish)
	s.send()
	await(t, "the call begins", running)
	return &inPlace{s, finish}
}

// again starts another process like the first one.
func (s *inPlace) again(change func(*cluster.Config)) *cluster.Replica {
	s.t.Helper()
	c := s.config
	if change != nil {
		change(&c)
	}
	return cluster.StartReplica(s.t, programs, c)
}

// keeps checks that the first process still has its session and its lock: its call ends as if
// nothing had been.
func (s *inPlace) keeps(sessions int) {
	s.t.Helper()
	if n := len(s.journal.Left("sessions/")); n != sessions {
		s.t.Errorf("%d sessions are left of %d processes that live", n, sessions)
	}
	s.finish()
	if a := s.sent(); a.String() != "200 executed" {
		s.t.Errorf("the call of a living process ended with %v", a)
	}
	if runs := s.up.Of(s.delivery.Event); len(runs) != 1 {
		s.t.Errorf("the service saw the event %d times", len(runs))
	}
}

// next returns when the workflow's next event has run at r.
func (s *inPlace) next(r *cluster.Replica) {
	s.t.Helper()
	s.healthy = r
	testkit.Until(s.t, "the workflow's next event runs", func() bool {
		return s.neighbour("another-event").String() == "200 executed"
	})
}

func TestAProcessThatIsStartedAgainFreesWhatItsPredecessorHeld(t *testing.T) {
	t.Parallel()
	s := startInPlace(t, filepath.Join(t.TempDir(), "data"))
	s.victim.Kill()
	began := time.Now()
	r := s.again(nil)
	s.next(r)
	t.Logf("the next event ran %.2f s after the restart", time.Since(began).Seconds())
	record := s.journal.Await("the record of the dead process's event", cluster.RecordOf(s.delivery.Event))
	if ended := record.Value.Ended(); ended != "FAILED unknown" {
		t.Errorf("it ended as %s", ended)
	}
	if n := len(s.journal.Left("sessions/")); n != 1 {
		t.Errorf("%d sessions are left of one process", n)
	}
	cluster.AwaitMore(t, r.Stderr, 0, `"session.predecessor_ended"`)
}

// Two processes share a data directory while one replaces the other: the one that stays needs no
// restart.
func TestAProcessFreesWhatAnotherOneOnItsDirectoryHeldWhenThatIsKilled(t *testing.T) {
	t.Parallel()
	s := startInPlace(t, filepath.Join(t.TempDir(), "data"))
	r := s.again(nil)
	if n := len(s.journal.Left("sessions/")); n != 2 {
		t.Errorf("%d sessions are left of two processes that live", n)
	}
	s.victim.Kill()
	s.next(r)
}

func TestAStartOnTheDirectoryOfALivingProcessLeavesItsSessionAlone(t *testing.T) {
	t.Parallel()
	s := startInPlace(t, filepath.Join(t.TempDir(), "data"))
	s.again(nil)
	s.keeps(2)
}

// Nothing tells a frozen process from a busy one but its lock.
func TestAStartOnTheDirectoryOfAFrozenProcessLeavesItsSessionAlone(t *testing.T) {
	t.Parallel()
	s := startInPlace(t, filepath.Join(t.TempDir(), "data"))
	s.victim.Signal(t, unix.SIGSTOP)
	s.again(nil)
	s.victim.Signal(t, unix.SIGCONT)
	s.keeps(2)
}

// A backup, or the disk of a machine that was cloned: nothing locks the copy of a file whose owner
// lives elsewhere.
func TestAStartOnACopyOfADirectoryEndsNoSession(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	s := startInPlace(t, data)
	twin := filepath.Join(t.TempDir(), "twin")
	if err := os.CopyFS(twin, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	if found, _ := filepath.Glob(filepath.Join(twin, "outcomes", "process-*")); len(found) != 1 {
		t.Fatalf("the copy has %v", found)
	}
	s.again(func(c *cluster.Config) { c.DataDir = twin })
	s.keeps(2)
}

// The same machine, directory and file, but another place in etcd: its sessions are not this
// process's affair.
func TestAStartWithAnotherPrefixEndsNoSession(t *testing.T) {
	t.Parallel()
	s := startInPlace(t, filepath.Join(t.TempDir(), "data"))
	s.victim.Kill()
	s.again(func(c *cluster.Config) { c.Prefix = "/elsewhere" })
	if n := len(s.journal.Left("sessions/")); n != 1 {
		t.Errorf("%d sessions are left below the first prefix", n)
	}
	s.next(s.again(nil)) // and what it left is found by one with that prefix
}

// Without its file a process runs as before, and says once what that costs.
func TestAProcessWithoutAFileOfItsOwnSaysSoOnce(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t)
	full := filepath.Join(smallDisk(t), "data")
	if err := os.Mkdir(full, 0o700); err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(full, "filler"))
	inTheWay := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, dir, says string }{
		{"full disk", full, "no space left on device"},
		{"no directory", inTheWay, "not a directory"},
		{"not configured", "-", "data_dir is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := cluster.Config{Endpoints: []string{etcd.Endpoint},
				Prefix: "/" + strings.ReplaceAll(c.name, " ", "-"), Upstream: cluster.NewUpstream(t).Addr,
				DataDir: c.dir}
			r := cluster.StartReplica(t, programs, config)
			line := r.AwaitLine(t, r.Stderr, `"session.file_unusable"`)
			if !strings.Contains(line, c.says) {
				t.Errorf("it says %s", line)
			}
			if a := cluster.NewSender().Send(context.Background(), r.Door, numbered(1)); a.String() != "200 executed" {
				t.Errorf("a delivery got %v", a)
			}
			r.Signal(t, unix.SIGTERM)
			if code := r.ExitCode(t); code != 0 {
				t.Errorf("the process ends with code %d", code)
			}
			if n := cluster.Count(r.Stderr, `"session.file_unusable"`); n != 1 {
				t.Errorf("it says so %d times", n)
			}
		})
	}
}

// A process that ends leaves no file, and one that was killed leaves it to its successor.
func TestAProcessThatEndsTakesItsFileAlong(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	s := startInPlace(t, data)
	s.victim.Kill()
	r := s.again(nil)
	s.next(r)
	r.Signal(t, unix.SIGTERM)
	if code := r.ExitCode(t); code != 0 {
		t.Errorf("the process ends with code %d", code)
	}
	left, err := os.ReadDir(filepath.Join(data, "outcomes"))
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
