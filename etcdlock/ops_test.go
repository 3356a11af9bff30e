package etcdlock

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// fewOps is a --max-txn-ops in which each transaction of the table has room, but no batch.
const fewOps = 12

func TestWhatIsWrittenTogetherIsSplitWhereEtcdTakesLess(t *testing.T) {
	e := etcdtest.StartWithTxnOps(t, fewOps)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	for i := range history.NoteBatch {
		s.AuditRefusal(idem.Audit{At: time.Now(), Who: "ops", What: "execution.cancel", Result: "done",
			Why: fmt.Sprint(i)})
		s.CountDuplicate(lockFor("w", fmt.Sprint(i)).Execution, time.Hour)
		s.NoteArrival(lockFor("w", fmt.Sprint(i)).Scope, "r", "evt",
			idem.Arrival{At: time.Now(), Decision: idem.DecisionLocked}, time.Hour)
	}
	written(t, s)
	for kind, want := range map[string]int64{protocol.KindAudits: history.NoteBatch, "duplicates/": history.NoteBatch,
		protocol.KindArrivals: history.NoteBatch} {
		if n, err := e.Count(within(t, patience), s.layout.All(kind)); err != nil || n != want {
			t.Errorf("%d below %s, want %d: %v", n, kind, want, err)
		}
	}
}

func TestListsAreReadInPartsWhereEtcdTakesLess(t *testing.T) {
	e := etcdtest.StartWithTxnOps(t, fewOps)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	var ended, running []idem.ExecutionID
	for i := range 3 * fewOps {
		ended = append(ended, endedAs(t, s, "w", fmt.Sprint(i), nil, success("body")))
		l := lockFor(fmt.Sprintf("runs %d", i), "event")
		mustClaim(t, s, l, 0)
		running = append(running, l.Execution)
		s.NoteArrival(lockFor("refused", fmt.Sprint(i)).Scope, "r", "evt",
			idem.Arrival{At: time.Now(), Decision: idem.DecisionLocked}, time.Hour)
	}
	written(t, s)
	slices.Reverse(ended)
	slices.Reverse(running)
	if got, want := ids(allExecutions(t, s, idem.ExecutionQuery{})), append(running, ended...); !slices.Equal(got,
		want) {
		t.Errorf("%d executions, want %d", len(got), len(want))
	}
	if got := allExecutions(t, s, idem.ExecutionQuery{Decision: idem.DecisionLocked}); len(got) != 3*fewOps {
		t.Errorf("%d refused events, want %d", len(got), 3*fewOps)
	}
	if got := allLocks(t, s, idem.LockQuery{}); len(got) != 3*fewOps {
		t.Errorf("%d locks, want %d", len(got), 3*fewOps)
	}
	if got, err := s.WithoutRequest(within(t, patience), running); err != nil || !slices.Equal(got, running) {
		t.Errorf("%d executions of which nothing is kept, want %d: %v", len(got), len(running), err)
	}
}
