package callback_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func TestGuardLetsTheHolderGoOnAtAnyReplicaAndRecordsItsSteps(t *testing.T) {
	_, a, b := replicas(t)
	held := mustClaim(t, a, withKey(lockFor("w", "one")), 0)
	cb := callbackOf(held.Lock())
	plan := []string{"fetch", "charge", "mail"}
	for i, step := range []string{"", "fetch", "fetch", "charge", ""} {
		for _, s := range []*etcdlock.Store{a, b} {
			found, err := s.Guard(within(t, patience), cb, step, plan)
			if err != nil || found.Status() != idem.Running {
				t.Fatalf("step %d %q: %+v %v", i, step, found, err)
			}
		}
	}
	rec, err := held.Settle(within(t, patience), success(""))
	if err != nil || stepsOf(rec.Steps) != "fetch done, charge done" {
		t.Fatalf("%s %v", stepsOf(rec.Steps), err)
	}
	for _, step := range rec.Steps {
		if step.StartedAt.IsZero() || step.FinishedAt.Before(step.StartedAt) {
			t.Errorf("%+v", step)
		}
	}
	if found, err := b.Guard(within(t, patience), cb, "late", nil); !errors.Is(err, idem.ErrFinished) ||
		found.Status() != idem.Success {
		t.Fatalf("after its end: %+v %v", found, err)
	}
}

func TestTheTokenOfAnEarlierAttemptIsStale(t *testing.T) {
	_, a, b := replicas(t)
	first := mustClaim(t, a, withKey(lockFor("w", "one")), 0)
	rec, err := first.Settle(within(t, patience), failure())
	if err != nil {
		t.Fatal(err)
	}
	again := withKey(lockFor("w", "one"))
	again.Attempt, again.Earlier = 2, []idem.Attempt{rec.AsAttempt()}
	second := mustClaim(t, a, again, rec.Revision)
	if _, err := b.Guard(within(t, patience), callbackOf(first.Lock()), "", nil); !errors.Is(err, idem.ErrFinished) {
		t.Fatalf("while its record is there: %v", err)
	}
	mustSettle(t, second)
	if _, err := b.Guard(within(t, patience), callbackOf(first.Lock()), "", nil); !errors.Is(err, idem.ErrStaleToken) {
		t.Fatalf("got %v", err)
	}
}

// roomToEnd is how many bytes steps leave free in a lock.
const roomToEnd = 16 << 10

func TestStepsAreBounded(t *testing.T) {
	_, a, b := replicas(t)
	held := mustClaim(t, a, withKey(lockFor("w", "one")), 0)
	cb := callbackOf(held.Lock())
	if _, err := b.Guard(within(t, patience), cb, "one",
		[]string{strings.Repeat("x", protocol.MaxLockBytes-roomToEnd)}); !errors.Is(err, idem.ErrTooManySteps) {
		t.Fatalf("got %v", err)
	}
	if _, err := b.Guard(within(t, patience), cb, "one", make([]string, 1000)); !errors.Is(err,
		idem.ErrTooManySteps) {
		t.Fatalf("got %v", err)
	}
	mustCancel(t, b, cb.Execution, idem.Cancel{By: strings.Repeat("\x01", idem.MaxReason),
		Reason: strings.Repeat("\x01", idem.MaxReason), At: time.Now()})
}

func TestAHeldExecutionIsCompletedAtAnyReplicaAndItsAnswerIsWhatDuplicatesGet(t *testing.T) {
	_, a, b := replicas(t)
	for name, c := range map[string]struct {
		final idem.Final
		want  string
	}{
		"with an answer": {idem.Final{Status: idem.Success, Answer: &idem.Answer{Status: 201,
			Header: []idem.HeaderField{{Name: "X-a", Value: "b"}}, Body: []byte("done")}},
			"SUCCESS kept 201 4 true done"},
		"without an answer": {idem.Final{Status: idem.Success}, "SUCCESS kept 200 0 true "},
		"with a long answer": {idem.Final{Status: idem.Success,
			Answer: &idem.Answer{Status: 201, Body: make([]byte, 2<<10)}},
			"SUCCESS kept 201 2048 false "},
		"failed": {idem.Final{Status: idem.Failed,
			Error: &idem.Failure{Code: "no_stock", Detail: "sold out"}}, "FAILED no_stock"},
		"failed, with no word": {idem.Final{Status: idem.Failed}, "FAILED upstream_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			held := mustHold(t, a, withKey(lockFor(name, "one")), time.Minute)
			cb := callbackOf(held.Lock())
			if _, seen, err := tryClaim(t, a, lockFor(name, "one"), 0); err != nil || seen.Lock == nil ||
				!seen.Lock.Held {
				t.Fatalf("a duplicate during the hold sees %+v %v", seen, err)
			}
			found, err := b.Complete(within(t, patience), cb, c.final)
			if err != nil {
				t.Fatal(err)
			}
			_, seen, err := tryClaim(t, a, lockFor(name, "one"), 0)
			if err != nil || seen.Lock != nil || seen.Record == nil || seen.Record.Revision != found.Record.Revision {
				t.Fatalf("a duplicate sees %+v %v", seen, err)
			}
			r := seen.Record
			got := string(r.Status)
			if r.Remembered {
				got += fmt.Sprintf(" kept %d %d %v %s", r.Answer.Status, r.Answer.Bytes, r.Answer.Whole, r.Answer.Body)
			} else {
				got += " " + r.Error.Code
			}
			if got != c.want || r.Outcome != idem.Executed || r.Abort != nil {
				t.Errorf("%s, want %s: %+v", got, c.want, r)
			}
			if found, err := a.Complete(within(t, patience), cb, idem.Final{Status: idem.Failed}); !errors.Is(err,
				idem.ErrFinished) || found.Status() != r.Status {
				t.Errorf("again: %+v %v", found, err)
			}
			if found, err := a.Heartbeat(within(t, patience), cb, 0); !errors.Is(err, idem.ErrFinished) ||
				found.Status() != r.Status {
				t.Errorf("heartbeat: %+v %v", found, err)
			}
		})
	}
}

func TestHeartbeatsKeepAHoldUntilMaxDuration(t *testing.T) {
	t.Parallel()
	_, a, b := replicas(t)
	l := withKey(lockFor("w", "one"))
	l.MaxDuration = 8 * time.Second
	held := mustHold(t, a, l, 4*time.Second)
	cb, end := callbackOf(held.Lock()), l.StartedAt.Add(l.MaxDuration)
	beats := 0
	eventually(t, "no heartbeat is of any help", func() bool {
		found, err := b.Heartbeat(within(t, patience), cb, time.Hour)
		if err != nil {
			return errors.Is(err, idem.ErrFinished)
		}
		beats++
		if found.Lock.HoldUntil.After(end.Add(30 * time.Second)) {
			t.Fatalf("held until %v, and its max_duration ends at %v", found.Lock.HoldUntil, end)
		}
		return false
	})
	r := mustFind(t, b, cb.Execution).Record
	if r.Status != idem.Aborted || r.Abort.By != "policy" || r.FinishedAt.Before(end.Add(-time.Second)) ||
		r.FinishedAt.After(end.Add(30*time.Second)) || beats == 0 {
		t.Errorf("%+v after %d heartbeats, max_duration at %v", r, beats, end)
	}
}

func TestAHeartbeatLeavesNoLeaseBehind(t *testing.T) {
	e, a, b := replicas(t)
	held := mustHold(t, a, withKey(lockFor("w", "one")), time.Minute)
	leases := func() int {
		got, err := e.Client.Leases(within(t, patience))
		if err != nil {
			t.Fatal(err)
		}
		return len(got.Leases)
	}
	before := leases()
	for range 5 {
		if _, err := b.Heartbeat(within(t, patience), callbackOf(held.Lock()), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the leases before are gone", func() bool { return leases() == before })
	if _, err := b.Complete(within(t, patience), callbackOf(held.Lock()),
		idem.Final{Status: idem.Success}); err != nil {
		t.Fatal(err)
	}
}

func TestACancelReachesAHeldExecutionByItsNextCallback(t *testing.T) {
	_, a, b := replicas(t)
	held := mustHold(t, a, withKey(lockFor("w", "one")), time.Minute)
	cb := callbackOf(held.Lock())
	if _, err := a.Guard(within(t, patience), cb, "one", nil); err != nil {
		t.Fatal(err)
	}
	found := mustCancel(t, b, cb.Execution, byOps(true))
	if found.Status() != idem.CancelRequested || !found.Lock.Held {
		t.Fatalf("%+v", found)
	}
	if found, err := a.Guard(within(t, patience), cb, "two", nil); !errors.Is(err, idem.ErrCancelled) ||
		found.Status() != idem.CancelRequested {
		t.Fatalf("%+v %v", found, err)
	}
	if found, err := a.Heartbeat(within(t, patience), cb, 0); !errors.Is(err, idem.ErrCancelled) ||
		found.Status() != idem.CancelRequested {
		t.Fatalf("%+v %v", found, err)
	}
	// What was done was done, and the event never runs again all the same.
	if found, err := a.Complete(within(t, patience), cb, idem.Final{Status: idem.Failed}); err != nil ||
		found.Status() != idem.Failed || !found.Record.Final {
		t.Fatalf("%+v %v", found, err)
	}
}

func TestAHeartbeatOfWhatAProcessStillRunsExtendsNothing(t *testing.T) {
	_, a, b := replicas(t)
	held := mustClaim(t, a, withKey(lockFor("w", "one")), 0)
	found, err := b.Heartbeat(within(t, patience), callbackOf(held.Lock()), time.Hour)
	if err != nil || found.Lock.Held || found.Lock.Revision != held.Lock().Revision {
		t.Fatalf("%+v %v", found, err)
	}
}
