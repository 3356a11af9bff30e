package proxy

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

var byOps = idem.Cancel{By: "ops", Reason: "wrong customer", At: time.Unix(1_800_000_000, 0)}

// executionOf is the execution of an event that waits, runs or is held.
func executionOf(t *testing.T, r *replica, workflow, event string) idem.ExecutionID {
	t.Helper()
	got := await(t, r.send(t.Context(), workflow, event))
	if got.decision != "in_flight" {
		t.Fatalf("got %+v", got)
	}
	return idem.ExecutionID(got.header.Get("Hooklock-Execution"))
}

func TestACancelAtAnyReplicaClosesTheCallAndTellsTheSender(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	a, b := newReplica(t, etcd, up, func(*idem.Policy) {}), newReplica(t, etcd, up, func(*idem.Policy) {})
	for _, r := range []*replica{a, b} {
		first := a.send(t.Context(), "w", "1")
		await(t, up.begun)
		id := executionOf(t, b, "w", "1")
		if _, _, err := r.store.Cancel(t.Context(), id, byOps, nil); err != nil {
			t.Fatal(err)
		}
		await(t, up.closed)
		told(t, await(t, first), "execution_aborted", "aborted", "unknown")
		found, err := b.store.Execution(t.Context(), id)
		if err != nil || found.Record == nil || found.Record.Status != idem.Aborted ||
			found.Record.Outcome != idem.Unknown || found.Record.Abort.By != "ops" {
			t.Fatalf("%+v, %v", found, err)
		}
		if !a.events.heard(EventCancelled) {
			t.Error("nobody logged it")
		}
	}
	up.reply <- ""
	decided(t, b.send(t.Context(), "w", "1"), "executed")
}

func TestAnEventThatIsCancelledWhileItWaitsNeverRuns(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	a, b := newReplica(t, etcd, up, waits), newReplica(t, etcd, up, waits)
	first := a.send(t.Context(), "w", "1")
	await(t, up.begun)
	second := a.send(t.Context(), "w", "2")
	queued(t, etcd, 1)
	id := executionOf(t, b, "w", "2")
	if _, _, err := b.store.Cancel(t.Context(), id, byOps, nil); err != nil {
		t.Fatal(err)
	}
	got := await(t, second)
	told(t, got, "execution_aborted", "aborted", "no")
	if got.header.Get("Hooklock-Execution") != string(id) || !a.events.heard(EventCancelled) {
		t.Errorf("got %+v, events %v", got, a.events.names)
	}
	queued(t, etcd, 0)
	up.reply <- ""
	await(t, first)
	ran(t, up, 1)
}

func TestAnEventThatIsCancelledForGoodNeverRunsAgain(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	a, b := newReplica(t, etcd, up, waits), newReplica(t, etcd, up, waits)
	running := a.send(t.Context(), "w", "1")
	await(t, up.begun)
	waiting := a.send(t.Context(), "w", "2")
	queued(t, etcd, 1)
	forGood := byOps
	forGood.Final = true
	for _, event := range []string{"2", "1"} {
		if _, _, err := b.store.Cancel(t.Context(), executionOf(t, b, "w", event), forGood, nil); err != nil {
			t.Fatal(err)
		}
	}
	told(t, await(t, waiting), "execution_aborted", "aborted", "no")
	told(t, await(t, running), "execution_aborted", "aborted", "unknown")
	for _, r := range []*replica{a, b, a} {
		told(t, await(t, r.send(t.Context(), "w", "2")), "execution_aborted", "aborted", "no")
		told(t, await(t, r.send(t.Context(), "w", "1")), "execution_aborted", "aborted", "unknown")
	}
	ran(t, up, 1)
}

func TestALockThatIsReleasedByForceClosesTheCall(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	a, b := newReplica(t, etcd, up, func(*idem.Policy) {}), newReplica(t, etcd, up, func(*idem.Policy) {})
	first := a.send(t.Context(), "w", "1")
	await(t, up.begun)
	id := executionOf(t, b, "w", "1")
	if _, err := b.store.ForceRelease(t.Context(), "w/w", id, byOps, nil); err != nil {
		t.Fatal(err)
	}
	await(t, up.closed)
	told(t, await(t, first), "lock_lost", "lock_lost", "unknown")
	up.reply <- ""
	decided(t, b.send(t.Context(), "w", "2"), "executed")
}

func TestDuplicatesOfACompletedHoldGetItsFinalAnswer(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	a, b := newReplica(t, etcd, up, holds), newReplica(t, etcd, up, func(p *idem.Policy) { holds(p); attaches(p) })
	up.reply <- "202"
	await(t, a.send(t.Context(), "w", "1"))
	call := await(t, up.calls)
	attached := b.send(t.Context(), "w", "1")
	following(t, b, 1)
	final := idem.Final{Status: idem.Success, Answer: &idem.Answer{Status: 201, Bytes: 4, Whole: true,
		Body: []byte("done"), Header: []idem.HeaderField{{Name: "X-Result", Value: "7"}}}}
	if _, err := b.store.Complete(t.Context(), call, final); err != nil {
		t.Fatal(err)
	}
	if got := await(t, attached); got.status != 201 || got.body != "done" || got.decision != "attached" ||
		got.header.Get("X-Result") != "7" {
		t.Errorf("the attached copy: %+v", got)
	}
	for _, r := range []*replica{a, b} {
		if got := await(t, r.send(t.Context(), "w", "1")); got.status != 201 || got.body != "done" ||
			got.decision != "replayed" {
			t.Errorf("got %+v", got)
		}
	}
	up.reply <- ""
	decided(t, a.send(t.Context(), "w", "2"), "executed")
}

func TestADuplicateThatIsAttachedToAHoldThatFailedIsToldSo(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(p *idem.Policy) { holds(p); attaches(p) })
	up.reply <- "202"
	await(t, r.send(t.Context(), "w", "1"))
	call := await(t, up.calls)
	attached := r.send(t.Context(), "w", "1")
	following(t, r, 1)
	if _, err := r.store.Complete(t.Context(), call, idem.Final{Status: idem.Failed}); err != nil {
		t.Fatal(err)
	}
	if got := await(t, attached); got.status != 502 || got.decision != "upstream_failed" {
		t.Errorf("got %+v", got)
	}
	up.reply <- ""
	decided(t, r.send(t.Context(), "w", "1"), "executed")
}

func TestTheUpstreamOfAnEventWithoutALockNeedsNoToken(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(p *idem.Policy) { holds(p); p.Strategy = idem.NoLock })
	up.reply <- "202"
	await(t, r.send(t.Context(), "w", "1"))
	call := await(t, up.calls)
	if call.Token != 0 {
		t.Fatalf("a token that fences nothing: %d", call.Token)
	}
	stranger := call
	stranger.Key = "of another one"
	if _, err := r.store.Guard(t.Context(), stranger, "one", nil); !errors.Is(err, idem.ErrCallbackKey) {
		t.Errorf("a stranger: %v", err)
	}
	if _, err := r.store.Guard(t.Context(), call, "one", nil); err != nil {
		t.Error(err)
	}
	if _, err := r.store.Heartbeat(t.Context(), call, 0); err != nil {
		t.Error(err)
	}
	if _, err := r.store.Complete(t.Context(), call, idem.Final{Status: idem.Success}); err != nil {
		t.Error(err)
	}
	if got := await(t, r.send(t.Context(), "w", "1")); got.status != 200 || got.decision != "replayed" {
		t.Errorf("got %+v", got)
	}
}

func TestTheUpstreamOfALockNeedsItsToken(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, holds)
	up.reply <- "202"
	await(t, r.send(t.Context(), "w", "1"))
	call := await(t, up.calls)
	call.Token = 0
	if _, err := r.store.Complete(t.Context(), call, idem.Final{Status: idem.Success}); !errors.Is(err,
		idem.ErrStaleToken) {
		t.Errorf("got %v", err)
	}
}

// TestTheFirstOfAnswerAndCancelWins lets both come at once, and in both orders: what the sender
// hears is what the ledger has.
func TestTheFirstOfAnswerAndCancelWins(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	a, b := newReplica(t, etcd, up, func(*idem.Policy) {}), newReplica(t, etcd, up, func(*idem.Policy) {})
	ended := map[idem.Status]int{}
	for i := range 30 {
		event := fmt.Sprint(i)
		sender := a.send(t.Context(), "w", event)
		await(t, up.begun)
		id := executionOf(t, b, "w", event)
		cancelled := make(chan error, 1)
		cancelIt := func() {
			_, _, err := b.store.Cancel(t.Context(), id, byOps, nil)
			cancelled <- err
		}
		switch i % 3 {
		case 0: // the answer comes first
			up.reply <- ""
			cancelIt()
		case 1: // the cancel does
			cancelIt()
			await(t, up.closed)
		default:
			go cancelIt()
			up.reply <- ""
		}
		if err := await(t, cancelled); err != nil && !errors.Is(err, idem.ErrFinished) {
			t.Error(err)
		}
		got := await(t, sender)
		found, err := b.store.Execution(t.Context(), id)
		if err != nil || found.Record == nil {
			t.Fatalf("%+v, %v", found, err)
		}
		switch ended[found.Record.Status]++; found.Record.Status {
		case idem.Success:
			if got.status != 200 || got.decision != "executed" {
				t.Errorf("%d: recorded %s, and the sender got %+v", i, found.Record.Status, got)
			}
		case idem.Aborted:
			told(t, got, "execution_aborted", "aborted", "unknown")
			drain(up.reply)
		default:
			t.Errorf("recorded %+v", found.Record)
		}
	}
	if t.Logf("%v", ended); ended[idem.Success] == 0 || ended[idem.Aborted] == 0 {
		t.Errorf("one of the orders never came: %v", ended)
	}
}

// drain takes an answer that nobody fetched.
func drain(replies chan string) {
	select {
	case <-replies:
	default:
	}
}

func TestADuplicateThatWasAttachedBeforeTheHoldWaitsForItsEnd(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	both := func(p *idem.Policy) { holds(p); attaches(p) }
	a, b := newReplica(t, etcd, up, both), newReplica(t, etcd, up, both)
	first := a.send(t.Context(), "w", "1")
	call := await(t, up.calls)
	copies := []<-chan answer{a.send(t.Context(), "w", "1"), b.send(t.Context(), "w", "1")}
	following(t, a, 1)
	following(t, b, 1)
	up.reply <- "202"
	if got := await(t, first); got.status != 202 {
		t.Errorf("got %+v", got)
	}
	if _, err := b.store.Heartbeat(t.Context(), call, 0); err != nil {
		t.Error(err)
	}
	if _, err := a.store.Complete(t.Context(), call, idem.Final{Status: idem.Success}); err != nil {
		t.Fatal(err)
	}
	for _, ch := range copies {
		if got := await(t, ch); got.status != 200 || got.body != "" || got.decision != "attached" {
			t.Errorf("got %+v", got)
		}
	}
}
