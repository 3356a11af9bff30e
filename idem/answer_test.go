package idem

import "testing"

func TestOnlyAnAnswerThatTheRouteKeepsSettlesItsEvent(t *testing.T) {
	for status, want := range map[int]End{
		200: {Status: Success, Outcome: Executed, Kept: true},
		299: {Status: Success, Outcome: Executed, Kept: true},
		302: {Status: Failed, Outcome: Executed},
		404: {Status: Failed, Outcome: Executed, Kept: true}, // the route says so
		409: {Status: Failed, Outcome: Executed},
		500: {Status: Failed, Outcome: Executed},
		503: {Status: Failed, Outcome: Executed},
		502: {Status: Failed, Outcome: Unknown}, // the route says so
		201: {Status: Failed, Outcome: Unknown}, // so does it, and that comes before what it keeps
	} {
		o, clock := &oneLock{}, noon
		x := admitted(t, o, &clock, func(p *Policy) {
			p.Keep.Add(404, 404)
			p.Unknown.Add(502, 502)
			p.Unknown.Add(201, 201)
		})
		x.Complete(Answer{Status: status, Whole: true})
		if len(o.settled) != 1 {
			t.Fatalf("%d: settled %d times", status, len(o.settled))
		}
		got := o.settled[0]
		if got.Status != want.Status || got.Outcome != want.Outcome || got.Kept != want.Kept || (got.Error != nil) != (want.Status == Failed) {
			t.Errorf("%d: %+v, want %+v", status, got, want)
		}
	}
}

func TestWithoutIdempotencyNoAnswerSettlesAnything(t *testing.T) {
	o, clock := &oneLock{}, noon
	admitted(t, o, &clock, func(p *Policy) { p.Idempotency = false }).Complete(Answer{Status: 200, Whole: true})
	if o.settled[0].Kept {
		t.Errorf("%+v", o.settled[0])
	}
}

func TestReplayBodyBoundsWhatIsKeptOfAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		status, bytes int
		inFlight      InFlight
		whole         bool
	}{
		"just as long as allowed":                          {200, 8, Conflict, true},
		"longer":                                           {200, 9, Conflict, false},
		"longer, and a copy is attached":                   {200, 9, Attach, false},
		"not kept, so nobody gets it":                      {500, 8, Conflict, false},
		"not kept, but a copy that is attached may get it": {500, 8, Attach, true},
	} {
		o, clock := &oneLock{}, noon
		x := admitted(t, o, &clock, func(p *Policy) { p.ReplayBody, p.InFlight = 8, c.inFlight })
		x.Complete(Answer{Status: c.status, Whole: true, Bytes: int64(c.bytes), Header: []HeaderField{{"A", "b"}}, Body: make([]byte, c.bytes)})
		a := o.settled[0].Answer
		if a.Status != c.status || a.Bytes != int64(c.bytes) {
			t.Errorf("%s: %+v", name, a)
		}
		if a.Whole != c.whole || (a.Body != nil) != c.whole || (a.Header != nil) != c.whole {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// attachedTo is what a copy gets that was attached to exec_first, when the ledger says how that ended.
func attachedTo(t *testing.T, ended *Seen, change func(*Request, *Policy)) Admission {
	t.Helper()
	running := Seen{Lock: &Lock{Entry: Entry{Execution: "exec_first", Scope: Scope{Workflow: "w", Key: keyA}, Token: 5}}}
	l := &counting{seen: running, follow: ended, copies: map[ExecutionID]int{}}
	p := testPolicy()
	p.InFlight, p.MaxWaiting, p.AttachTimeout = Attach, 1, MinHold
	r := &Request{Scope: Scope{Workflow: "w", Key: keyA}, Policy: p}
	if change != nil {
		change(r, p)
	}
	g := NewGuard(GuardOptions{Ledger: l, Base: t.Context(), Cache: NewCache(0), MaxWaiting: func() int { return 1 }})
	return g.Admit(t.Context(), r)
}

func TestAnAttachedDuplicateGetsTheEndOfTheExecutionThatItIsAttachedTo(t *testing.T) {
	answer := &Answer{Status: 500, Whole: true}
	for name, c := range map[string]struct {
		seen Seen
		want Decision
	}{
		"its answer": {Seen{Record: &Record{Entry: Entry{Execution: "exec_first"}, End: End{Status: Failed, Outcome: Executed, Answer: answer}}}, DecisionAttached},
		"not that of the event's next execution, which settles nothing": {
			Seen{Record: &Record{Entry: Entry{Execution: "exec_next"}, End: End{Status: Failed, Outcome: Executed, Answer: answer}}}, DecisionLockLost},
		"nor its unknown outcome":                            {Seen{Record: &Record{Entry: Entry{Execution: "exec_next"}, End: End{Status: Failed, Outcome: Unknown, Error: &Failure{Code: "upstream_timeout"}}}}, DecisionLockLost},
		"but the answer of the next one, where that settles": {Seen{Record: &Record{Entry: Entry{Execution: "exec_next"}, End: End{Status: Success, Outcome: Executed, Kept: true, Answer: answer}}}, DecisionAttached},
		"its time-out":                      {Seen{Record: &Record{Entry: Entry{Execution: "exec_first"}, End: End{Status: Failed, Outcome: Unknown, Error: &Failure{Code: "upstream_timeout"}}}}, DecisionUpstreamTimeout},
		"its abort":                         {Seen{Record: &Record{Entry: Entry{Execution: "exec_first"}, End: End{Status: Aborted, Outcome: Unknown, Abort: &Cancel{By: "ops"}}}}, DecisionAborted},
		"nothing, where nobody can tell":    {Seen{}, DecisionLockLost},
		"its release, which reached nobody": {Seen{Released: true}, DecisionUpstreamUnreachable},
	} {
		if got := attachedTo(t, &c.seen, nil); got.Decision != c.want {
			t.Errorf("%s: %q, want %q", name, got.Decision, c.want)
		}
	}
}

func TestAnAttachedDuplicateWithOtherCredentialsGetsTheStatusAlone(t *testing.T) {
	ended := &Seen{Record: &Record{Entry: Entry{Execution: "exec_first", Credentials: "alice"}, End: End{Status: Success, Outcome: Executed, Kept: true, Answer: &Answer{Status: 200, Whole: true}}}}
	login := func(name string) func(ExecutionID) string { return func(ExecutionID) string { return name } }
	for name, c := range map[string]struct {
		credentials func(ExecutionID) string
		verified    bool
		statusOnly  bool
	}{
		"the same":                   {login("alice"), false, false},
		"others":                     {login("bob"), false, true},
		"none":                       {nil, false, true},
		"others, on a route's proof": {login("bob"), true, false},
	} {
		got := attachedTo(t, ended, func(r *Request, p *Policy) { r.Credentials, p.Verified = c.credentials, c.verified })
		if got.Decision != DecisionAttached || got.StatusOnly != c.statusOnly {
			t.Errorf("%s: %+v", name, got.Verdict)
		}
	}
}

func TestACacheThatIsResetKnowsNothing(t *testing.T) {
	c := NewCache(0)
	for i := range 3 {
		c.add(cached(i), c.seenAt(noon), MinHold)
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
	c.add(cached(1), c.seenAt(noon), MinHold)
	if c.get(cached(1).Scope.Key, noon) == nil {
		t.Error("it takes nothing any more")
	}
}
