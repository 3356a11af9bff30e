package guard

import (
	"testing"

	"hooklock/idem"
)

func TestOnlyAnAnswerThatTheRouteKeepsSettlesItsEvent(t *testing.T) {
	for status, want := range map[int]idem.End{
		200: {Status: idem.Success, Outcome: idem.Executed, Remembered: true},
		299: {Status: idem.Success, Outcome: idem.Executed, Remembered: true},
		302: {Status: idem.Failed, Outcome: idem.Executed},
		404: {Status: idem.Failed, Outcome: idem.Executed, Remembered: true}, // the route says so
		409: {Status: idem.Failed, Outcome: idem.Executed},
		500: {Status: idem.Failed, Outcome: idem.Executed},
		503: {Status: idem.Failed, Outcome: idem.Executed},
		502: {Status: idem.Failed, Outcome: idem.Unknown}, // the route says so
		201: {Status: idem.Failed, Outcome: idem.Unknown}, // so does it, and that comes before what it keeps
	} {
		o, clock := &oneLock{}, noon
		x := admitted(t, o, &clock, func(p *idem.Policy) {
			p.Keep.Add(404, 404)
			p.Unknown.Add(502, 502)
			p.Unknown.Add(201, 201)
		})
		x.End(Tried{Answer: &idem.Answer{Status: status, Whole: true}})
		if len(o.settled) != 1 {
			t.Fatalf("%d: settled %d times", status, len(o.settled))
		}
		got := o.settled[0]
		if got.Status != want.Status || got.Outcome != want.Outcome || got.Remembered != want.Remembered ||
			(got.Error != nil) != (want.Status == idem.Failed) {
			t.Errorf("%d: %+v, want %+v", status, got, want)
		}
	}
}

func TestWithoutIdempotencyNoAnswerSettlesAnything(t *testing.T) {
	o, clock := &oneLock{}, noon
	admitted(t, o, &clock, func(p *idem.Policy) {
		p.Idempotency = false
	}).End(Tried{Answer: &idem.Answer{Status: 200, Whole: true}})
	if o.settled[0].Remembered {
		t.Errorf("%+v", o.settled[0])
	}
}

func TestReplayBodyBoundsWhatIsKeptOfAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		status, bytes int
		inFlight      idem.InFlight
		whole         bool
	}{
		"just as long as allowed":                          {200, 8, idem.Conflict, true},
		"longer":                                           {200, 9, idem.Conflict, false},
		"longer, and a copy is attached":                   {200, 9, idem.Attach, false},
		"not kept, so nobody gets it":                      {500, 8, idem.Conflict, false},
		"not kept, but a copy that is attached may get it": {500, 8, idem.Attach, true},
	} {
		o, clock := &oneLock{}, noon
		x := admitted(t, o, &clock, func(p *idem.Policy) { p.ReplayBody, p.InFlight = 8, c.inFlight })
		x.End(Tried{Answer: &idem.Answer{Status: c.status, Whole: true, Bytes: int64(c.bytes),
			Header: []idem.HeaderField{{Name: "A", Value: "b"}}, Body: make([]byte, c.bytes)}})
		a := o.settled[0].Answer
		if a.Status != c.status || a.Bytes != int64(c.bytes) {
			t.Errorf("%s: %+v", name, a)
		}
		if a.Whole != c.whole || (a.Body != nil) != c.whole || (a.Header != nil) != c.whole {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// attachedTo is what a copy gets that was attached to exec_first, when the ledger says how that
// ended.
func attachedTo(t *testing.T, ended *idem.Obstacle, change func(*idem.Request, *idem.Policy)) Admission {
	t.Helper()
	running := idem.Obstacle{Lock: &idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_first",
		Scope: idem.Scope{Workflow: "w", Key: keyA}, Token: 5}}}
	l := &counting{seen: running, follow: ended, copies: map[idem.ExecutionID]int{}}
	p := testPolicy()
	p.InFlight, p.MaxWaiting, p.AttachTimeout = idem.Attach, 1, minHold
	r := &idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyA}, Policy: p}
	if change != nil {
		change(r, p)
	}
	g := New(Options{Ledger: l, Base: t.Context(), Cache: NewCache(0), MaxWaiting: func() int { return 1 }})
	return g.Admit(t.Context(), r)
}

func TestAnAttachedDuplicateGetsTheEndOfTheExecutionThatItIsAttachedTo(t *testing.T) {
	answer := &idem.Answer{Status: 500, Whole: true}
	for name, c := range map[string]struct {
		seen idem.Obstacle
		want idem.Decision
	}{
		"its answer": {idem.Obstacle{Record: &idem.Record{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_first"},
			End: idem.End{Status: idem.Failed, Outcome: idem.Executed, Answer: answer}}}, idem.DecisionAttached},
		"not that of the event's next execution, which settles nothing": {
			idem.Obstacle{Record: &idem.Record{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_next"},
				End: idem.End{Status: idem.Failed, Outcome: idem.Executed, Answer: answer}}}, idem.DecisionLockLost},
		"nor its unknown outcome": {
			idem.Obstacle{Record: &idem.Record{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_next"},
				End: idem.End{Status: idem.Failed, Outcome: idem.Unknown,
					Error: &idem.Failure{Code: "upstream_timeout"}}}},
			idem.DecisionLockLost},
		"but the answer of the next one, where that settles": {
			idem.Obstacle{Record: &idem.Record{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_next"},
				End: idem.End{Status: idem.Success, Outcome: idem.Executed, Remembered: true, Answer: answer}}},
			idem.DecisionAttached},
		"its time-out": {
			idem.Obstacle{Record: &idem.Record{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_first"},
				End: idem.End{Status: idem.Failed, Outcome: idem.Unknown,
					Error: &idem.Failure{Code: "upstream_timeout"}}}},
			idem.DecisionUpstreamTimeout},
		"its abort": {
			idem.Obstacle{Record: &idem.Record{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_first"},
				End: idem.End{Status: idem.Aborted, Outcome: idem.Unknown, Abort: &idem.Cancel{By: "ops"}}}},
			idem.DecisionAborted},
		"nothing, where nobody can tell":    {idem.Obstacle{}, idem.DecisionLockLost},
		"its release, which reached nobody": {idem.Obstacle{Released: true}, idem.DecisionUpstreamUnreachable},
	} {
		if got := attachedTo(t, &c.seen, nil); got.Decision != c.want {
			t.Errorf("%s: %q, want %q", name, got.Decision, c.want)
		}
	}
}

func TestAnAttachedDuplicateWithOtherCredentialsGetsTheStatusAlone(t *testing.T) {
	ended := &idem.Obstacle{Record: &idem.Record{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_first",
		Credentials: "alice"},
		End: idem.End{Status: idem.Success, Outcome: idem.Executed, Remembered: true,
			Answer: &idem.Answer{Status: 200, Whole: true}}}}
	login := func(name string) func(idem.ExecutionID) string { return func(idem.ExecutionID) string { return name } }
	for name, c := range map[string]struct {
		credentials func(idem.ExecutionID) string
		verified    bool
		statusOnly  bool
	}{
		"the same":                   {login("alice"), false, false},
		"others":                     {login("bob"), false, true},
		"none":                       {nil, false, true},
		"others, on a route's proof": {login("bob"), true, false},
	} {
		got := attachedTo(t, ended, func(r *idem.Request, p *idem.Policy) {
			r.Credentials, p.Verified = c.credentials, c.verified
		})
		if got.Decision != idem.DecisionAttached || got.StatusOnly != c.statusOnly {
			t.Errorf("%s: %+v", name, got.Verdict)
		}
	}
}

func TestACacheThatIsResetKnowsNothing(t *testing.T) {
	c := NewCache(0)
	for i := range 3 {
		c.add(cached(i), c.beginRead(noon), minHold)
	}
	c.Reset()
	for i := range 3 {
		if c.get(cached(i).Scope.Key, noon) != nil {
			t.Errorf("record %d is still there", i)
		}
	}
	if c.bytes != 0 {
		t.Errorf("%d bytes of nothing", c.bytes)
	}
	c.add(cached(1), c.beginRead(noon), minHold)
	if c.get(cached(1).Scope.Key, noon) == nil {
		t.Error("it takes nothing any more")
	}
}
