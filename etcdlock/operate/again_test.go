package operate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// archive has the request of each event.
func archive(context.Context, *idem.Record, idem.ExecutionID) (idem.StoredRequest, *idem.ParkedEntry, error) {
	return idem.StoredRequest{Value: []byte("request"), Bytes: 7}, &idem.ParkedEntry{MaxAge: time.Hour}, nil
}

// settledEvent returns the lock of an event that has been settled with 201.
func settledEvent(t *testing.T, s *etcdlock.Store, workflow, event string) *idem.Lock {
	t.Helper()
	h := mustClaim(t, s, lockFor(workflow, event), 0)
	l := h.Lock()
	end := success("first")
	end.Answer.Status = 201
	if _, err := h.Settle(within(t, patience), end); err != nil {
		t.Fatal(err)
	}
	return l
}

// seenBy returns what a delivery of the event of l sees.
func seenBy(t *testing.T, s *etcdlock.Store, l *idem.Lock) *idem.Obstacle {
	t.Helper()
	held, seen, err := s.Claim(within(t, patience), lockFor(l.Workflow, l.EventID), 0)
	if err != nil || held != nil || seen == nil {
		t.Fatalf("claimed %v, %v", held, err)
	}
	return seen
}

func TestASettledEventRunsAgainAndTheNewestAnswerCounts(t *testing.T) {
	e := etcdtest.Start(t)
	var mu sync.Mutex
	forgotten := map[idem.ExecutionID]int{}
	heard := func(id idem.ExecutionID) {
		mu.Lock()
		defer mu.Unlock()
		forgotten[id]++
	}
	a := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}, Archived: archive, OnForget: heard})
	_ = openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}, OnForget: heard})
	l := settledEvent(t, a, "w", "event")
	if _, err := a.Rerun(within(t, patience), l.Execution, nil); !errors.Is(err, idem.ErrNoRequest) {
		t.Fatalf("without a word it ran again: %v", err)
	}
	f, err := a.RunAgain(within(t, patience), l.Execution, nil)
	if err != nil || !f.InQueue || f.Lock.Attempt != 2 || !f.Lock.SettledBefore() ||
		f.Lock.Parked.On != idem.ParkAgain ||
		f.Lock.Earlier[0].AnswerStatus != 201 {
		t.Fatalf("%+v %v", f, err)
	}
	eventually(t, "both replicas drop what they remember", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return forgotten[l.Execution] == 2
	})
	if _, err := a.RunAgain(within(t, patience), l.Execution, nil); !errors.Is(err, idem.ErrAlive) {
		t.Fatalf("a second time: %v", err)
	}
	if seen := seenBy(t, a, l); !seen.Runs(l.Key) || !seen.Record.Settled() {
		t.Fatalf("while it waits a copy sees %+v", seen)
	}
	h := takeNext(t, a).Running
	mustAttempt(t, h)
	if seen := seenBy(t, a, l); !seen.Runs(l.Key) {
		t.Fatalf("while it runs a copy sees %+v", seen)
	}
	if _, err := h.Settle(within(t, patience), success("second")); err != nil {
		t.Fatal(err)
	}
	seen := seenBy(t, a, l)
	if r := seen.Record; seen.Runs(l.Key) || string(r.Answer.Body) != "second" || r.Execution != f.Lock.Execution ||
		r.Attempt != 2 || r.Earlier[0].Execution != l.Execution {
		t.Fatalf("%+v", seen.Record)
	}
}

// What becomes of the attempt that a person asked for, it lets no copy run.
func TestAnEventThatRunsAgainStaysSettledWhateverComesOfIt(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}, Archived: archive})
	for name, ends := range map[string]func(t *testing.T, id idem.ExecutionID){
		"cancelled while it waits": func(t *testing.T, id idem.ExecutionID) {
			if _, _, err := s.Cancel(within(t, patience), id, byOps(false), nil); err != nil {
				t.Fatal(err)
			}
		},
		"forced open while it runs": func(t *testing.T, id idem.ExecutionID) {
			h := takeNext(t, s).Running
			mustAttempt(t, h)
			if _, err := s.ForceRelease(within(t, patience), h.Lock().Workflow, id, byOps(false), nil); err != nil {
				t.Fatal(err)
			}
		},
		"a dead letter of unknown outcome": func(t *testing.T, _ idem.ExecutionID) {
			h := takeNext(t, s).Running
			mustAttempt(t, h)
			end := idem.End{Status: idem.Failed, Outcome: idem.Unknown, RequestKept: true, FinishedAt: time.Now(),
				Error: &idem.Failure{Code: "upstream_failed"}}
			if _, err := h.Settle(within(t, patience), end); err != nil {
				t.Fatal(err)
			}
		},
		"a failure that is not kept": func(t *testing.T, _ idem.ExecutionID) {
			h := takeNext(t, s).Running
			mustAttempt(t, h)
			end := idem.End{
				Status: idem.Failed, Outcome: idem.Executed, FinishedAt: time.Now(),
				Error:  &idem.Failure{Code: idem.CodeUpstreamStatus},
				Answer: &idem.Answer{Status: 500},
			}
			if _, err := h.Settle(within(t, patience), end); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := settledEvent(t, s, "w "+name, "event")
			f, err := s.RunAgain(within(t, patience), l.Execution, nil)
			if err != nil {
				t.Fatal(err)
			}
			ends(t, f.ID())
			r := seenBy(t, s, l).Record
			if r.Execution != f.ID() || r.Status == idem.Success || !r.Settled() || r.Answer == nil ||
				r.Answer.Status != 201 {
				t.Fatalf("%+v", r)
			}
			again, err := s.RunAgain(within(t, patience), f.ID(), nil)
			if err != nil || len(again.Lock.Earlier) != 2 || !again.Lock.SettledBefore() {
				t.Fatalf("%+v %v", again, err)
			}
			if _, _, err := s.Cancel(within(t, patience), again.ID(), byOps(false), nil); err != nil {
				t.Fatal(err)
			}
			if r := seenBy(t, s, l).Record; !r.Settled() || r.Answer.Status != 201 {
				t.Fatalf("after the second: %+v", r)
			}
		})
	}
}

func TestWhatWasCancelledForGoodDoesNotRunAgain(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}, Archived: archive})
	l := parkedLock("w", "event")
	mustPark(t, s, l, 0)
	if _, _, err := s.Cancel(within(t, patience), l.Execution, byOps(true), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RunAgain(within(t, patience), l.Execution, nil); !errors.Is(err, idem.ErrCancelled) {
		t.Fatal(err)
	}
}

func TestAnEventWithoutARequestDoesNotRunAgain(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	l := settledEvent(t, s, "w", "event")
	if _, err := s.RunAgain(within(t, patience), l.Execution, nil); !errors.Is(err, idem.ErrNoRequest) {
		t.Fatal(err)
	}
}
