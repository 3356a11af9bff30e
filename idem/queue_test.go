package idem

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// line is a Ledger in which exec_holder runs, and whose queue does what the test says.
type line struct {
	Ledger
	ahead    *Lock    // who has the lock that somebody waits for here
	asked    int      // claims
	lock     Lock     // what stands in the way of a claim
	enqueued []Lock   // who took a place
	prevs    []int64  // the revisions of the event's record that they knew
	behind   []int64  // the locks that they saw
	answers  []queued // to each place that is taken, one after the other; the last one again and again
	awaits   []awaited
	knew     []int64 // the revisions that it waits at
	claims   []awaited
	claimed  []Lock
	at       int // awaits that were answered
	won      int // claims that were answered
	left     int
	leave    error
	reaped   []ExecutionID
	reap     error
}

func (*line) Paused(string, string) *Pause          { return nil }
func (*line) Answer(context.Context, *Record) error { return nil }
func (l *line) Ahead(Scope) *Lock                   { return l.ahead }

type queued struct {
	seen *Seen
	err  error
}

// awaited is the answer of Await or ClaimHead: hangs until the context ends where wait is set, and then tells seen.
type awaited struct {
	seen  *Seen
	err   error
	wait  bool
	after time.Duration
}

func (l *line) Claim(context.Context, Lock, int64) (Held, *Seen, error) {
	l.asked++
	lock := l.lock
	return nil, &Seen{Lock: &lock}, nil
}
func (l *line) Enqueue(_ context.Context, lock Lock, prev, behind int64) (Place, *Seen, error) {
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
func (l *line) Reap(_ context.Context, dead *Lock) error {
	l.reaped = append(l.reaped, dead.Execution)
	return l.reap
}
func (l *line) Duplicate(ExecutionID, time.Duration) {}
func (l *line) Await(ctx context.Context, prev int64) (*Seen, error) {
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
func (l *line) ClaimHead(_ context.Context, lock Lock, prev int64) (Held, *Seen, error) {
	l.won++
	l.claimed, l.prevs = append(l.claimed, lock), append(l.prevs, prev)
	if l.won <= len(l.claims) {
		a := l.claims[l.won-1]
		return nil, a.seen, a.err
	}
	return &oneLock{lock: lock}, nil, nil
}
func (l *line) Park(context.Context, Parked, Kept) error { return nil }
func (l *line) Leave(context.Context) error {
	l.left++
	return l.leave
}

func busy() Lock {
	return Lock{Entry: Entry{Execution: "exec_holder", Scope: Scope{Workflow: "w", Key: keyB}, TraceParent: "trace of the holder"}, Revision: 5}
}

// lined lets event A wait in l for a minute.
func lined(t *testing.T, l *line, change func(*Policy)) (Admission, *Guard) {
	t.Helper()
	if l.lock.Execution == "" {
		l.lock = busy()
	}
	p := testPolicy()
	p.Strategy, p.MaxWaiting, p.WaitTimeout = Wait, 1, time.Minute
	if change != nil {
		change(p)
	}
	g := NewGuard(GuardOptions{Ledger: l, Base: t.Context(), Cache: NewCache(0), MaxWaiting: func() int { return 1 }})
	return g.Admit(t.Context(), &Request{Scope: Scope{Workflow: "w", Key: keyA}, Fingerprint: Fingerprint{1}, Policy: p}), g
}

func TestADeliveryThatWillWaitBehindOthersClaimsNoLock(t *testing.T) {
	ahead := busy()
	l := &line{ahead: &ahead, awaits: []awaited{{seen: &Seen{}}}}
	a, _ := lined(t, l, nil)
	if a.Execution == nil || l.asked != 0 {
		t.Fatalf("%+v after %d claims", a, l.asked)
	}
}

func TestADuplicateIsAnsweredAsOneAlsoWhereTheQueueIsFull(t *testing.T) {
	ahead, copied := busy(), busy()
	copied.Scope.Key, copied.Fingerprint = keyA, Fingerprint{1}
	l := &line{ahead: &ahead, lock: copied}
	if a, _ := lined(t, l, func(p *Policy) { p.MaxWaiting = 0 }); a.Decision != DecisionInFlight {
		t.Fatalf("%+v", a)
	}
}

func TestADeliveryWaitsForItsTurnAndRunsThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{awaits: []awaited{{seen: &Seen{Queue: true, Waiting: &Lock{Entry: Entry{Execution: "exec_itself", Scope: Scope{Key: keyA}}}}}}}
		a, g := lined(t, l, nil)
		if a.Execution == nil || a.Decision != "" || len(l.enqueued) != 1 || l.behind[0] != 5 || l.left != 0 {
			t.Fatalf("%+v, behind %v, left %d times", a, l.behind, l.left)
		}
		if l.claimed[0].Attempt != 1 || l.claimed[0].Execution != l.enqueued[0].Execution || a.Execution.Lock().Execution != l.enqueued[0].Execution || a.Execution.CallbackKey == "" {
			t.Errorf("it took its place as %+v and claims as %+v", l.enqueued[0], l.claimed[0])
		}
		if n, since := g.Waiting(); n != 0 || !since.IsZero() {
			t.Errorf("%d wait since %s", n, since)
		}
		// A copy meets it in this process.
		if copied := g.Admit(t.Context(), &Request{Scope: Scope{Workflow: "w", Key: keyA}, Fingerprint: Fingerprint{1}, Policy: testPolicy()}); copied.Decision != DecisionInFlight || copied.Holder != l.enqueued[0].Execution {
			t.Errorf("%+v", copied)
		}
		a.Execution.Release(Failure{})
		if next := g.Admit(t.Context(), &Request{Scope: Scope{Workflow: "w", Key: keyA}, Policy: testPolicy()}); next.Holder != "exec_holder" {
			t.Errorf("after its end, this process still knows of it: %+v", next)
		}
	})
}

func TestADeliveryThatTimesOutNamesTheExecutionInItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := busy()
		closed.Cooling, closed.CoolUntil = true, time.Now().Add(90*time.Second)
		for name, c := range map[string]struct {
			lock   Lock
			after  time.Duration
			closed bool
		}{"nobody knows how long": {busy(), 0, false}, "it cools": {closed, 30 * time.Second, true}} {
			l := &line{lock: c.lock}
			if c.closed { // as long after the beginning of this turn as of the other
				l.lock.CoolUntil = time.Now().Add(90 * time.Second)
			}
			a, g := lined(t, l, nil)
			if a.Decision != DecisionWaitTimeout || a.Holder != "exec_holder" || a.HolderTrace != "trace of the holder" || a.Err != nil || a.Waited != time.Minute || l.left != 1 {
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
		full := Seen{Full: &Slot{Limit: OwnLimit("w")}, Oldest: "exec_oldest"}
		a, _ := lined(t, &line{awaits: []awaited{{wait: true, seen: &full}}}, func(p *Policy) { p.Limit = 2 })
		if a.Decision != DecisionWaitTimeout || a.Holder != "exec_oldest" || !a.Full {
			t.Errorf("%+v", a)
		}
		a, _ = lined(t, &line{awaits: []awaited{{wait: true}}}, func(p *Policy) { p.Limit = 2 })
		if a.Decision != DecisionWaitTimeout || a.Holder != "exec_holder" || a.Full {
			t.Errorf("%+v", a)
		}
	})
}

func TestASenderThatHangsUpTakesItsDeliveryOutOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{lock: busy()}
		p := testPolicy()
		p.Strategy, p.MaxWaiting, p.WaitTimeout = Wait, 1, time.Minute
		g := NewGuard(GuardOptions{Ledger: l, Base: t.Context(), Cache: NewCache(0), MaxWaiting: func() int { return 1 }})
		sender, hangUp := context.WithCancel(t.Context())
		got := make(chan Admission)
		go func() { got <- g.Admit(sender, &Request{Scope: Scope{Workflow: "w", Key: keyA}, Policy: p}) }()
		synctest.Wait()
		since := time.Now()
		if n, at := g.Waiting(); n != 1 || !at.Equal(since) {
			t.Errorf("%d wait since %s", n, at)
		}
		other := g.Admit(t.Context(), &Request{Scope: Scope{Workflow: "w", Key: Key("00000000000000cc-000000000000000000000000000000cc")}, Policy: p})
		if other.Decision != DecisionQueueFull || other.Holder != "exec_holder" || other.HolderTrace != "trace of the holder" {
			t.Errorf("one more than may wait: %+v", other)
		}
		time.Sleep(time.Second)
		hangUp()
		if a := <-got; a.Decision != DecisionWaitTimeout || !errors.Is(a.Err, ErrSenderGone) || a.Waited != time.Second || l.left != 1 {
			t.Errorf("%+v, left %d times", a, l.left)
		}
	})
}

func TestAFullQueueSaysUntilWhenTheLockIsClosed(t *testing.T) {
	l := &line{lock: busy()}
	l.lock.Cooling, l.lock.CoolUntil = true, noon
	a, _ := lined(t, l, func(p *Policy) { p.MaxWaiting = 0 })
	if a.Decision != DecisionQueueFull || !a.ClosedUntil.Equal(noon) || len(l.enqueued) != 0 {
		t.Errorf("%+v", a)
	}
}

func TestWhatHappensWhileADeliveryWaitsDecidesAboutIt(t *testing.T) {
	settled := cached(1)
	settled.Scope.Key, settled.Fingerprint, settled.Answer = keyA, Fingerprint{1}, &Answer{Status: 200}
	dead := busy()
	dead.Dead = true
	deadCopy := dead
	deadCopy.Scope.Key = keyA
	other := busy()
	again := &Record{Entry: Entry{Execution: "exec_first", Scope: Scope{Workflow: "w", Key: keyA}, Fingerprint: Fingerprint{1}, Attempt: 3}, End: End{Status: Failed, Outcome: Executed}}
	cancelled := &Record{Entry: Entry{Execution: "exec_own"}, End: End{Status: Aborted, Outcome: NotExecuted, Abort: &Cancel{By: "ops"}}}
	for name, c := range map[string]struct {
		answers []queued
		awaits  []awaited
		claims  []awaited
		want    Decision
		err     error
		left    int
		places  int
		attempt int
		reaped  int
	}{
		"its event was settled":                            {nil, []awaited{{seen: &Seen{Record: settled, RecordRevision: 9}}}, nil, DecisionReplayed, nil, 1, 1, 0, 0},
		"it was settled before it had a place":             {[]queued{{seen: &Seen{Record: settled, RecordRevision: 9}}}, nil, nil, DecisionReplayed, nil, 0, 1, 0, 0},
		"a copy waits already":                             {[]queued{{seen: &Seen{Lock: &other, Waiting: &Lock{Entry: Entry{Execution: "exec_copy", Scope: Scope{Key: keyA}, Fingerprint: Fingerprint{1}}}}}}, nil, nil, DecisionInFlight, nil, 0, 1, 0, 0},
		"its record has changed, and it may run again":     {nil, []awaited{{seen: &Seen{Record: again, RecordRevision: 9}}}, nil, "", nil, 0, 1, 4, 0},
		"so it has before it had a place":                  {[]queued{{seen: &Seen{Record: again, RecordRevision: 9}}, {}}, []awaited{{seen: &Seen{Record: again, RecordRevision: 9}}}, nil, "", nil, 0, 2, 4, 0},
		"the place did not come to be":                     {[]queued{{err: ErrNotClaimed}, {}}, []awaited{{seen: &Seen{}}}, nil, "", nil, 0, 2, 1, 0},
		"the record has changed, and the lock is taken":    {nil, []awaited{{seen: &Seen{Lock: &other, Record: again, RecordRevision: 9}}, {seen: &Seen{Record: again, RecordRevision: 9}}}, nil, "", nil, 0, 1, 4, 0},
		"the owner of the lock died":                       {nil, []awaited{{seen: &Seen{Lock: &dead}}, {seen: &Seen{}}}, nil, "", nil, 0, 1, 1, 1},
		"it had died before it had a place":                {[]queued{{seen: &Seen{Lock: &dead, Record: again}}, {}}, []awaited{{seen: &Seen{}}}, nil, "", nil, 0, 2, 1, 0},
		"its own copy died before it had a place":          {[]queued{{seen: &Seen{Lock: &deadCopy}}, {}}, []awaited{{seen: &Seen{}}}, nil, "", nil, 0, 2, 1, 1},
		"somebody cancelled it":                            {nil, []awaited{{seen: &Seen{Record: cancelled}, err: ErrCancelled}}, nil, DecisionAborted, nil, 1, 1, 0, 0},
		"its place was lost":                               {nil, []awaited{{err: ErrPlaceLost}, {seen: &Seen{}}}, nil, "", nil, 1, 2, 1, 0},
		"its place was lost when its turn came":            {nil, []awaited{{seen: &Seen{}}, {seen: &Seen{}}}, []awaited{{err: ErrPlaceLost}}, "", nil, 1, 2, 1, 0},
		"somebody was faster when its turn came":           {nil, []awaited{{seen: &Seen{}}, {seen: &Seen{}}}, []awaited{{seen: &Seen{Lock: &other}}}, "", nil, 0, 1, 1, 0},
		"its claim did not come to be":                     {nil, []awaited{{seen: &Seen{}}, {seen: &Seen{}}}, []awaited{{err: ErrNotClaimed}}, "", nil, 0, 1, 1, 0},
		"the store fails when its turn comes":              {nil, []awaited{{seen: &Seen{}}}, []awaited{{err: ErrStoreUnavailable}}, DecisionStoreUnavailable, ErrStoreUnavailable, 1, 1, 0, 0},
		"the store fails while it waits":                   {nil, []awaited{{err: ErrStoreUnavailable}}, nil, DecisionStoreUnavailable, ErrStoreUnavailable, 1, 1, 0, 0},
		"the store fails before it has a place":            {[]queued{{err: ErrStoreUnavailable}}, nil, nil, DecisionStoreUnavailable, ErrStoreUnavailable, 0, 1, 0, 0},
		"the store fails between two sessions":             {[]queued{{}, {err: ErrStoreUnavailable}, {}}, []awaited{{err: ErrPlaceLost}, {seen: &Seen{}}}, nil, "", nil, 1, 3, 1, 0},
		"it fails for longer than a session takes to come": {[]queued{{}, {err: ErrStoreUnavailable}}, []awaited{{err: ErrPlaceLost}}, nil, DecisionStoreUnavailable, ErrStoreUnavailable, 1, 103, 0, 0}, // one each betweenSessions, for RequestTimeout
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
					if claim.Attempt != c.attempt || len(claim.Earlier) != min(c.attempt-1, 1) || c.attempt == 4 && l.prevs[len(l.prevs)-1] != 9 {
						t.Errorf("it claims as %+v over %v", claim, l.prevs)
					}
					a.Execution.Release(Failure{})
				}
				if c.want == DecisionAborted && (a.Holder != "exec_own" || !a.WhileWaiting || a.Record != cancelled) {
					t.Errorf("%+v", a)
				}
			})
		})
	}
}

func TestAQueueEntryThatCannotBeLeftIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{leave: ErrStoreUnavailable}
		if a, _ := lined(t, l, nil); a.Decision != DecisionWaitTimeout || !errors.Is(a.Err, ErrStoreUnavailable) {
			t.Errorf("%+v", a)
		}
	})
}

func TestAWaiterUsesItsLastReadAndBeginsWhenItHasTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := busy()
		again := &Record{Entry: Entry{Execution: "exec_first", Scope: Scope{Workflow: "w", Key: keyA}, Fingerprint: Fingerprint{1}, Attempt: 3}, End: End{Status: Failed, Outcome: Executed}}
		l := &line{awaits: []awaited{{seen: &Seen{Lock: &other, Record: again, RecordRevision: 9}}, {seen: &Seen{Record: again, RecordRevision: 9}, after: time.Second}}}
		began := time.Now()
		a, _ := lined(t, l, nil)
		if a.Execution == nil || !slices.Equal(l.knew, []int64{0, 9}) {
			t.Fatalf("%+v, waited at the revisions %v", a, l.knew)
		}
		if at := a.Execution.Lock().StartedAt; !at.Equal(began.Add(time.Second)) {
			t.Errorf("it began %s after it came", at.Sub(began))
		}
		a.Execution.Release(Failure{})
	})
}

func TestAWaiterUsesTheQuotaOfItsRouteOnlyForANewEvent(t *testing.T) {
	again := &Record{Entry: Entry{Execution: "exec_first", Scope: Scope{Workflow: "w", Key: keyA}, Attempt: 3}, End: End{Status: Failed, Outcome: Executed}}
	for name, c := range map[string]struct {
		record *Record
		next   Decision
	}{"it is new": {nil, DecisionThrottled}, "it has run before": {again, DecisionLocked}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var policy *Policy
				a, g := lined(t, &line{awaits: []awaited{{seen: &Seen{Record: c.record}}}}, func(p *Policy) {
					p.NewPerSecond, p.OnMismatch = 1, MismatchReplay
					policy = p
				})
				if a.Execution == nil {
					t.Fatalf("%+v", a)
				}
				policy.Strategy = FailFast
				if next := g.Admit(t.Context(), &Request{Scope: Scope{Workflow: "other", Key: Key("00000000000000cc-000000000000000000000000000000cc")}, Policy: policy}); next.Decision != c.next {
					t.Errorf("the next new event: %+v", next)
				}
				a.Execution.Release(Failure{})
			})
		})
	}
}

// Who is refused a place comes after another event's lock, and is told of what concerns its own.
func TestADeliveryThatIsRefusedAnEntryWaitsBehindAnotherEventAlone(t *testing.T) {
	change := func(f func(*Lock)) *Seen {
		l := busy()
		l.Revision = 7
		f(&l)
		return &Seen{Lock: &l}
	}
	own := func(l *Lock) { l.Scope.Key, l.Fingerprint = keyA, Fingerprint{1} }
	for name, c := range map[string]struct {
		seen *Seen
		want Decision // "": it takes a place behind the lock
	}{
		"another event runs":                          {change(func(*Lock) {}), ""},
		"its own event has ended, and its lock cools": {change(func(l *Lock) { own(l); l.Cooling = true }), ""},
		"its own event runs":                          {change(own), DecisionInFlight},
		"its own event runs, with another payload":    {change(func(l *Lock) { own(l); l.Fingerprint = Fingerprint{2} }), DecisionMismatch},
		"its own event's lock of another strategy cools, which is no lock to wait behind": {change(func(l *Lock) { own(l); l.Scope.PerEvent, l.Cooling = true, true }), DecisionLocked},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &line{answers: []queued{{seen: c.seen}, {}}, awaits: []awaited{{seen: &Seen{}}}}
				a, _ := lined(t, l, func(*Policy) {})
				if a.Decision != c.want || (a.Execution != nil) != (c.want == "") {
					t.Fatalf("%+v", a)
				}
				if c.want == "" && (len(l.behind) != 2 || l.behind[1] != 7) {
					t.Errorf("it waits behind %v", l.behind)
				}
				if a.Execution != nil {
					a.Execution.Release(Failure{})
				}
			})
		})
	}
}
