package worker

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hooklock/idem"
	"hooklock/idem/guard"
)

// carriedLock is a parked execution of which the first answers of the ledger get lost after it was
// written.
type carriedLock struct {
	oneLock
	lost  int
	rests int
}

func (c *carriedLock) RecordTry(_ context.Context, p idem.Parked) error {
	c.rests++
	last := *p.Last
	last.At = last.At.UTC().Round(time.Millisecond)
	p.Last = &last
	c.lock.Parked = &p
	if c.rests <= c.lost {
		return idem.ErrStoreUnavailable
	}
	return nil
}

// TestATryCountsOnce: also where the answer got lost of the ledger that has written its end, and
// that is written again.
func TestATryCountsOnce(t *testing.T) {
	for lost := range 3 {
		synctest.Test(t, func(t *testing.T) {
			held := &carriedLock{lost: lost}
			held.lock.Parked = &idem.Parked{Tries: 2, Failures: 1, Trying: true,
				Last: &idem.Evidence{Outcome: idem.Unknown, Code: "upstream_failed", At: time.Now().Add(-time.Minute)}}
			g := guard.New(guard.Options{Ledger: held, Base: t.Context()})
			r := &run{worker: New(Options{Guard: g}), running: g.Resume(held), wake: make(chan struct{}, 1)}
			tried := &guard.Tried{Answer: &idem.Answer{Status: 503}, Failure: idem.Failure{Code: "upstream_status"}}
			if r.writePause(tried, nextStep{kind: idem.ToTryAgain, failed: true}, testPolicy()) ||
				held.lock.Parked.Failures != 2 || len(held.lock.Parked.Failed) != 1 || held.rests != lost+1 {
				t.Errorf("%d answers lost: %+v after %d writes", lost, held.lock.Parked, held.rests)
			}
		})
	}
}

// settledLock is a parked execution whose end is a dead letter, because an operator has skipped it
// meanwhile.
type settledLock struct {
	carriedLock
	kept bool
}

func (s *settledLock) Settle(context.Context, idem.End) (*idem.Record, error) {
	return &idem.Record{End: idem.End{RequestKept: s.kept}}, nil
}

// TestTheBytesOfADeadLetterStay, whatever its end was to be. Those of another one go when the next
// one of its workflow may already run: a disk may hang.
func TestTheBytesOfADeadLetterStay(t *testing.T) {
	for _, kept := range []bool{true, false} {
		held := &settledLock{kept: kept}
		held.lock.Parked, held.lock.Scope = &idem.Parked{Tries: 1}, idem.Scope{Workflow: "w"}
		g := guard.New(guard.Options{Ledger: held, Base: t.Context(), Cache: guard.NewCache(0)})
		dropped := false
		w := New(Options{Guard: g, Ledger: roomy{}, Drop: func(idem.ExecutionID, int64) {
			dropped = true
			if a := g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: "k"},
				Policy: testPolicy()}); a.Execution == nil {
				t.Errorf("the lock is still held: %+v", a.Verdict)
			}
		}})
		r := &run{worker: w, running: g.Resume(held), wake: make(chan struct{}, 1)}
		r.settleSuperseded(&idem.Stale{})
		if r.cleanUp(); dropped == kept {
			t.Errorf("the request is kept: %v, and its bytes are dropped: %v", kept, dropped)
		}
	}
}

// agedLock is a parked execution to which an operator has just given its time again: the ledger
// knows, and what it hears of ages comes later.
type agedLock struct {
	carriedLock
	idem.ParkLedger
	heard time.Time // from when on it is not old
	ends  int
}

func (a *agedLock) IsTooOld(idem.ExecutionID) bool { return time.Now().Before(a.heard) }

func (a *agedLock) Settle(context.Context, idem.End) (*idem.Record, error) {
	a.ends++
	return nil, idem.ErrNotOld
}

// TestAnExecutionThatRunNowReleasesIsTried, also where its carrier had found it too old just
// before, and goes on hearing so for a moment.
func TestAnExecutionThatRunNowReleasesIsTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := &agedLock{heard: time.Now().Add(3 * ageLag / 2)}
		held.lock.Parked = &idem.Parked{Tries: 1}
		policy := testPolicy()
		g := guard.New(guard.Options{Ledger: held, Base: t.Context()})
		w := New(Options{Guard: g, Ledger: held, Running: func() int {
			return 1
		}, Policy: func(string) *idem.Policy { return policy }})
		r := &run{worker: w, running: g.Resume(held), tooOld: true, due: time.Now().Add(time.Hour),
			wake: make(chan struct{}, 1)}
		for does := r.nextAction(); does != idem.ActCall; does = r.nextAction() {
			if r.doAction(does) {
				t.Fatalf("over by action %d, after %d ends", does, held.ends)
			}
		}
		if held.ends != 2 {
			t.Errorf("%d ends before it was tried, want 2", held.ends)
		}
		r.leaveSlot()
	})
}

// takenOver is a ledger with one parked execution, whose process is gone.
type takenOver struct {
	roomy
	held        idem.RunningLock
	holdExpired bool
}

func (o takenOver) IsTooOld(idem.ExecutionID) bool { return false }

func (o takenOver) TakeParked(context.Context, idem.Scope, func(string) bool) (*idem.Taken, error) {
	return &idem.Taken{Running: o.held, Carried: true, HoldExpired: o.holdExpired,
		Request: []byte("as it was taken over")}, nil
}

func (o takenOver) Request(context.Context, idem.ExecutionID) ([]byte, error) {
	return []byte("as it is tried"), nil
}

// TestATryThatWaitsForAReleaseDelayKeepsNoRequest in memory: after the end of a replica another one
// takes over all that it carried.
func TestATryThatWaitsForAReleaseDelayKeepsNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held, policy := &oneLock{}, testPolicy()
		held.lock.ReleaseDelay = time.Minute
		held.lock.Parked = &idem.Parked{Tries: 1, NextAttempt: time.Now().Add(time.Minute),
			Last: &idem.Evidence{Outcome: idem.Unknown, At: time.Now()}}
		ledger := takenOver{held: held}
		var sent string
		w := New(Options{
			Guard: guard.New(guard.Options{Ledger: held, Base: t.Context(), Cache: guard.NewCache(0)}), Ledger: ledger,
			Running: func() int {
				return 1
			},
			Policy: func(string) *idem.Policy { return policy },
			Try: func(x *guard.Execution, request []byte) {
				sent = string(request)
				x.End(guard.Tried{Answer: &idem.Answer{Status: 200, Whole: true}})
			},
		})
		began := time.Now()
		w.takeParked(idem.Scope{}, w.slots.entered())
		if took := time.Since(began); sent != "as it is tried" || took < time.Minute {
			t.Errorf("after %v it sent the request %q", took, sent)
		}
	})
}

// TestAProcessThatTakesAnEventOverTriesItWhenItWasPlanned, and its next pause is longer than the
// one that it found.
func TestAProcessThatTakesAnEventOverTriesItWhenItWasPlanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const left = 300 * time.Second
		held, policy := &carriedLock{}, testPolicy()
		policy.Park = &idem.ParkPolicy{Attempts: 10}
		held.lock.Parked = &idem.Parked{
			Tries: 5, Failures: 5, NextAttempt: time.Now().Add(left), Pause: 600 * time.Second, Pauses: 5,
			Last: &idem.Evidence{Outcome: idem.Executed, Status: 503, At: time.Now()},
		}
		g := guard.New(guard.Options{Ledger: held, Base: t.Context(), Cache: guard.NewCache(0)})
		var tried []time.Time
		w := New(Options{
			Guard: g, Ledger: takenOver{held: held}, Running: func() int { return 1 },
			Policy: func(string) *idem.Policy { return policy },
			Try: func(x *guard.Execution, _ []byte) {
				tried = append(tried, time.Now())
				x.End(guard.Tried{Answer: &idem.Answer{Status: map[int]int{1: 503, 2: 200}[len(tried)], Whole: true}})
			},
		})
		began := time.Now()
		w.takeParked(idem.Scope{}, w.slots.entered())
		if first := tried[0].Sub(began); first != left {
			t.Errorf("tried after %v, and %v were left of the pause", first, left)
		}
		if next := tried[1].Sub(tried[0]); next < 16*time.Second || next > 32*time.Second {
			t.Errorf("the pause before the 7th try was %v", next)
		}
	})
}

// deadLock is a parked execution that becomes a dead letter.
type deadLock struct {
	carriedLock
	end idem.End
}

func (d *deadLock) Settle(_ context.Context, end idem.End) (*idem.Record, error) {
	d.end = end
	return &idem.Record{End: end}, nil
}

// TestAHoldThatRanOutIsNoDeathOfAProcess: the upstream had answered, and no client completed what
// it went on with.
func TestAHoldThatRanOutIsNoDeathOfAProcess(t *testing.T) {
	for expired, want := range map[bool]string{true: "the upstream's hold was neither completed nor renewed",
		false: "the process that tried it is gone"} {
		held, policy := &deadLock{}, testPolicy()
		policy.Park, policy.OnUnknown = &idem.ParkPolicy{Attempts: 1, OnFailure: idem.FailureSkip}, idem.UnknownRetry
		held.lock.Parked = &idem.Parked{Tries: 1, Trying: true}
		ledger := takenOver{held: held, holdExpired: expired}
		w := New(Options{
			Guard:  guard.New(guard.Options{Ledger: held, Base: t.Context()}),
			Ledger: ledger, Running: func() int { return 1 },
			Policy: func(string) *idem.Policy { return policy },
		})
		w.takeParked(idem.Scope{}, w.slots.entered())
		if e := held.end.Error; e == nil || !strings.Contains(e.Detail, want) {
			t.Errorf("the hold ran out: %v, and it says %+v", expired, e)
		}
	}
}

// readyQueues is a ledger whose queues are ready as a test says.
type readyQueues struct {
	roomy
	scopes chan idem.Scope
}

func (r readyQueues) NextReady(ctx context.Context) (idem.Scope, string, error) {
	select {
	case scope := <-r.scopes:
		return scope, "", nil
	case <-ctx.Done():
		return idem.Scope{}, "", context.Cause(ctx)
	}
}

func (readyQueues) TakeParked(context.Context, idem.Scope, func(string) bool) (*idem.Taken, error) {
	return nil, nil
}

// TestAnOperatorsChangeIsSeenWhileAllTriesAreTaken: a person may have resumed, cancelled or skipped
// what is carried, and that needs no try.
func TestAnOperatorsChangeIsSeenWhileAllTriesAreTaken(t *testing.T) {
	parks := readyQueues{scopes: make(chan idem.Scope)}
	w := New(Options{
		Guard: guard.New(guard.Options{Ledger: &oneLock{}, Base: t.Context()}), Ledger: parks, Running: func() int {
			return 1
		}, Policy: func(string) *idem.Policy { return nil },
	})
	slot := w.slots.entered()
	r := &run{worker: w, scope: idem.Scope{Workflow: "changed"}, wake: make(chan struct{}, 1)}
	w.runs[r.scope] = r
	ran := make(chan struct{})
	go func() { defer close(ran); w.Run() }()
	for _, workflow := range []string{"waits for a try", "waits, too", "waits for a try", "changed"} {
		select {
		case parks.scopes <- idem.Scope{Workflow: workflow}:
		case <-time.After(time.Minute):
			t.Fatalf("nobody looks at %q", workflow)
		}
	}
	<-r.wake
	w.Drain()
	<-ran
	slot.giveUpSlot()
	if err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// cancelledLock is a parked execution that a person cancels.
type cancelledLock struct {
	carriedLock
	settled chan idem.End
}

func (c *cancelledLock) Begin() error {
	if c.lock.Cancel != nil {
		return idem.ErrCancelled
	}
	return nil
}

func (c *cancelledLock) Settle(_ context.Context, end idem.End) (*idem.Record, error) {
	c.settled <- end
	return &idem.Record{End: end}, nil
}

// TestACancelDoesNotWaitForASlot, nor does it leave a place in the line.
func TestACancelDoesNotWaitForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := &cancelledLock{settled: make(chan idem.End, 1)}
		held.lock.Parked = &idem.Parked{Tries: 1}
		g := guard.New(guard.Options{Ledger: held, Base: t.Context(), Cache: guard.NewCache(0)})
		w := New(Options{
			Guard: g, Ledger: takenOver{held: held}, Running: func() int { return 1 },
			Policy: func(string) *idem.Policy { return testPolicy() },
		})
		other := w.slots.entered()
		w.TakeOver(g.Resume(held), guard.Tried{Answer: &idem.Answer{Status: 503}})
		synctest.Wait()
		time.Sleep(2 * firstPause) // now it waits for the slot
		synctest.Wait()
		held.lock.Cancel = &idem.Cancel{By: "ops"}
		w.wakeRun(held.lock.Scope)
		if end := <-held.settled; end.Status != idem.Aborted {
			t.Errorf("it ended as %+v", end)
		}
		synctest.Wait()
		other.giveUpSlot()
		w.slots.entered().giveUpSlot()
		w.Drain()
	})
}

func TestAnEventThatAPersonLetsRunAgainIsNotRefusedForItsAge(t *testing.T) {
	for on, want := range map[idem.ParkOn]idem.Action{idem.ParkLocked: idem.ActRefuse, idem.ParkAgain: idem.ActCall} {
		held := &carriedLock{}
		held.lock.Parked, held.lock.Stale = &idem.Parked{On: on}, &idem.Stale{}
		p := testPolicy()
		p.Order = &idem.OrderPolicy{OnStale: idem.StaleReject}
		w := New(Options{
			Guard: guard.New(guard.Options{Ledger: held, Base: t.Context()}), Ledger: takenOver{held: held},
			Running: func() int {
				return 1
			},
			Policy: func(string) *idem.Policy { return p }, OnEvent: func(Event) {},
		})
		r := w.registerRun(w.options.Guard.Resume(held))
		r.slot, r.given = &trySlot{}, nil
		if got := r.nextAction(); got != want {
			t.Errorf("parked for %s: %v, want %v", on, got, want)
		}
	}
}

// TestAnEventThatIsNotTriedSaysNothingAboutTheUpstream: one that its route refuses, because a newer
// one went through, keeps nothing from asking whether the upstream is back.
func TestAnEventThatIsNotTriedSaysNothingAboutTheUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := &carriedLock{}
		held.lock.Parked, held.lock.Stale = &idem.Parked{}, &idem.Stale{}
		p := testPolicy()
		p.Order = &idem.OrderPolicy{OnStale: idem.StaleReject}
		var ended Event
		w := New(Options{
			Guard: guard.New(guard.Options{Ledger: held, Base: t.Context()}), Ledger: takenOver{held: held},
			Running: func() int {
				return 1
			},
			Policy: func(string) *idem.Policy { return p }, OnEvent: func(e Event) { ended = e },
		})
		for range away {
			w.slots.noteOutcome(false)
		}
		w.registerRun(w.options.Guard.Resume(held)).run(nil)
		if ended.What != EventDeadLetter || ended.Code != idem.DecisionStale.Row().Code || !w.slots.seemsAway.Load() {
			t.Errorf("it ended as %s (%s), and the upstream counts as away: %v", ended.What, ended.Code,
				w.slots.seemsAway.Load())
		}
	})
}
