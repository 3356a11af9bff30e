package report

import (
	"reflect"
	"testing"
	"time"

	"hooklock/idem"
)

func TestEachDeliveryIsTakenOnce(t *testing.T) {
	tally, clock := newTally()
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionExecuted, Carried: true, Result: Succeeded,
		Service: time.Second})
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionExecuted, Carried: true, Result: Failed,
		Service: time.Second})
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionUpstreamTimeout, Carried: true, Result: Broken,
		Service: time.Second})
	for _, d := range []idem.Decision{idem.DecisionReplayed, idem.DecisionLocked, idem.DecisionUnverified,
		idem.DecisionMismatch, idem.DecisionParked} {
		tally.Note(&Delivery{Route: "stripe", Decision: d, Carried: true})
	}
	// mode observe: it was forwarded
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionReplayed, Result: Succeeded, Service: time.Second})
	tally.CountTry("stripe", Failed, time.Second, Failure{}, false)
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionExecuted, Carried: true, Result: Succeeded,
		Service: time.Second, Counted: true})
	// the ledger counts it
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionParked, Carried: true, Accepted: true})
	tally.CountTry("stripe", Failed, time.Second, Failure{}, true)
	want := idem.RouteCounts{Route: "stripe", Last: clock.now(), Counts: idem.Counts{
		idem.CountDeliveries: 10, idem.CountSucceeded: 2, idem.CountFailed: 2, idem.CountErrors: 1,
		idem.CountDuplicates: 2, idem.CountBusy: 1,
		idem.CountBadSignatures: 1, idem.CountRefused: 1,
	}}
	for range 5 {
		want.Took.Note(time.Second)
	}
	if got := tally.Take(); !reflect.DeepEqual(got, []idem.RouteCounts{want}) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := tally.Take(); len(got) != 0 {
		t.Errorf("taken twice: %+v", got)
	}
}

func TestWhatARouteCountedBeforeAReloadDroppedItIsTaken(t *testing.T) {
	tally, _ := newTally()
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionExecuted})
	tally.SetRoutes([]Route{{Name: "github"}})
	if got := tally.Take(); len(got) != 1 || got[0].Route != "stripe" || got[0].Counts[idem.CountDeliveries] != 1 {
		t.Errorf("%+v", got)
	}
}
