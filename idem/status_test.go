package idem

import (
	"errors"
	"fmt"
	"testing"
)

func TestAStatusNeverGoesBackAndTheFirstEndStays(t *testing.T) {
	all := []Status{Pending, Running, CancelRequested, Success, Failed, Aborted}
	// One line for each status, one column for what may come after it, in that order.
	table := map[Status]string{
		Pending:         "-yyyyy",
		Running:         "--yyyy",
		CancelRequested: "---yyy",
		Success:         "------",
		Failed:          "------",
		Aborted:         "------",
	}
	for _, before := range append(all, "", "DONE") {
		for i, after := range all {
			want := table[before] != "" && table[before][i] == 'y'
			if got := before.Precedes(after); got != want {
				t.Errorf("%s before %s: %v", before, after, got)
			}
			if before.Precedes(after) && after.Precedes(before) {
				t.Errorf("%s and %s go round", before, after)
			}
		}
		if before.Precedes(before) || before.Precedes("") || before.Terminal() && table[before] != "------" {
			t.Errorf("%s is not in order", before)
		}
	}
}

func TestFailedAndAbortedAreNeverConfused(t *testing.T) {
	failure, abort := &Failure{Code: "x"}, &Cancel{By: "ops"}
	for _, status := range []Status{Success, Failed, Aborted} {
		for _, outcome := range []Outcome{Executed, NotExecuted, Unknown} {
			for _, e := range []*Failure{nil, failure} {
				for _, a := range []*Cancel{nil, abort} {
					for _, kept := range []bool{false, true} {
						r := &Record{End: End{Status: status, Outcome: outcome, Error: e, Abort: a, Remembered: kept}}
						want := (!kept || outcome == Executed) && map[Status]bool{
							Success: e == nil && a == nil && outcome == Executed,
							Failed:  e != nil && a == nil,
							Aborted: e == nil && a != nil && outcome != Executed,
						}[status]
						if err := r.Check(); (err == nil) != want || err != nil && !errors.Is(err, errContradiction) {
							t.Errorf("%s %s, error %v, abort %v, kept %v: %v", status, outcome, e, a, kept, err)
						}
					}
				}
			}
		}
	}
	if parked := (&Record{Tries: 1,
		End: End{Status: Aborted, Outcome: Executed, Abort: abort}}); parked.Check() != nil {
		t.Errorf("a parked one whose try was answered: %v", parked.Check())
	}
	for _, r := range []Record{{}, {End: End{Status: Running, Outcome: Unknown}},
		{End: End{Status: Failed, Error: failure}}, {End: End{Status: Failed, Error: failure, Outcome: "maybe"}}} {
		if err := r.Check(); !errors.Is(err, errContradiction) {
			t.Error(fmt.Sprintf("%+v", r), err)
		}
	}
}
