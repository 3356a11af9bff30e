package etcdlock

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// A workflow's list, and what is found by an event's name, have refused events where they belong by
// their time.
func TestRefusedEventsAreListedInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	refuse := func(workflow, event string) {
		s.NoteArrival(lockFor(workflow, event).Scope, "r", event,
			idem.Arrival{At: time.Now(), Decision: idem.DecisionLocked, Status: 409}, time.Hour)
		written(t, s)
	}
	var inWorkflow, ofEvent []string // the newest last
	for i := range 6 {
		event, workflow := fmt.Sprint("event ", i), fmt.Sprint("w", i)
		if i%2 == 1 {
			refuse("w", event)
			refuse(workflow, "event")
			inWorkflow, ofEvent = append(inWorkflow, "refused "+event), append(ofEvent, "refused in "+workflow)
			continue
		}
		endedAs(t, s, "w", event, nil, success("body"))
		endedAs(t, s, workflow, "event", nil, success("body"))
		inWorkflow, ofEvent = append(inWorkflow, "ran "+event), append(ofEvent, "ran in "+workflow)
	}
	slices.Reverse(inWorkflow)
	slices.Reverse(ofEvent)
	for _, limit := range []int{0, 1, 2} {
		var got []string
		for _, f := range allExecutions(t, s, idem.ExecutionQuery{Workflow: "w", PageSize: limit}) {
			if f.Record == nil {
				got = append(got, "refused "+f.Arrivals.EventID)
			} else {
				got = append(got, "ran "+f.Record.EventID)
			}
		}
		if !slices.Equal(got, inWorkflow) {
			t.Errorf("pages of %d: %q, want %q", limit, got, inWorkflow)
		}
		got = nil
		for _, f := range allExecutions(t, s, idem.ExecutionQuery{Key: string(lockFor("w0", "event").Scope.Key),
			PageSize: limit}) {
			if f.Record == nil {
				got = append(got, "refused in "+f.Workflow())
			} else {
				got = append(got, "ran in "+f.Workflow())
			}
		}
		if !slices.Equal(got, ofEvent) {
			t.Errorf("pages of %d: %q, want %q", limit, got, ofEvent)
		}
	}
}
