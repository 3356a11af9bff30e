package etcdlock

import (
	"fmt"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/idem"
)

func TestASettleWhoseAnswerIsLostIsKnownToBeOursAfterTheEventRanAgain(t *testing.T) {
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	s := openStore(t, Options{Endpoints: []string{wire.Endpoint}})
	other := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	// has the lease for records
	if _, err := mustClaim(t, s, lockFor("v", "any"), 0).Settle(within(t, patience), success("")); err != nil {
		t.Fatal(err)
	}
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	wire.DropAnswers(true)
	type result struct {
		rec *idem.Record
		err error
	}
	settled := make(chan result, 1)
	end := success("")
	end.Remembered = false // so that the event may run again
	go func() {
		rec, err := held.Settle(within(t, patience), end)
		settled <- result{rec, err}
	}()
	first := held.Lock().Execution
	var revision int64
	eventually(t, "the first record", func() bool {
		st, err := history.Look(within(t, patience), other.pool, other.layout.Keys(held.Lock()))
		if err == nil && st.Ended(first) != nil {
			revision = st.Prev
		}
		return revision != 0
	})
	again := mustClaim(t, other, lockFor("w", "one"), revision)
	if _, err := again.Settle(within(t, patience), end); err != nil {
		t.Fatal(err)
	}
	wire.DropAnswers(false)
	wire.Reset()
	if got := <-settled; got.err != nil || got.rec == nil || got.rec.Execution != first ||
		got.rec.Revision != revision {
		t.Errorf("got %+v, %v", got.rec, got.err)
	}
}

func TestAnEndWhoseEventRanAgainIsLookedForUntilEtcdAnswers(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	s := openStore(t, Options{Endpoints: []string{wire.Endpoint}})
	other := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	first := *held.Lock()
	end := success("")
	end.Remembered = false // so that the event may run again
	record, err := held.Settle(within(t, patience), end)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mustClaim(t, other, lockFor("w", "one"), record.Revision).Settle(within(t, patience),
		end); err != nil {
		t.Fatal(err)
	}
	wire.Blackhole(true)
	told := make(chan error, 2)
	go func() {
		found, err := held.Settle(within(t, patience), end)
		if err == nil && (found == nil || found.Execution != first.Execution) {
			err = fmt.Errorf("its end is %+v", found)
		}
		told <- err
	}()
	go func() {
		seen, _, err := history.LookBack(within(t, patience), s.pool, keysOf(held), first.Execution, first.Revision)
		if err == nil && seen.Record == nil {
			err = fmt.Errorf("who follows sees %+v", seen)
		}
		told <- err
	}()
	select { // longer than one attempt
	case err := <-told:
		t.Fatalf("while etcd did not answer: %v", err)
	case <-time.After(4 * s.pool.Attempt):
	}
	wire.Blackhole(false)
	wire.Reset()
	for range 2 {
		if err := <-told; err != nil {
			t.Error(err)
		}
	}
}
