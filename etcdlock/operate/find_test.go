package operate_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/ledgertest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func TestEachStatusOfAnExecutionIsAPlaceInEtcd(t *testing.T) {
	e := etcdtest.Start(t)
	a := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	b := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	holder := mustClaim(t, a, lockFor("w/ä:1", "one"), 0)
	l := lockFor("w/ä:1", "two")
	p := mustEnqueue(t, a, l)
	place := func(want idem.Status, queue, locks, records int) {
		t.Helper()
		f := mustFind(t, b, l.Execution)
		if f.Status() != want || f.Workflow() != "w/ä:1" || f.Revision == 0 {
			t.Fatalf("%s of %q, want %s: %+v", f.Status(), f.Workflow(), want, f)
		}
		count(t, e, "/hooklock/v1/queue/", queue)
		count(t, e, "/hooklock/v1/locks/", locks)
		count(t, e, "/hooklock/v1/"+protocol.KindRecords, records)
	}
	place(idem.Pending, 1, 1, 0)
	must(t, holder.Release)
	if _, err := p.Await(within(t, patience), 0); err != nil {
		t.Fatal(err)
	}
	held, seen, err := p.ClaimHead(within(t, patience), l, 0)
	if err != nil || held == nil {
		t.Fatalf("%+v %v", seen, err)
	}
	place(idem.Running, 0, 1, 0)
	if _, _, err := b.Cancel(within(t, patience), l.Execution, idem.Cancel{By: "ops", Reason: "test", At: time.Now()},
		nil); err != nil {
		t.Fatal(err)
	}
	place(idem.CancelRequested, 0, 1, 0)
	if _, err := held.Settle(within(t, patience), success("ok")); err != nil { // a whole answer came all the same
		t.Fatal(err)
	}
	place(idem.Success, 0, 0, 1)
	for want, end := range map[idem.Status]idem.End{
		idem.Failed:  {Status: idem.Failed, Outcome: idem.Unknown, Error: &idem.Failure{Code: "upstream_failed"}},
		idem.Aborted: {Status: idem.Aborted, Outcome: idem.Unknown, Abort: &idem.Cancel{By: "policy", At: time.Now()}},
	} {
		other := lockFor("w/ä:1", string(want))
		end.FinishedAt = time.Now()
		if _, err := mustClaim(t, a, other, 0).Settle(within(t, patience), end); err != nil {
			t.Fatal(err)
		}
		f := mustFind(t, b, other.Execution)
		if f.Status() != want || (f.Record.Error != nil) != (want == idem.Failed) ||
			(f.Record.Abort != nil) != (want == idem.Aborted) {
			t.Errorf("%s: %+v", want, f.Record)
		}
	}
	count(t, e, "/hooklock/v1/"+protocol.KindRecords, 3)
	count(t, e, "/hooklock/v1/locks/", 0)
}

func TestAnExecutionThatIsNowhereIsNotFound(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, s, lockFor("w", "event"), 0)
	other := lockFor("w", "event") // the same event, so only the random part of the ID differs
	released := mustClaim(t, s, lockFor("w2", "event"), 0)
	must(t, released.Release)
	for _, id := range []idem.ExecutionID{other.Execution, released.Lock().Execution, "", "exec_",
		"exec_../../../../../../../../../etc/pass", held.Lock().Execution + "a"} {
		if f, err := s.Execution(within(t, patience), id); !errors.Is(err, idem.ErrNoExecution) {
			t.Errorf("%q: %+v %v", id, f, err)
		}
	}
}

func TestAnEarlierAttemptIsFoundInShortForAsLongAsTheEventIs(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	first := lockFor("w", "event")
	rec, err := mustClaim(t, s, first, 0).Settle(within(t, patience), idem.End{
		Status: idem.Failed, Outcome: idem.Unknown, FinishedAt: time.Now(),
		Error: &idem.Failure{Code: "upstream_failed"},
	})
	if err != nil {
		t.Fatal(err)
	}
	second := lockFor("w", "event")
	second.Attempt, second.Earlier = 2, []idem.Attempt{rec.AsAttempt()}
	held := mustClaim(t, s, second, rec.Revision)
	if f := mustFind(t, s, first.Execution); f.Record == nil || f.Status() != idem.Failed {
		t.Fatalf("while the second runs: %+v", f)
	}
	mustSettle(t, held)
	f := mustFind(t, s, first.Execution)
	if f.Short == nil || f.Record != nil || f.Status() != idem.Failed || f.Short.Outcome != idem.Unknown {
		t.Fatalf("after the second: %+v", f)
	}
	if f := mustFind(t, s, second.Execution); f.Record == nil || len(f.Record.Earlier) != 1 {
		t.Fatalf("the second: %+v", f)
	}
}

func TestAmongManyOfOneWorkflowAnExecutionIsFound(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	var ids []idem.ExecutionID
	// strategy none: each event has a lock of its own, and all of them are read where only one is
	// meant
	for i := range 3 * history.FindValues {
		l := lockFor("w", fmt.Sprintf("event %d", i))
		l.Scope.PerEvent = true
		ids = append(ids, mustClaim(t, s, l, 0).Lock().Execution)
	}
	for i := range 3 * history.FindValues {
		ids = append(ids, mustEnqueue(t, s, lockFor("w", fmt.Sprintf("waiting %d", i))).Lock.Execution)
	}
	for i, id := range ids {
		if f := mustFind(t, s, id); f.Lock == nil || f.Lock.Execution != id ||
			f.InQueue != (i >= 3*history.FindValues) {
			t.Fatalf("%d: %+v", i, f)
		}
	}
}

func TestAForgedHashFindsNothing(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	l := lockFor("w", "event")
	// Another workflow and another event whose hashes are those of l, as somebody could make them.
	forged := lockFor("other", "x")
	for i := range 2 * history.FindValues {
		forged.Scope.Key = l.Scope.Key[:17] + idem.Key(fmt.Sprintf("%032x", i))
		value, err := protocol.EncodeLock(&forged)
		if err != nil {
			t.Fatal(err)
		}
		record, err := protocol.EncodeRecord(protocol.RecordOf(&forged, success("")), "them")
		if err != nil {
			t.Fatal(err)
		}
		w, key := protocol.Hash16("w")+"/", string(forged.Scope.Key)
		putRaw(t, e, map[string][]byte{"locks/" + w + "other": value, "queue/" + w + "other/" + key: value,
			ledgertest.Layout.Record(idem.Scope{Workflow: "w",
				Key: forged.Scope.Key})[len(ledgertest.Layout.Root):]: record})
	}
	if f, err := s.Execution(within(t, patience), l.Execution); !errors.Is(err, idem.ErrNoExecution) {
		t.Fatalf("%+v %v", f, err)
	}
	mustClaim(t, s, l, 0)
	if f := mustFind(t, s, l.Execution); f.Lock == nil || f.Workflow() != "w" {
		t.Fatalf("%+v", f)
	}
}

func TestAnExecutionInAValueOfANewerReleaseIsNotDenied(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	l := lockFor("w", "event")
	putRaw(t, e, map[string][]byte{"locks/" + protocol.Hash16("w") + "/w": []byte(`{"v":99}`)})
	_, err := s.Execution(within(t, patience), l.Execution)
	var newer *protocol.NewerError
	if !errors.Is(err, idem.ErrStoreUnavailable) || !errors.As(err, &newer) {
		t.Fatalf("got %v", err)
	}
}

func TestReadingAnExecutionReapsALockWhoseHoldRanOut(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	l := lockFor("w", "held")
	l.Alive, l.Holder = protocol.HoldAlive(l.Execution), "h/1/s"
	value, err := protocol.EncodeLock(&l)
	if err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	k := ledgertest.Layout.Keys(&l)
	putRaw(t, e, map[string][]byte{k.Hold[len("/hooklock/v1/"):]: protocol.EncodeHold("h/1/s", until),
		k.Lock[len("/hooklock/v1/"):]: value})
	if f := mustFind(t, s, l.Execution); f.Lock == nil || f.Lock.Dead || !f.Lock.HoldUntil.Equal(until) {
		t.Fatalf("%+v", f.Lock)
	}
	if _, err := e.Client.Delete(within(t, patience), k.Hold); err != nil {
		t.Fatal(err)
	}
	if f := mustFind(t, s, l.Execution); f.Record == nil || f.Record.Outcome != idem.Unknown {
		t.Fatalf("%+v", f)
	}
}
