package idem

import (
	"testing"
	"time"
)

// decided is what event A of workflow w gets when it meets sees.
func decided(change func(*Request), sees ...seenBy) Verdict {
	seen, p := &Obstacle{}, testPolicy()
	for _, f := range sees {
		f(seen, p)
	}
	r := &Request{Scope: Scope{Workflow: "w", Key: keyA}, Fingerprint: Fingerprint{1}, Policy: p}
	if change != nil {
		change(r)
	}
	return Decide(seen, r, noon)
}

func traced(s *Obstacle, _ *Policy) {
	if s.Record != nil {
		s.Record.TraceParent = "trace of the record"
	}
	if s.Lock != nil {
		s.Lock.TraceParent = "trace of the lock"
	}
	if s.Waiting != nil {
		s.Waiting.TraceParent = "trace of the waiter"
	}
}

// The sender and a reader of the log look for the execution that stood in the way by its ID and its
// trace.
func TestAVerdictNamesTheExecutionInItsWay(t *testing.T) {
	const record1, lock1, waiter1 = "trace of the record", "trace of the lock", "trace of the waiter"
	for name, c := range map[string]struct {
		sees   []seenBy
		want   Decision
		holder ExecutionID
		trace  string
		record bool // the verdict shows what the first one got
		copied bool // the verdict has the execution that a copy may be attached to
	}{
		"mismatch with a record": {[]seenBy{record(changed), lockOf(keyB)}, DecisionMismatch, "exec_first",
			record1, false, false},
		"mismatch with a running copy": {[]seenBy{lockOf(keyA, changedLock)}, DecisionMismatch, "exec_holder", lock1,
			false, false},
		"in flight": {[]seenBy{record(notKept), lockOf(keyA)}, DecisionInFlight, "exec_holder",
			lock1, false, true},
		"in flight, the copy waits": {[]seenBy{record(notKept), lockOf(keyB), waiting}, DecisionInFlight,
			"exec_waiter", waiter1, false, true},
		"settled, and a copy waits": {[]seenBy{record(), lockOf(keyB), waiting}, DecisionInFlight, "exec_waiter",
			waiter1, false, true},
		"replayed, another runs": {[]seenBy{record(), lockOf(keyB)}, DecisionReplayed, "exec_first", record1,
			true, false},
		"cancelled for good": {[]seenBy{record(finalAbort), lockOf(keyB)}, DecisionAborted, "exec_first",
			record1, true, false},
		"unknown": {[]seenBy{record(unknownOutcome), lockOf(keyB), onUnknownBlock},
			DecisionUnknown, "exec_first", record1, true, false},
		"locked": {[]seenBy{record(notKept), lockOf(keyB)}, DecisionLocked, "exec_holder",
			lock1, false, false},
		"nobody known, and others wait":  {[]seenBy{record(notKept), queue}, DecisionLocked, "", "", false, false},
		"nothing kept, blocked: it runs": {[]seenBy{record(notKept), onUnknownBlock}, "", "", "", false, false},
	} {
		v := decided(nil, append(c.sees, traced)...)
		if v.Decision != c.want || v.Holder != c.holder || v.HolderTrace != c.trace || (v.Record != nil) != c.record ||
			(v.Copy != nil) != c.copied {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestARefusalSaysForHowLongTheLockIsTaken(t *testing.T) {
	held := func(l *Lock) { l.Held, l.HoldUntil, l.Revision = true, noon.Add(42*time.Second), 7 }
	unseen := func(l *Lock) { l.Held, l.Revision = true, 7 }
	running := func(l *Lock) { l.Revision, l.HoldUntil, l.CoolUntil = 7, noon.Add(time.Hour), noon.Add(time.Hour) }
	closed := func(l *Lock) { cooling(l); l.Revision = 7 }
	since := func(d time.Duration) func(*Lock) { return func(l *Lock) { l.StartedAt = noon.Add(-d) } }
	for name, c := range map[string]struct {
		sees   []seenBy
		after  time.Duration
		closed time.Time
		behind int64
	}{
		"another event is held":           {[]seenBy{lockOf(keyB, held)}, 42 * time.Second, time.Time{}, 7},
		"held, nobody knows for how long": {[]seenBy{lockOf(keyB, unseen)}, 0, time.Time{}, 7},
		"another event runs":              {[]seenBy{lockOf(keyB, running)}, 0, time.Time{}, 7},
		"it has run for long": {[]seenBy{lockOf(keyB, running, since(42*time.Second))}, 42 * time.Second,
			time.Time{}, 7},
		"its clock is ahead": {[]seenBy{lockOf(keyB, running, since(-time.Hour))}, -time.Hour, time.Time{},
			7},
		"the lock cools": {[]seenBy{lockOf(keyB, closed)}, 9 * time.Second, noon.Add(9 * time.Second),
			7},
		"the queue": {[]seenBy{queue}, 0, time.Time{}, 0},
	} {
		v := decided(nil, c.sees...)
		if v.Decision != DecisionLocked || v.RetryAfter != c.after || !v.ClosedUntil.Equal(c.closed) ||
			v.Behind != c.behind {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestTheFirstAttemptOfAnEventIsNumberOne(t *testing.T) {
	if v := decided(nil); v.Attempt != 1 || v.Earlier != nil {
		t.Errorf("%+v", v)
	}
	if v := decided(nil, record(notKept)); v.Attempt != 2 || len(v.Earlier) != 1 {
		t.Errorf("%+v", v)
	}
}

func TestASignatureIsNotEnoughWhereTheRouteNamesCredentials(t *testing.T) {
	named := policy(func(p *Policy) { p.Credentials = []string{"x-tenant"} })
	for login, want := range map[string]bool{"somebody else": false, "me": true} {
		v := decided(func(r *Request) {
			r.Credentials = func(ExecutionID) string { return login }
		}, record(otherLogin), verified, named)
		if v.Decision != DecisionReplayed || v.StatusOnly != want {
			t.Errorf("%s: %+v", login, v)
		}
	}
}

func TestAStatusOutsideOfASetIsNotInIt(t *testing.T) {
	var s StatusSet
	s.Add(-5, 0)
	s.Add(599, 2000)
	for status, want := range map[int]bool{-1: false, 0: true, 1: false, 598: false, 599: true, 639: true, 640: false,
		2000: false} {
		if s.Has(status) != want {
			t.Errorf("%d: %v", status, !want)
		}
	}
}

func TestARefusalSaysWhenAHoldRunsOut(t *testing.T) {
	held := &Lock{ExecutionFacts: ExecutionFacts{Execution: "exec_holder", Scope: Scope{Workflow: "w", Key: keyA}},
		Held:      true,
		HoldUntil: noon.Add(42 * time.Second)}
	for key, want := range map[Key]Decision{keyA: DecisionInFlight, keyB: DecisionLocked} {
		v := Decide(&Obstacle{Lock: held}, &Request{Scope: Scope{Workflow: "w", Key: key}, Policy: testPolicy()}, noon)
		if v.Decision != want || v.RetryAfter != 42*time.Second {
			t.Errorf("%+v", v)
		}
	}
}
