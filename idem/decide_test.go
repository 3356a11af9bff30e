package idem

import (
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func testPolicy() *Policy {
	p := &Policy{
		Route: "r", Strategy: FailFast, Idempotency: true, Retention: 24 * time.Hour, PayloadRetention: time.Minute,
		ReplayBody: 1 << 16,
		OnMismatch: MismatchReject, OnUnknown: UnknownRetry,
	}
	p.Keep.Add(200, 299)
	return p
}

const (
	keyA = Key("00000000000000aa-000000000000000000000000000000aa")
	keyB = Key("00000000000000bb-000000000000000000000000000000bb")
)

// seenBy changes what a test's delivery meets; the delivery is event A of workflow w with
// fingerprint 1.
type seenBy func(*Obstacle, *Policy)

func record(change ...func(*Record)) seenBy {
	return func(s *Obstacle, _ *Policy) {
		s.Record = &Record{
			ExecutionFacts: ExecutionFacts{
				Execution: "exec_first", Scope: Scope{Workflow: "w", Key: keyA}, Fingerprint: Fingerprint{1},
				Attempt: 1, Retention: time.Hour,
			},
			End: End{Status: Success, Outcome: Executed, Remembered: true,
				Answer: &Answer{Status: 200, Whole: true}},
			Revision: 7,
		}
		s.RecordRevision = 7
		for _, f := range change {
			f(s.Record)
		}
	}
}

func lockOf(key Key, change ...func(*Lock)) seenBy {
	return func(s *Obstacle, _ *Policy) {
		s.Lock = &Lock{ExecutionFacts: ExecutionFacts{Execution: "exec_holder", Scope: Scope{Workflow: "w", Key: key},
			Fingerprint: Fingerprint{1}}}
		for _, f := range change {
			f(s.Lock)
		}
	}
}

func unknownOutcome(r *Record) {
	r.Status, r.Outcome, r.Remembered, r.Answer = Failed, Unknown, false, nil
}

func replaced(r *Record) {
	r.Status, r.Outcome, r.Remembered, r.Answer = Aborted, NotExecuted, false, nil
	r.Abort, r.Final = &Cancel{Final: true, Successor: "exec_newer"}, true
}

func newerWaits(s *Obstacle, _ *Policy) {
	s.Newer = &Lock{ExecutionFacts: ExecutionFacts{Execution: "exec_newer"}}
}

// failedOften is a record of an event whose attempts all ended at once, the newest a moment ago.
func failedOften(n int, since time.Duration, change ...func(*Record)) seenBy {
	return record(notKept, func(r *Record) {
		r.Attempt, r.StartedAt, r.FinishedAt = n, noon.Add(-since), noon.Add(-since)
		r.Answer.Status = 502
		for range min(n-1, maxEarlier) {
			r.Earlier = append(r.Earlier, Attempt{Status: Failed, Outcome: Unknown, StartedAt: noon.Add(-time.Hour),
				FinishedAt: noon.Add(-time.Hour)})
		}
		for _, f := range change {
			f(r)
		}
	})
}

// neverSent makes the newest earlier attempt one that provably did not run.
func neverSent(r *Record) { r.Earlier[len(r.Earlier)-1].Outcome = NotExecuted }

func failedTries(n int) func(*Record) {
	return func(r *Record) { r.Tries, r.FailedTries = 3*n, n }
}

func notKept(r *Record) {
	r.Status, r.Remembered, r.Answer = Failed, false, &Answer{Status: 500}
}
func changed(r *Record)   { r.Fingerprint = Fingerprint{2} }
func old(r *Record)       { r.FinishedAt = noon.Add(-48 * time.Hour) }
func changedLock(l *Lock) { l.Fingerprint = Fingerprint{2} }
func dead(l *Lock)        { l.Dead = true }
func cooling(l *Lock)     { l.Cooling, l.CoolUntil = true, noon.Add(9*time.Second) }
func finalAbort(r *Record) {
	r.Status, r.Outcome, r.Remembered, r.Abort, r.Final = Aborted, NotExecuted, false, &Cancel{Final: true}, true
}
func aborted(r *Record) {
	r.Status, r.Outcome, r.Remembered, r.Answer, r.Abort = Aborted, Unknown, false, nil, &Cancel{By: "ops"}
}
func keptFailure(r *Record) { r.Status, r.Answer = Failed, &Answer{Status: 422, Whole: true} }
func otherLogin(r *Record)  { r.Credentials = "somebody else" }
func waiting(s *Obstacle, _ *Policy) {
	s.Waiting = &Lock{ExecutionFacts: ExecutionFacts{Execution: "exec_waiter", Scope: Scope{Workflow: "w", Key: keyA},
		Fingerprint: Fingerprint{1}}}
}
func waitingChanged(s *Obstacle, _ *Policy) {
	s.Waiting = &Lock{ExecutionFacts: ExecutionFacts{Execution: "exec_waiter", Scope: Scope{Workflow: "w", Key: keyA},
		Fingerprint: Fingerprint{2}}}
}
func queue(s *Obstacle, _ *Policy) { s.Queue = true }

func policy(change func(*Policy)) seenBy { return func(_ *Obstacle, p *Policy) { change(p) } }

var (
	onMismatchReplay = policy(func(p *Policy) { p.OnMismatch = MismatchReplay })
	onUnknownBlock   = policy(func(p *Policy) { p.OnUnknown = UnknownBlock })
	verified         = policy(func(p *Policy) { p.Verified = true })
	fiveAttempts     = policy(func(p *Policy) { p.Attempts = 5 })
)

func TestDecide(t *testing.T) {
	const run = Decision("") // it may claim the lock
	for sentence, c := range map[string]struct {
		sees []seenBy
		want Decision
	}{
		"an event that nobody knows runs": {nil, run},
		"a settled event is replayed":     {[]seenBy{record()}, DecisionReplayed},
		"a settled event is replayed while another event runs": {[]seenBy{record(), lockOf(keyB)},
			DecisionReplayed},
		"a settled event is replayed though the lock's owner is dead": {[]seenBy{record(), lockOf(keyB, dead)},
			DecisionReplayed},
		"an answer that is not kept lets the event run again": {[]seenBy{record(notKept)}, run},
		"a record counts for as long as the ledger has it":    {[]seenBy{record(old)}, DecisionReplayed},
		"a known key with another fingerprint is a mismatch":  {[]seenBy{record(changed)}, DecisionMismatch},
		"a failure binds no bytes: it runs with others":       {[]seenBy{record(changed, notKept)}, run},
		"nor does an unknown outcome that may run again": {[]seenBy{record(changed, unknownOutcome)},
			run},
		"nor while its lock cools": {[]seenBy{record(changed, unknownOutcome),
			lockOf(keyA, cooling)}, DecisionLocked},
		"nor a cancel that was not final": {[]seenBy{record(changed, aborted)}, run},
		"nor while another event runs": {[]seenBy{record(changed, notKept),
			lockOf(keyB)}, DecisionLocked},
		"an answer of a failure that is kept binds": {[]seenBy{record(changed, keptFailure)},
			DecisionMismatch},
		"so does an unknown outcome that waits for a person": {[]seenBy{record(changed, unknownOutcome),
			onUnknownBlock}, DecisionMismatch},
		"so does an event that was cancelled for good": {[]seenBy{record(changed, finalAbort)},
			DecisionMismatch},
		"so does one that a newer one has replaced": {[]seenBy{record(changed, replaced)},
			DecisionMismatch},
		"what runs binds, and not the failure before it": {[]seenBy{record(notKept),
			lockOf(keyA, changedLock)}, DecisionMismatch},
		"a copy of what runs after a failure with other bytes": {[]seenBy{record(changed, notKept),
			lockOf(keyA)}, DecisionInFlight},
		"a copy of what waits after a failure with other bytes": {[]seenBy{record(changed, notKept),
			lockOf(keyB), waiting}, DecisionInFlight},
		"what runs binds its bytes": {[]seenBy{lockOf(keyA, changedLock)},
			DecisionMismatch},
		"a mismatch is told before a lock": {[]seenBy{record(changed), lockOf(keyB)},
			DecisionMismatch},
		"on_mismatch replay: the event ID alone decides": {[]seenBy{record(changed), onMismatchReplay},
			DecisionReplayed},
		"on_mismatch replay: also while it runs": {[]seenBy{lockOf(keyA, changedLock),
			onMismatchReplay}, DecisionInFlight},
		"a copy of a running event is in flight": {[]seenBy{lockOf(keyA)}, DecisionInFlight},
		"in flight is told before an earlier record": {[]seenBy{record(notKept), lockOf(keyA)},
			DecisionInFlight},
		"a copy of a waiting event is in flight, before the lock": {[]seenBy{lockOf(keyB), queue, waiting},
			DecisionInFlight},
		"a copy of a waiting event with another payload is a mismatch": {[]seenBy{lockOf(keyB), queue, waitingChanged},
			DecisionMismatch},
		"another event of the workflow is locked out": {[]seenBy{lockOf(keyB)}, DecisionLocked},
		"so it is while others wait":                  {[]seenBy{queue}, DecisionLocked},
		"a dead owner's lock is reaped first":         {[]seenBy{lockOf(keyB, dead)}, run},
		"so it is when it was this event":             {[]seenBy{lockOf(keyA, dead)}, run},
		"a cooling lock is closed": {[]seenBy{lockOf(keyB, cooling)},
			DecisionLocked},
		"a cooling lock is closed for its own event too": {[]seenBy{record(unknownOutcome),
			lockOf(keyA, cooling)}, DecisionLocked},
		"on_unknown retry: it runs again": {[]seenBy{record(unknownOutcome)}, run},
		"on_unknown block: somebody has to look": {[]seenBy{record(unknownOutcome),
			onUnknownBlock}, DecisionUnknown},
		"on_unknown block: told before the lock": {[]seenBy{record(unknownOutcome),
			lockOf(keyA, cooling), onUnknownBlock}, DecisionUnknown},
		"an event that was cancelled for good never runs": {[]seenBy{record(finalAbort)}, DecisionAborted},
		"an event that a newer one has replaced never runs": {[]seenBy{record(replaced)},
			DecisionSuperseded},
		"so it is while the newer one runs": {[]seenBy{record(replaced), lockOf(keyB)},
			DecisionSuperseded},
		"one that is older than who waits does not wait": {[]seenBy{newerWaits}, DecisionSuperseded},
		"a duplicate with other credentials is replayed": {[]seenBy{record(otherLogin)},
			DecisionReplayed},

		"an event runs for the last time that it may": {[]seenBy{failedOften(4, time.Hour),
			fiveAttempts}, run},
		"and then waits for a person": {[]seenBy{failedOften(5, time.Hour),
			fiveAttempts}, DecisionExhausted},
		"also with so many attempts that the oldest are forgotten": {[]seenBy{failedOften(40, time.Hour),
			policy(func(p *Policy) {
				p.Attempts = 40
			})}, DecisionExhausted},
		"one that provably did not run does not count": {[]seenBy{failedOften(5, time.Hour, neverSent),
			fiveAttempts}, run},
		"nor the newest, if it was that": {[]seenBy{failedOften(5, time.Hour, func(r *Record) {
			r.Outcome = NotExecuted
		}), fiveAttempts}, run},
		"the tries of a parked one count, if they failed": {[]seenBy{failedOften(2, time.Hour,
			failedTries(4)), fiveAttempts}, DecisionExhausted},
		"and not if they did not reach the service": {[]seenBy{failedOften(2, time.Hour,
			failedTries(3)), fiveAttempts}, run},
		"attempts: 0 counts none": {[]seenBy{failedOften(500, time.Hour)}, run},
		"an event that waits for a person is told before the lock": {[]seenBy{failedOften(5, time.Hour),
			fiveAttempts, lockOf(keyB)}, DecisionExhausted},
		"a copy of it that runs, because a person wants that, before": {[]seenBy{failedOften(5, time.Hour),
			fiveAttempts, lockOf(keyA)}, DecisionInFlight},
		"it binds its bytes": {[]seenBy{failedOften(5, time.Hour, changed),
			fiveAttempts}, DecisionMismatch},
		"an unknown outcome that blocks is told first": {[]seenBy{failedOften(5, time.Hour,
			unknownOutcome), fiveAttempts, onUnknownBlock}, DecisionUnknown},
		"a success after many failures is replayed": {[]seenBy{failedOften(9, time.Hour, func(r *Record) {
			r.Status, r.Remembered = Success, true
		}), fiveAttempts}, DecisionReplayed},
		"one that was cancelled for good stays so": {[]seenBy{failedOften(9, time.Hour, func(r *Record) {
			r.Final = true
		}), fiveAttempts}, DecisionAborted},

		"three attempts that end at once pace nothing": {[]seenBy{failedOften(3, 0)}, run},
		"four pace the event for a second": {[]seenBy{failedOften(4, 999*time.Millisecond)},
			DecisionPaced},
		"and no longer": {[]seenBy{failedOften(4, time.Second)}, run},
		"the pause doubles": {[]seenBy{failedOften(7, 7999*time.Millisecond)},
			DecisionPaced},
		"to twice, four times, eight times that": {[]seenBy{failedOften(7, 8*time.Second)}, run},
		"at most to five minutes": {[]seenBy{failedOften(21, 299*time.Second)},
			DecisionPaced},
		"whatever the number": {[]seenBy{failedOften(400, 300*time.Second)}, run},
		"also without an answer": {[]seenBy{failedOften(4, 0, unknownOutcome)},
			DecisionPaced},
		"a service that answers is there": {[]seenBy{failedOften(7, 0, func(r *Record) {
			r.Answer.Status = 500
		})}, run},
		"another request of the event is not paced": {[]seenBy{failedOften(7, time.Second, changed)}, run},
		"nor one whose latest attempt took its time": {[]seenBy{failedOften(7, 0, func(r *Record) {
			r.StartedAt = noon.Add(-time.Second)
		})}, run},
		"nor one whose latest attempt was cancelled": {[]seenBy{failedOften(7, 0, aborted, func(r *Record) {
			r.Earlier[3].StartedAt = noon.Add(-2 * time.Hour)
		})}, run},
		"an attempt that took its time begins the count": {[]seenBy{failedOften(7, 1500*time.Millisecond,
			func(r *Record) {
				r.Earlier[1].StartedAt = noon.Add(-2 * time.Hour)
			})}, DecisionPaced},
		"and with it the doubling": {[]seenBy{failedOften(7, 2*time.Second, func(r *Record) {
			r.Earlier[1].StartedAt = noon.Add(-2 * time.Hour)
		})}, run},
		"a clock that is ahead by hours paces for no hours": {[]seenBy{failedOften(4, -3*time.Hour)}, run},
		"a paced event is told so before the lock":          {[]seenBy{failedOften(4, 0), lockOf(keyB)}, DecisionPaced},
		"also while its lock cools": {[]seenBy{failedOften(4, 0), lockOf(keyA, cooling)},
			DecisionPaced},
		"an attempt whose owner has died is reaped first": {[]seenBy{failedOften(4, 0), lockOf(keyA, dead)}, run},
	} {
		t.Run(sentence, func(t *testing.T) {
			seen, p := &Obstacle{}, testPolicy()
			for _, f := range c.sees {
				f(seen, p)
			}
			v := Decide(seen, &Request{Scope: Scope{Workflow: "w", Key: keyA}, Fingerprint: Fingerprint{1}, Policy: p},
				noon)
			if v.Decision != c.want {
				t.Errorf("got %q, want %q", v.Decision, c.want)
			}
			if reaps := v.Reap != nil; reaps != (c.want == run && seen.Lock != nil && seen.Lock.Dead) {
				t.Errorf("reaps: %v", reaps)
			}
			if v.Decision == run && v.Reap == nil && v.Prev != seen.RecordRevision {
				t.Errorf("claims over revision %d, saw %d", v.Prev, seen.RecordRevision)
			}
			if v.Decision == DecisionPaced && (v.RetryAfter <= 0 || v.RetryAfter > 5*time.Minute ||
				v.Holder != "exec_first") {
				t.Errorf("paced: %+v", v)
			}
		})
	}
}

func TestADuplicateThatIsAnotherRequestSaysWhatDiffers(t *testing.T) {
	parts := func(body string) (p Parts) {
		p.Set(PartMethod, []byte("POST"))
		p.Set(PartBody, []byte(body))
		return p
	}
	firing := func(e *ExecutionFacts) { e.Fingerprint, e.Parts = Fingerprint{2}, parts("firing") }
	for sentence, c := range map[string]struct {
		sees []seenBy
		want bool
	}{
		"of a settled event": {[]seenBy{record(func(r *Record) {
			firing(&r.ExecutionFacts)
		}), onMismatchReplay}, true},
		"of a running event": {[]seenBy{lockOf(keyA, func(l *Lock) {
			firing(&l.ExecutionFacts)
		}), onMismatchReplay}, true},
		"not of the same bytes": {[]seenBy{record(), onMismatchReplay}, false},
		"not of another event":  {[]seenBy{lockOf(keyB, func(l *Lock) { firing(&l.ExecutionFacts) })}, false},
	} {
		seen, p := &Obstacle{}, testPolicy()
		for _, f := range c.sees {
			f(seen, p)
		}
		r := &Request{Scope: Scope{Workflow: "w", Key: keyA}, Fingerprint: Fingerprint{1}, Parts: parts("resolved"),
			Policy: p}
		v := Decide(seen, r, noon)
		if v.Changed != c.want || c.want != (len(v.Differs) == 1 && v.Differs[0] == "body") {
			t.Errorf("%s: %q, changed %v, differs %v", sentence, v.Decision, v.Changed, v.Differs)
		}
		if seen.Record == nil {
			continue
		}
		if v := DecideAttached(seen, r, "exec_first"); v.Decision != DecisionAttached || v.Changed != c.want {
			t.Errorf("%s, attached: %q, changed %v", sentence, v.Decision, v.Changed)
		}
	}
}

func TestOtherCredentialsGetTheStatusAloneUnlessSigned(t *testing.T) {
	for _, c := range []struct {
		sees []seenBy
		want bool
	}{
		{[]seenBy{record()}, false},
		{[]seenBy{record(otherLogin)}, true},
		{[]seenBy{record(otherLogin), verified}, false},
	} {
		seen, p := &Obstacle{}, testPolicy()
		for _, f := range c.sees {
			f(seen, p)
		}
		r := &Request{Scope: Scope{Workflow: "w", Key: keyA}, Fingerprint: Fingerprint{1}, Policy: p}
		if got := Decide(seen, r, noon).StatusOnly; got != c.want {
			t.Errorf("verified %v, record credentials %q: status only %v, want %v", p.Verified, seen.Record.Credentials,
				got, c.want)
		}
	}
}

func TestAnAttemptWithTheRequestOfAnEarlierOneKnowsItsSender(t *testing.T) {
	digest := func(id ExecutionID) string { return "secret of " + string(id) }
	for credentials, want := range map[string]bool{digest("exec_first"): false, digest("exec_other"): true, "": true} {
		seen, p := &Obstacle{}, testPolicy()
		record(func(r *Record) {
			r.Credentials, r.Earlier = credentials, []Attempt{{Execution: "exec_first", Settled: true}}
		})(seen, p)
		r := &Request{Scope: Scope{Workflow: "w", Key: keyA}, Fingerprint: Fingerprint{1}, Policy: p,
			Credentials: digest}
		if got := Decide(seen, r, noon); got.Decision != DecisionReplayed || got.StatusOnly != want {
			t.Errorf("%q: %+v", credentials, got)
		}
	}
}

func TestAnotherAttemptRemembersTheOnesBefore(t *testing.T) {
	seen := &Obstacle{}
	record(notKept)(seen, nil)
	for i := range maxEarlier {
		seen.Record.Earlier = append(seen.Record.Earlier, Attempt{StartedAt: noon.Add(time.Duration(i) * time.Second)})
	}
	seen.Record.Attempt = maxEarlier + 1
	v := Decide(seen, &Request{Scope: Scope{Workflow: "w", Key: keyA}, Fingerprint: Fingerprint{1},
		Policy: testPolicy()}, noon)
	if v.Attempt != maxEarlier+2 {
		t.Errorf("attempt %d", v.Attempt)
	}
	if len(v.Earlier) != maxEarlier || v.Earlier[maxEarlier-1].Execution != "exec_first" ||
		v.Earlier[0].StartedAt != noon.Add(time.Second) {
		t.Errorf("earlier: %d, first %v, last %v", len(v.Earlier), v.Earlier[0].StartedAt,
			v.Earlier[len(v.Earlier)-1].Execution)
	}
	if len(seen.Record.Earlier) != maxEarlier || seen.Record.Earlier[0].StartedAt != noon {
		t.Error("the record that was read has changed")
	}
}

func TestAnotherAttemptSaysWhatItsRequestHasOtherwise(t *testing.T) {
	parts := func(body string) (p Parts) {
		p.Set(PartPath, []byte("/hooks/a"))
		p.Set(PartBody, []byte(body))
		return p
	}
	for name, c := range map[string]struct {
		before, now Parts
		want        []string
	}{
		"another body":               {parts("malformed"), parts("right"), []string{"body"}},
		"the same request":           {parts("right"), parts("right"), nil},
		"a record of an old release": {Parts{}, parts("right"), nil},
	} {
		v := decided(func(r *Request) {
			r.Fingerprint, r.Parts = Fingerprint{2}, c.now
		}, record(notKept, func(r *Record) { r.Parts = c.before }))
		if v.Decision != "" || v.Attempt != 2 || len(v.Earlier) != 1 ||
			!slices.Equal(v.Earlier[0].NextDiffers, c.want) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// The first one has failed, and the event ran again with other bytes before its copy heard of that.
func TestAnAttachedCopyDoesNotGetTheAnswerToOtherBytes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Record)
		want   Decision
	}{
		"its own bytes":           {func(*Record) {}, DecisionAttached},
		"other bytes":             {changed, DecisionMismatch},
		"other bytes that failed": {func(r *Record) { changed(r); notKept(r) }, DecisionLockLost},
	} {
		seen, p := &Obstacle{}, testPolicy()
		record(c.change)(seen, p)
		r := &Request{Scope: Scope{Workflow: "w", Key: keyA}, Fingerprint: Fingerprint{1}, Policy: p}
		if v := DecideAttached(seen, r, "exec_before"); v.Decision != c.want {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestCoolingLockTellsHowLong(t *testing.T) {
	seen := &Obstacle{}
	lockOf(keyB, cooling)(seen, nil)
	v := Decide(seen, &Request{Scope: Scope{Workflow: "w", Key: keyA}, Policy: testPolicy()}, noon)
	if v.RetryAfter != 9*time.Second || v.Holder != "exec_holder" {
		t.Errorf("got %v, %q", v.RetryAfter, v.Holder)
	}
}

func TestADeliveryThatMeetsAnExecutionLearnsItsTrace(t *testing.T) {
	const first, holder = "trace of the first", "trace of the holder"
	for name, seen := range map[string]Obstacle{
		first: {Record: &Record{ExecutionFacts: ExecutionFacts{Execution: "exec_first", Scope: Scope{Key: keyA},
			Fingerprint: Fingerprint{1}, TraceParent: first}, End: End{Outcome: Executed, Remembered: true}}},
		holder: {Lock: &Lock{ExecutionFacts: ExecutionFacts{Execution: "exec_holder", Scope: Scope{Key: keyB},
			TraceParent: holder}}},
		"": {},
	} {
		r := &Request{Scope: Scope{Workflow: "w", Key: keyA}, Fingerprint: Fingerprint{1}, Policy: testPolicy()}
		if got := Decide(&seen, r, noon).HolderTrace; got != name {
			t.Errorf("%q, want %q", got, name)
		}
	}
}
