package history_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/idem"
)

func TestEndedExecutionsOfAllProcessesAreListedInTheOrderOfTheirEnds(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	stores := []*etcdlock.Store{openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})}
	var want []idem.ExecutionID
	for i := range 60 {
		s := stores[i*i%7%2]
		want = append(want, endedAs(t, s, "w", fmt.Sprintf("event %d", i), func(l *idem.Lock) {
			l.Retention = time.Duration(1+i%3) * time.Hour
		}, success("body")))
	}
	slices.Reverse(want)
	for _, limit := range []int{0, 1, 7} {
		if got := ids(allExecutions(t, stores[0],
			idem.ExecutionQuery{PageSize: limit, Status: idem.Success})); !slices.Equal(got, want) {
			t.Fatalf("pages of %d: %q, want %q", limit, got, want)
		}
	}
	// What comes meanwhile is before the page that was read, and moves nothing behind it.
	page, err := stores[0].Executions(within(t, patience), idem.ExecutionQuery{PageSize: 20})
	if err != nil {
		t.Fatal(err)
	}
	endedAs(t, stores[1], "w", "later", nil, success("body"))
	rest := allExecutions(t, stores[1], idem.ExecutionQuery{PageSize: 20, Cursor: page.NextCursor})
	if got := append(ids(page.Executions), ids(rest)...); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWaitingAndRunningExecutionsAreListedTheNewestFirst(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	var waiting, running []idem.ExecutionID
	for i := range 5 {
		l := lockFor(fmt.Sprintf("w%d", i), "runs")
		mustClaim(t, s, l, 0)
		running = append(running, l.Execution)
		waiting = append(waiting, mustEnqueue(t, s, lockFor(fmt.Sprintf("w%d", i), "waits")).Lock.Execution)
	}
	slices.Reverse(waiting)
	slices.Reverse(running)
	for _, limit := range []int{0, 2} {
		if got, want := ids(allExecutions(t, s, idem.ExecutionQuery{PageSize: limit})), slices.Concat(waiting,
			running); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAnExecutionIsFoundByEachOfItsNames(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	event := func(name string) idem.Key { return idem.MakeKey(idem.HashEventID(name), [16]byte{1}) }
	mine := lockFor("stripe/acme", "x")
	n := byte(0)
	named := func(l *idem.Lock, name string) {
		l.Scope.Key, l.EventID, l.Route = event(name), name, "stripe"
		l.Execution = idem.NewExecutionID(l.Workflow, l.Scope.Key, [4]byte{n})
		n++
		l.TraceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	}
	named(&mine, "evt_123")
	unknown := idem.End{Status: idem.Failed, Outcome: idem.Unknown, FinishedAt: time.Now().Add(-time.Hour),
		Error: &idem.Failure{Code: "upstream_failed", Detail: "EOF"}}
	first, err := mustClaim(t, s, mine, 0).Settle(within(t, patience), unknown)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		endedAs(t, s, fmt.Sprintf("other/%d", i), "x", nil, success("body"))
	}
	again := mine
	named(&again, "evt_123")
	again.TraceParent, again.Attempt, again.Earlier = "00-11111111111111111111111111111111-b7ad6b7169203331-01", 2,
		[]idem.Attempt{first.AsAttempt()}
	if _, err := mustClaim(t, s, again, first.Revision).Settle(within(t, patience), success("body")); err != nil {
		t.Fatal(err)
	}
	running := lockFor("stripe/other", "y")
	named(&running, "evt_123")
	mustClaim(t, s, running, 0)
	both, one := []idem.ExecutionID{running.Execution, again.Execution}, []idem.ExecutionID{again.Execution}
	for name, c := range map[string]struct {
		q    idem.ExecutionQuery
		want []idem.ExecutionID
	}{
		"event ID":                        {idem.ExecutionQuery{EventID: "evt_123"}, both},
		"event ID, of a workflow":         {idem.ExecutionQuery{EventID: "evt_123", Workflow: "stripe/acme"}, one},
		"another event ID":                {idem.ExecutionQuery{EventID: "evt_12"}, nil},
		"key":                             {idem.ExecutionQuery{Key: string(again.Key), Workflow: "stripe/acme"}, one},
		"short key":                       {idem.ExecutionQuery{Key: again.Key.Short()}, both},
		"the beginning of its ID":         {idem.ExecutionQuery{IDPrefix: string(again.Execution[:20])}, one},
		"the ID of an earlier attempt":    {idem.ExecutionQuery{IDPrefix: string(mine.Execution)}, one},
		"trace":                           {idem.ExecutionQuery{TraceID: "11111111111111111111111111111111"}, one},
		"the trace of an earlier attempt": {idem.ExecutionQuery{TraceID: "0af7651916cd43dd8448eb211c80319c"}, both},
		"the beginning of the workflow":   {idem.ExecutionQuery{Prefix: "stripe/"}, both},
		"that and the status":             {idem.ExecutionQuery{Prefix: "stripe/", Status: idem.Success}, one},
		"route and outcome":               {idem.ExecutionQuery{Route: "stripe", Outcome: idem.Executed}, one},
		"route and another outcome":       {idem.ExecutionQuery{Route: "stripe", Outcome: idem.NotExecuted}, nil},
		"route and since": {idem.ExecutionQuery{Route: "stripe", Since: time.Now().Add(-time.Minute)},
			both},
		"route and until": {idem.ExecutionQuery{Route: "stripe",
			Until: time.Now().Add(-24 * time.Hour)}, nil},
		"a decision that nothing has come": {idem.ExecutionQuery{Decision: idem.DecisionLocked}, nil},
	} {
		if got := ids(allExecutions(t, s, c.q)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if f := mustFind(t, s, mine.Execution); f.Short == nil || f.Short.Error == nil || f.Short.Error.Detail != "EOF" ||
		f.Short.TraceParent != mine.TraceParent {
		t.Errorf("the first attempt is %+v", f.Short)
	}
}

func TestArrivalsBeyondTheBoundAreShedAndCounted(t *testing.T) {
	t.Parallel()
	s, err := etcdlock.Open(etcdlock.Options{Endpoints: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range history.MaxEvents + 7 {
		s.NoteArrival(idem.Scope{Workflow: "w", Key: idem.MakeKey(uint64(i), [16]byte{})}, "r", "",
			idem.Arrival{Decision: idem.DecisionLocked}, time.Hour)
	}
	if n := s.ShedArrivals(); n != 7 {
		t.Errorf("%d were shed", n)
	}
	closeStore(t, s)
}
