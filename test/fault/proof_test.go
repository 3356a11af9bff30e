package fault

import (
	"path/filepath"
	"strings"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/fault/cluster"
	"hooklock/test/testkit"
)

// killedBeforeTheRecord is a process that was killed when the whole answer of its service had come,
// and the record had not reached etcd. Its data directory is in the configuration.
func killedBeforeTheRecord(t *testing.T, policy string, change func(*stage)) *stage {
	t.Helper()
	etcd := etcdtest.Start(t)
	s := arranged(t, etcd, policy)
	s.config.DataDir = filepath.Join(t.TempDir(), "data")
	s.config.SessionTTL = longTTL
	if change != nil {
		change(s)
	}
	s.victim = cluster.StartReplica(t, programs, s.config)
	moment := answered(200, 0, func(s *stage) <-chan struct{} { return s.wire.SwallowRequest(settles) })(s)
	s.send()
	await(t, "the whole answer came", moment)
	s.victim.Kill()
	s.config.Endpoints = []string{etcd.Endpoint}
	return s
}

// ranOnce checks that a copy gets the status of the answer that the dead process had, and that the
// service saw the event once.
func (s *stage) ranOnce() {
	s.t.Helper()
	if a := s.copy(); a.String() != "200 replayed" || a.Body != "" {
		s.t.Errorf("a copy got %v %q", a, a.Body)
	}
	if runs := s.up.Of(s.delivery.Event); len(runs) != 1 {
		s.t.Errorf("the service saw the event %d times", len(runs))
	}
}

func (s *stage) ended() string {
	return s.journal.Await("the record", cluster.RecordOf(s.delivery.Event)).Value.Ended()
}

func TestWhatHadBeenAnsweredIsRecordedByTheNextProcessOnTheDirectory(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"retry", "block"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			s := killedBeforeTheRecord(t, policy, nil)
			s.healthy = cluster.StartReplica(t, programs, s.config)
			cluster.AwaitMore(t, s.healthy.Stderr, 0, `"session.predecessor_proved"`)
			s.ranOnce()
			if ended := s.ended(); ended != "SUCCESS executed" {
				t.Errorf("it ended as %s", ended)
			}
			if a := s.neighbour("another-event"); a.String() != "200 executed" {
				t.Errorf("the workflow's next event got %v", a)
			}
			counts := countsOf(t, s.healthy)["hook"]
			if counts.Succeeded != 2 {
				t.Errorf("of two events that succeeded %d were counted", counts.Succeeded)
			}
		})
	}
}

func TestARecordThatSaysUnknownIsCorrectedByTheFileOfTheDeadProcess(t *testing.T) {
	t.Parallel()
	s := killedBeforeTheRecord(t, "block", func(s *stage) { s.config.SessionTTL = ttl })
	elsewhere := s.config
	elsewhere.DataDir = ""
	s.healthy = cluster.StartReplica(t, programs, elsewhere)
	if ended := s.ended(); ended != "FAILED unknown" {
		t.Fatalf("it ended as %s", ended)
	}
	if a := s.copy(); a.Code != "outcome_unknown" {
		t.Fatalf("a copy got %v", a)
	}
	cluster.StartReplica(t, programs, s.config)
	testkit.Until(t, "a copy at another replica is answered", func() bool {
		return s.copy().String() == "200 replayed"
	})
	s.ranOnce()
}

func TestAnAttemptThatCameAfterTheDeadProcessIsNotRewritten(t *testing.T) {
	t.Parallel()
	s := killedBeforeTheRecord(t, "retry", func(s *stage) { s.config.SessionTTL = ttl })
	elsewhere := s.config
	elsewhere.DataDir = ""
	s.healthy = cluster.StartReplica(t, programs, elsewhere)
	testkit.Until(t, "the event runs again", func() bool { return s.copy().String() == "200 executed" })
	late := cluster.StartReplica(t, programs, s.config)
	testkit.Until(t, "the file of the dead process is gone", func() bool {
		all, err := filepath.Glob(filepath.Join(s.config.DataDir, "outcomes", "process-*"))
		return err == nil && len(all) == 1
	})
	if n := cluster.Count(late.Stderr, `"session.predecessor_proved"`); n != 0 {
		t.Errorf("%d proofs were used", n)
	}
	runs := s.up.Of(s.delivery.Event)
	if a := s.copy(); a.String() != "200 replayed" || a.Body != runs[len(runs)-1].Receipt() {
		t.Errorf("a copy got %v %q", a, a.Body)
	}
}

func TestAnAcceptedEventThatHadBeenAnsweredDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	s := killedBeforeTheRecord(t, "retry", func(s *stage) {
		s.config.Routes = cluster.Route("hook", "lock: {release_delay: 0s}, park: {enabled: true, "+absent+"}")
	})
	s.healthy = cluster.StartReplica(t, programs, s.config)
	cluster.AwaitMore(t, s.healthy.Stderr, 0, `"session.predecessor_proved"`)
	if a := s.sent(); !strings.HasPrefix(a.String(), "202") {
		t.Errorf("the sender got %v", a)
	}
	s.ranOnce()
	if left := s.journal.Left("requests/"); len(left) != 0 {
		t.Errorf("its stored request is left: %v", left)
	}
}
