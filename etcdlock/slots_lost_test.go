package etcdlock

import (
	"context"
	"errors"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// The slots that a try without an answer has taken are its own, and it must not wait for them.
func TestATryWhoseAnswerIsLostDoesNotWaitForItsOwnSlot(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	client := etcdtest.Dial(t, e.Endpoint)
	kv := newLateKV(client)
	o := erp(slotsOf(1))
	o.Client = client
	s := openStore(t, o)
	mustPark(t, s, withSlots(parkedLock("w1", "a")), 0)
	h := takeNext(t, s).Running
	restNow(t, h, "")
	kv.lost = func() { // what the watch would say
		l := h.Lock()
		if _, err := s.view.Slots.Look(within(t, patience), s.layout.Keys(l), l.Slots); err != nil {
			t.Error(err)
		}
	}
	kv.armed.Store(true)
	p := *h.Lock().Parked
	p.Tries++
	if err := h.BeginTry(within(t, patience), p, "hash"); errors.Is(err, idem.ErrNoSlot) {
		t.Errorf("%v, which the try has itself", err)
	}
	restNow(t, h, "")
	if left := takenSlots(t, e); len(left) > 0 {
		t.Errorf("what rests has %v", left)
	}
	mustAttempt(t, h)
	mustSettle(t, h)
}

// The answer to a place may come after its delivery has given up.
func TestADeliveryThatGaveUpBeforeItWasRefusedAnEntryWaitsForNoSlot(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	client := etcdtest.Dial(t, e.Endpoint)
	kv := newLateKV(client)
	o := erp(slotsOf(1))
	o.Client = client
	s := openStore(t, o)
	mustSettle(t, mustClaim(t, s, limitedLock("w0", "before"), 0))
	first := mustClaim(t, s, limitedLock("w1", "first"), 0)
	gone, giveUp := context.WithCancel(t.Context())
	kv.lost = giveUp
	kv.armed.Store(true)
	const another = 1 // revision of the record: the place is refused
	if _, _, err := s.Enqueue(gone, limitedLock("w2", "second"), another, 0); err == nil {
		t.Fatal("it has a place")
	}
	eventually(t, "nothing waits for a slot", func() bool { return s.view.Slots.Waiters() == 0 })
	mustSettle(t, first)
}

// Whether it is parked is not known then, and the process that takes its queue asks for the slot.
func TestADeliveryWhoseParkingGotNoAnswerWaitsForNoSlot(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	s := limitedStore(t, e, slotsOf(1))
	first := mustClaim(t, s, limitedLock("w", "first"), 0)
	waits := limitedLock("w", "second")
	place, _, err := s.Enqueue(within(t, patience), waits, 0, first.Lock().Revision)
	if err != nil {
		t.Fatal(err)
	}
	s.view.Slots.Ask(&waits, "")
	gone, giveUp := context.WithCancel(t.Context())
	giveUp()
	if err := place.Park(gone, parkedNow("body")); !errors.Is(err, idem.ErrNotRecorded) {
		t.Fatal(err)
	}
	if n := s.view.Slots.Waiters(); n != 0 {
		t.Errorf("%d wait for a slot", n)
	}
}
