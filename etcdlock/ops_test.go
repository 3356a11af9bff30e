package etcdlock

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// fewOps is a --max-txn-ops in which each transaction of the table has room, but no batch.
const fewOps = 12

func TestWhatIsWrittenTogetherIsSplitWhereEtcdTakesLess(t *testing.T) {
	t.Parallel()
	e := etcdtest.StartWithTxnOps(t, fewOps)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	for i := range auditBatch {
		s.Audited(idem.Audit{At: time.Now(), Who: "ops", What: "execution.cancel", Result: "done", Why: fmt.Sprint(i)})
		s.Duplicate(lockFor("w", fmt.Sprint(i)).Execution, time.Hour)
		s.Arrived(lockFor("w", fmt.Sprint(i)).Scope, "r", "evt", idem.Arrival{At: time.Now(), Decision: idem.DecisionLocked}, time.Hour)
	}
	s.audits.finish(within(t, patience))
	s.duplicates.finish(within(t, patience))
	for kind, want := range map[string]int64{protocol.KindAudits: auditBatch, "duplicates/": auditBatch, protocol.KindArrivals: auditBatch} {
		if n, err := e.Count(within(t, patience), s.layout.Root+kind); err != nil || n != want {
			t.Errorf("%d below %s, want %d: %v", n, kind, want, err)
		}
	}
}

func TestListsAreReadInPartsWhereEtcdTakesLess(t *testing.T) {
	t.Parallel()
	e := etcdtest.StartWithTxnOps(t, fewOps)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	var ended, running []idem.ExecutionID
	for i := range 3 * fewOps {
		ended = append(ended, endedAs(t, s, "w", fmt.Sprint(i), nil, success("body")))
		l := lockFor(fmt.Sprintf("runs %d", i), "event")
		mustClaim(t, s, l, 0)
		running = append(running, l.Execution)
		s.Arrived(lockFor("refused", fmt.Sprint(i)).Scope, "r", "evt", idem.Arrival{At: time.Now(), Decision: idem.DecisionLocked}, time.Hour)
	}
	s.duplicates.finish(within(t, patience))
	slices.Reverse(ended)
	slices.Reverse(running)
	if got, want := ids(allExecutions(t, s, idem.ExecutionQuery{})), append(running, ended...); !slices.Equal(got, want) {
		t.Errorf("%d executions, want %d", len(got), len(want))
	}
	if got := allExecutions(t, s, idem.ExecutionQuery{Decision: idem.DecisionLocked}); len(got) != 3*fewOps {
		t.Errorf("%d refused events, want %d", len(got), 3*fewOps)
	}
	if got := allLocks(t, s, idem.LockQuery{}); len(got) != 3*fewOps {
		t.Errorf("%d locks, want %d", len(got), 3*fewOps)
	}
	if got, err := s.Unkept(within(t, patience), running); err != nil || !slices.Equal(got, running) {
		t.Errorf("%d executions of which nothing is kept, want %d: %v", len(got), len(running), err)
	}
}

func TestARequestIsSplitOnlyWhereThatHelps(t *testing.T) {
	numbers := []int{1, 2, 3, 4, 5, 6, 7}
	var sent [][]int
	takes := func(most int, refusal error) func([]int) error {
		sent = nil
		return func(some []int) error {
			if len(some) > most {
				return refusal
			}
			sent = append(sent, some)
			return nil
		}
	}
	if err := inParts(numbers, takes(2, rpctypes.ErrTooManyOps)); err != nil || !slices.Equal(slices.Concat(sent...), numbers) {
		t.Errorf("sent %v, %v", sent, err)
	}
	if err := inParts(numbers, takes(7, rpctypes.ErrTooManyOps)); err != nil || len(sent) != 1 {
		t.Errorf("sent %v, %v", sent, err)
	}
	if err := inParts(numbers, takes(0, rpctypes.ErrTooManyOps)); !errors.Is(err, rpctypes.ErrTooManyOps) {
		t.Errorf("what is too much alone: %v", err)
	}
	if err := inParts(numbers, takes(2, rpctypes.ErrNoSpace)); !errors.Is(err, rpctypes.ErrNoSpace) || sent != nil {
		t.Errorf("sent %v, %v", sent, err)
	}
	if err := inParts(nil, takes(7, nil)); err != nil || len(sent) != 1 {
		t.Errorf("nothing is sent as it is: %v, %v", sent, err)
	}
}
