package guard

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hooklock/idem"
)

// line is a Ledger in which exec_holder runs, and whose queue does what the test says.
type line struct {
	quiet
	ahead    *idem.Lock  // the lock that executions here wait for
	asked    int         // claims
	lock     idem.Lock   // what stands in the way of a claim
	enqueued []idem.Lock // those that took a place
	prevs    []int64     // the revisions of the event's record that they knew
	behind   []int64     // the locks that they saw
	answers  []queued    // to each place that is taken, one after the other; the last one again and again
	awaits   []awaited
	knew     []int64 // the revisions that it waits at
	claims   []awaited
	claimed  []idem.Lock
	at       int // awaits that were answered
	won      int // claims that were answered
	left     int
	leave    error
	reaped   []idem.ExecutionID
	reap     error
}

func (l *line) LastSeenLock(idem.Scope) *idem.Lock { return l.ahead }

type queued struct {
	seen *idem.Obstacle
	err  error
}

// awaited is the answer of Await or ClaimHead: hangs until the context ends where wait is set, and
// then tells seen.
type awaited struct {
	seen  *idem.Obstacle
	err   error
	wait  bool
	after time.Duration
}

func (l *line) Claim(context.Context, idem.Lock, int64) (idem.RunningLock, *idem.Obstacle, error) {
	l.asked++
	lock := l.lock
	return nil, &idem.Obstacle{Lock: &lock}, nil
}
func (l *line) Enqueue(_ context.Context, lock idem.Lock, prev, behind int64) (idem.QueueEntry, *idem.Obstacle, error) {
	l.enqueued, l.prevs, l.behind = append(l.enqueued, lock), append(l.prevs, prev), append(l.behind, behind)
	if len(l.answers) == 0 {
		return l, nil, nil
	}
	a := l.answers[min(len(l.enqueued), len(l.answers))-1]
	if a.seen != nil || a.err != nil {
		return nil, a.seen, a.err
	}
	return l, nil, nil
}
func (l *line) Reap(_ context.Context, dead *idem.Lock) error {
	l.reaped = append(l.reaped, dead.Execution)
	return l.reap
}
func (l *line) CountDuplicate(idem.ExecutionID, time.Duration) {}
func (l *line) Await(ctx context.Context, prev int64) (*idem.Obstacle, error) {
	l.at++
	l.knew = append(l.knew, prev)
	if l.at > len(l.awaits) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if a := l.awaits[l.at-1]; a.wait {
		<-ctx.Done()
		return a.seen, context.Cause(ctx)
	}
	a := l.awaits[l.at-1]
	<-time.After(a.after) // by the clock of synctest
	return a.seen, a.err
}
func (l *line) ClaimHead(_ context.Context, lock idem.Lock, prev int64) (idem.RunningLock, *idem.Obstacle, error) {
	l.won++
	l.claimed, l.prevs = append(l.claimed, lock), append(l.prevs, prev)
	if l.won <= len(l.claims) {
		a := l.claims[l.won-1]
		return nil, a.seen, a.err
	}
	return &oneLock{lock: lock}, nil, nil
}
func (l *line) Park(context.Context, idem.Parked) error { return nil }
func (l *line) Leave(context.Context) error {
	l.left++
	return l.leave
}

func busy() idem.Lock {
	return idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_holder",
		Scope:       idem.Scope{Workflow: "w", Key: keyB},
		TraceParent: "trace of the holder"}, Revision: 5}
}

// lined lets event A wait in l for a minute.
func lined(t *testing.T, l *line, change func(*idem.Policy)) (Admission, *Guard) {
	t.Helper()
	if l.lock.Execution == "" {
		l.lock = busy()
	}
	p := testPolicy()
	p.Strategy, p.MaxWaiting, p.WaitTimeout = idem.Wait, 1, time.Minute
	if change != nil {
		change(p)
	}
	g := New(Options{Ledger: l, Base: t.Context(), Cache: NewCache(0), MaxWaiting: func() int { return 1 }})
	return g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyA},
		Fingerprint: idem.Fingerprint{1}, Policy: p}), g
}

func TestADeliveryThatWillWaitBehindOthersClaimsNoLock(t *testing.T) {
	ahead := busy()
	l := &line{ahead: &ahead, awaits: []awaited{{seen: &idem.Obstacle{}}}}
	a, _ := lined(t, l, nil)
	if a.Execution == nil || l.asked != 0 {
		t.Fatalf("%+v after %d claims", a, l.asked)
	}
}

func TestADuplicateIsAnsweredAsOneAlsoWhereTheQueueIsFull(t *testing.T) {
	ahead, copied := busy(), busy()
	copied.Scope.Key, copied.Fingerprint = keyA, idem.Fingerprint{1}
	l := &line{ahead: &ahead, lock: copied}
	if a, _ := lined(t, l, func(p *idem.Policy) { p.MaxWaiting = 0 }); a.Decision != idem.DecisionInFlight {
		t.Fatalf("%+v", a)
	}
}

func TestADeliveryWaitsForItsTurnAndRunsThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{awaits: []awaited{{seen: &idem.Obstacle{Queue: true,
			Waiting: &idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_itself",
				Scope: idem.Scope{Key: keyA}}}}}}}
		a, g := lined(t, l, nil)
		if a.Execution == nil || a.Decision != "" || len(l.enqueued) != 1 || l.behind[0] != 5 || l.left != 0 {
			t.Fatalf("%+v, behind %v, left %d times", a, l.behind, l.left)
		}
		if l.claimed[0].Attempt != 1 || l.claimed[0].Execution != l.enqueued[0].Execution ||
			a.Execution.Lock().Execution != l.enqueued[0].Execution || a.Execution.CallbackKey == "" {
			t.Errorf("it took its place as %+v and claims as %+v", l.enqueued[0], l.claimed[0])
		}
		if n, since := g.Waiting(); n != 0 || !since.IsZero() {
			t.Errorf("%d wait since %s", n, since)
		}
		// A copy meets it in this process.
		if copied := g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyA},
			Fingerprint: idem.Fingerprint{1}, Policy: testPolicy()}); copied.Decision != idem.DecisionInFlight ||
			copied.Holder != l.enqueued[0].Execution {
			t.Errorf("%+v", copied)
		}
		a.Execution.End(Tried{})
		if next := g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyA},
			Policy: testPolicy()}); next.Holder != "exec_holder" {
			t.Errorf("after its end, this process still knows of it: %+v", next)
		}
	})
}

func TestADeliveryThatTimesOutNamesTheExecutionInItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := busy()
		closed.Cooling, closed.CoolUntil = true, time.Now().Add(90*time.Second)
		for name, c := range map[string]struct {
			lock   idem.Lock
			after  time.Duration
			closed bool
		}{"nobody knows how long": {busy(), 0, false}, "it cools": {closed, 30 * time.Second, true}} {
			l := &line{lock: c.lock}
			if c.closed { // as long after the beginning of this turn as of the other
				l.lock.CoolUntil = time.Now().Add(90 * time.Second)
			}
			a, g := lined(t, l, nil)
			if a.Decision != idem.DecisionWaitTimeout || a.Holder != "exec_holder" ||
				a.HolderTrace != "trace of the holder" || a.Err != nil || a.Waited != time.Minute || l.left != 1 {
				t.Errorf("%s: %+v, left %d times", name, a, l.left)
			}
			if a.RetryAfter != c.after || a.ClosedUntil.IsZero() == c.closed {
				t.Errorf("%s: retry after %s, closed until %s", name, a.RetryAfter, a.ClosedUntil)
			}
			if n, _ := g.Waiting(); n != 0 {
				t.Errorf("%s: it still counts as waiting", name)
			}
		}
	})
}

func TestADeliveryThatGivesUpNamesTheOldestThatRunsThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := idem.Obstacle{Full: &idem.Slot{LimitName: idem.OwnLimit("w")}, Oldest: "exec_oldest"}
		a, _ := lined(t, &line{awaits: []awaited{{wait: true, seen: &full}}}, func(p *idem.Policy) {
			p.Concurrency = 2
		})
		if a.Decision != idem.DecisionWaitTimeout || a.Holder != "exec_oldest" || !a.Full {
			t.Errorf("%+v", a)
		}
		a, _ = lined(t, &line{awaits: []awaited{{wait: true}}}, func(p *idem.Policy) { p.Concurrency = 2 })
		if a.Decision != idem.DecisionWaitTimeout || a.Holder != "exec_holder" || a.Full {
			t.Errorf("%+v", a)
		}
	})
}

func TestASenderThatHangsUpTakesItsDeliveryOutOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{lock: busy()}
		p := testPolicy()
		p.Strategy, p.MaxWaiting, p.WaitTimeout = idem.Wait, 1, time.Minute
		g := New(Options{Ledger: l, Base: t.Context(), Cache: NewCache(0), MaxWaiting: func() int { return 1 }})
		sender, hangUp := context.WithCancel(t.Context())
		got := make(chan Admission)
		go func() { got <- g.Admit(sender, &idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyA}, Policy: p}) }()
		synctest.Wait()
		since := time.Now()
		if n, at := g.Waiting(); n != 1 || !at.Equal(since) {
			t.Errorf("%d wait since %s", n, at)
		}
		other := g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w",
			Key: idem.Key("00000000000000cc-000000000000000000000000000000cc")}, Policy: p})
		if other.Decision != idem.DecisionQueueFull || other.Holder != "exec_holder" ||
			other.HolderTrace != "trace of the holder" {
			t.Errorf("one more than may wait: %+v", other)
		}
		time.Sleep(time.Second)
		hangUp()
		if a := <-got; a.Decision != idem.DecisionWaitTimeout || !errors.Is(a.Err, errSenderGone) ||
			a.Waited != time.Second || l.left != 1 {
			t.Errorf("%+v, left %d times", a, l.left)
		}
	})
}

func TestAFullQueueSaysUntilWhenTheLockIsClosed(t *testing.T) {
	l := &line{lock: busy()}
	l.lock.Cooling, l.lock.CoolUntil = true, noon
	a, _ := lined(t, l, func(p *idem.Policy) { p.MaxWaiting = 0 })
	if a.Decision != idem.DecisionQueueFull || !a.ClosedUntil.Equal(noon) || len(l.enqueued) != 0 {
		t.Errorf("%+v", a)
	}
}

func TestWhatHappensWhileADeliveryWaitsDecidesAboutIt(t *testing.T) {
	settled := cached(1)
	settled.Scope.Key, settled.Fingerprint, settled.Answer = keyA, idem.Fingerprint{1}, &idem.Answer{Status: 200}
	dead := busy()
	dead.Dead = true
	deadCopy := dead
	deadCopy.Scope.Key = keyA
	other := busy()
	again := &idem.Record{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_first",
		Scope:       idem.Scope{Workflow: "w", Key: keyA},
		Fingerprint: idem.Fingerprint{1}, Attempt: 3}, End: idem.End{Status: idem.Failed, Outcome: idem.Executed}}
	cancelled := &idem.Record{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_own"},
		End: idem.End{Status: idem.Aborted, Outcome: idem.NotExecuted, Abort: &idem.Cancel{By: "ops"}}}
	for name, c := range map[string]struct {
		answers []queued
		awaits  []awaited
		claims  []awaited
		want    idem.Decision
		err     error
		left    int
		places  int
		attempt int
		reaped  int
	}{
		"its event was settled": {nil,
			[]awaited{{seen: &idem.Obstacle{Record: settled, RecordRevision: 9}}}, nil, idem.DecisionReplayed, nil, 1,
			1, 0, 0},
		"it was settled before it had a place": {[]queued{{seen: &idem.Obstacle{Record: settled,
			RecordRevision: 9}}}, nil, nil, idem.DecisionReplayed, nil, 0, 1, 0, 0},
		"a copy waits already": {[]queued{{seen: &idem.Obstacle{Lock: &other,
			Waiting: &idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_copy",
				Scope:       idem.Scope{Key: keyA},
				Fingerprint: idem.Fingerprint{1}}}}}}, nil, nil, idem.DecisionInFlight, nil, 0, 1, 0, 0},
		"its record has changed, and it may run again": {nil,
			[]awaited{{seen: &idem.Obstacle{Record: again, RecordRevision: 9}}}, nil, "", nil, 0, 1, 4, 0},
		"so it has before it had a place": {[]queued{{seen: &idem.Obstacle{Record: again,
			RecordRevision: 9}}, {}}, []awaited{{seen: &idem.Obstacle{Record: again, RecordRevision: 9}}}, nil, "", nil,
			0, 2, 4, 0},
		"the place did not come to be": {[]queued{{err: idem.ErrNotClaimed}, {}},
			[]awaited{{seen: &idem.Obstacle{}}}, nil, "", nil, 0, 2, 1, 0},
		"the record has changed, and the lock is taken": {nil,
			[]awaited{{seen: &idem.Obstacle{Lock: &other, Record: again, RecordRevision: 9}},
				{seen: &idem.Obstacle{Record: again, RecordRevision: 9}}}, nil, "", nil, 0, 1, 4, 0},
		"the owner of the lock died": {nil,
			[]awaited{{seen: &idem.Obstacle{Lock: &dead}}, {seen: &idem.Obstacle{}}}, nil, "", nil, 0, 1, 1, 1},
		"it had died before it had a place": {[]queued{{seen: &idem.Obstacle{Lock: &dead,
			Record: again}}, {}}, []awaited{{seen: &idem.Obstacle{}}}, nil, "", nil, 0, 2, 1, 0},
		"its own copy died before it had a place": {[]queued{{seen: &idem.Obstacle{Lock: &deadCopy}}, {}},
			[]awaited{{seen: &idem.Obstacle{}}}, nil, "", nil, 0, 2, 1, 1},
		"somebody cancelled it": {nil,
			[]awaited{{seen: &idem.Obstacle{Record: cancelled}, err: idem.ErrCancelled}}, nil, idem.DecisionAborted,
			nil, 1, 1, 0, 0},
		"its place was lost": {nil,
			[]awaited{{err: idem.ErrQueueEntryLost}, {seen: &idem.Obstacle{}}}, nil, "", nil, 1, 2, 1, 0},
		"its place was lost when its turn came": {nil,
			[]awaited{{seen: &idem.Obstacle{}}, {seen: &idem.Obstacle{}}}, []awaited{{err: idem.ErrQueueEntryLost}},
			"", nil,
			1, 2, 1, 0},
		"somebody was faster when its turn came": {nil,
			[]awaited{{seen: &idem.Obstacle{}}, {seen: &idem.Obstacle{}}},
			[]awaited{{seen: &idem.Obstacle{Lock: &other}}}, "", nil, 0, 1, 1, 0},
		"its claim did not come to be": {nil,
			[]awaited{{seen: &idem.Obstacle{}}, {seen: &idem.Obstacle{}}}, []awaited{{err: idem.ErrNotClaimed}}, "",
			nil, 0, 1, 1, 0},
		"the store fails when its turn comes": {nil, []awaited{{seen: &idem.Obstacle{}}},
			[]awaited{{err: idem.ErrStoreUnavailable}}, idem.DecisionStoreUnavailable, idem.ErrStoreUnavailable, 1, 1,
			0, 0},
		"the store fails while it waits": {nil, []awaited{{err: idem.ErrStoreUnavailable}}, nil,
			idem.DecisionStoreUnavailable, idem.ErrStoreUnavailable, 1, 1, 0, 0},
		"the store fails before it has a place": {[]queued{{err: idem.ErrStoreUnavailable}}, nil, nil,
			idem.DecisionStoreUnavailable, idem.ErrStoreUnavailable, 0, 1, 0, 0},
		"the store fails between two sessions": {[]queued{{}, {err: idem.ErrStoreUnavailable}, {}},
			[]awaited{{err: idem.ErrQueueEntryLost}, {seen: &idem.Obstacle{}}}, nil, "", nil, 1, 3, 1, 0},
		"it fails for longer than a session takes to come": {[]queued{{}, {err: idem.ErrStoreUnavailable}},
			[]awaited{{err: idem.ErrQueueEntryLost}}, nil, idem.DecisionStoreUnavailable, idem.ErrStoreUnavailable, 1,
			103,
			0, 0}, // one each betweenSessions, for RequestTimeout
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &line{answers: c.answers, awaits: c.awaits, claims: c.claims}
				a, g := lined(t, l, nil)
				if a.Decision != c.want || !errors.Is(a.Err, c.err) || (a.Execution != nil) != (c.want == "") {
					t.Fatalf("%+v", a)
				}
				if l.left != c.left || len(l.enqueued) != c.places || len(l.reaped) != c.reaped {
					t.Errorf("left %d times, took %d places, reaped %v", l.left, len(l.enqueued), l.reaped)
				}
				if n, _ := g.Waiting(); n != 0 {
					t.Errorf("%d still wait", n)
				}
				if a.Execution != nil {
					claim := l.claimed[len(l.claimed)-1]
					if claim.Attempt != c.attempt || len(claim.Earlier) != min(c.attempt-1, 1) ||
						c.attempt == 4 && l.prevs[len(l.prevs)-1] != 9 {
						t.Errorf("it claims as %+v over %v", claim, l.prevs)
					}
					a.Execution.End(Tried{})
				}
				if c.want == idem.DecisionAborted &&
					(a.Holder != "exec_own" || !a.WhileWaiting || a.Record != cancelled) {
					t.Errorf("%+v", a)
				}
			})
		})
	}
}

func TestAQueueEntryThatCannotBeLeftIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{leave: idem.ErrStoreUnavailable}
		if a, _ := lined(t, l, nil); a.Decision != idem.DecisionWaitTimeout ||
			!errors.Is(a.Err, idem.ErrStoreUnavailable) {
			t.Errorf("%+v", a)
		}
	})
}

func TestAWaiterUsesItsLastReadAndBeginsWhenItHasTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := busy()
		again := &idem.Record{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_first",
			Scope:       idem.Scope{Workflow: "w", Key: keyA},
			Fingerprint: idem.Fingerprint{1}, Attempt: 3}, End: idem.End{Status: idem.Failed, Outcome: idem.Executed}}
		l := &line{awaits: []awaited{{seen: &idem.Obstacle{Lock: &other, Record: again, RecordRevision: 9}},
			{seen: &idem.Obstacle{Record: again, RecordRevision: 9}, after: time.Second}}}
		began := time.Now()
		a, _ := lined(t, l, nil)
		if a.Execution == nil || !slices.Equal(l.knew, []int64{0, 9}) {
			t.Fatalf("%+v, waited at the revisions %v", a, l.knew)
		}
		if at := a.Execution.Lock().StartedAt; !at.Equal(began.Add(time.Second)) {
			t.Errorf("it began %s after it came", at.Sub(began))
		}
		a.Execution.End(Tried{})
	})
}

func TestAWaiterUsesTheQuotaOfItsRouteOnlyForANewEvent(t *testing.T) {
	again := &idem.Record{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_first",
		Scope:   idem.Scope{Workflow: "w", Key: keyA},
		Attempt: 3}, End: idem.End{Status: idem.Failed, Outcome: idem.Executed}}
	for name, c := range map[string]struct {
		record *idem.Record
		next   idem.Decision
	}{"it is new": {nil, idem.DecisionThrottled}, "it has run before": {again, idem.DecisionLocked}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var policy *idem.Policy
				a, g := lined(t, &line{awaits: []awaited{{seen: &idem.Obstacle{Record: c.record}}}},
					func(p *idem.Policy) {
						p.NewPerSecond, p.OnMismatch = 1, idem.MismatchReplay
						policy = p
					})
				if a.Execution == nil {
					t.Fatalf("%+v", a)
				}
				policy.Strategy = idem.FailFast
				if next := g.Admit(t.Context(),
					&idem.Request{Scope: idem.Scope{Workflow: "other",
						Key: idem.Key("00000000000000cc-000000000000000000000000000000cc")},
						Policy: policy}); next.Decision != c.next {
					t.Errorf("the next new event: %+v", next)
				}
				a.Execution.End(Tried{})
			})
		})
	}
}

// Who is refused a place comes after another event's lock, and is told of what concerns its own.
func TestADeliveryThatIsRefusedAnEntryWaitsBehindAnotherEventAlone(t *testing.T) {
	change := func(f func(*idem.Lock)) *idem.Obstacle {
		l := busy()
		l.Revision = 7
		f(&l)
		return &idem.Obstacle{Lock: &l}
	}
	own := func(l *idem.Lock) { l.Scope.Key, l.Fingerprint = keyA, idem.Fingerprint{1} }
	for name, c := range map[string]struct {
		seen *idem.Obstacle
		want idem.Decision // "": it takes a place behind the lock
	}{
		"another event runs":                          {change(func(*idem.Lock) {}), ""},
		"its own event has ended, and its lock cools": {change(func(l *idem.Lock) { own(l); l.Cooling = true }), ""},
		"its own event runs":                          {change(own), idem.DecisionInFlight},
		"its own event runs, with another payload": {change(func(l *idem.Lock) {
			own(l)
			l.Fingerprint = idem.Fingerprint{2}
		}), idem.DecisionMismatch},
		"its own event's lock of another strategy cools, which is no lock to wait behind": {change(func(l *idem.Lock) {
			own(l)
			l.Scope.PerEvent, l.Cooling = true, true
		}), idem.DecisionLocked},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &line{answers: []queued{{seen: c.seen}, {}}, awaits: []awaited{{seen: &idem.Obstacle{}}}}
				a, _ := lined(t, l, func(*idem.Policy) {})
				if a.Decision != c.want || (a.Execution != nil) != (c.want == "") {
					t.Fatalf("%+v", a)
				}
				if c.want == "" && (len(l.behind) != 2 || l.behind[1] != 7) {
					t.Errorf("it waits behind %v", l.behind)
				}
				if a.Execution != nil {
					a.Execution.End(Tried{})
				}
			})
		})
	}
}
