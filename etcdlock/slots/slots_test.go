package slots

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// limited is a process in which each limit has as many slots, and nothing is paused.
type limited struct {
	Process
	most int
}

func (p limited) Size(string, idem.Slot) int       { return p.most }
func (limited) Session() (*session.Session, error) { return &session.Session{Name: "s"}, nil }
func (limited) MarkReady(string)                   {}
func (limited) Paused(string, string) bool         { return false }

func limitedLock(workflow, event string) idem.Lock {
	sum := sha256.Sum256([]byte(event))
	scope := idem.Scope{Workflow: workflow, Key: idem.MakeKey(uint64(len(event)), [16]byte(sum[:16]))}
	return idem.Lock{
		ExecutionFacts: idem.ExecutionFacts{Execution: idem.NewExecutionID(workflow, scope.Key, [4]byte{1}),
			Scope: scope,
			Slots: []idem.Slot{{LimitName: "erp", Rule: "erp", Index: -1}}},
	}
}

func TestTheNextSlotWaiterIsTheOldestAndNoWorkflowIsTwiceWhileOthersWait(t *testing.T) {
	in := newLimit()
	turn := func(workflow string, since int64) {
		in.addWaiter(&slotWaiter{protocol.SlotHolder{Execution: idem.ExecutionID(fmt.Sprint(workflow, since)),
			Workflow: workflow}, since})
	}
	in.taken[0] = protocol.SlotHolder{Workflow: "a"}
	for _, w := range []struct {
		workflow string
		since    int64
	}{{"a", 1}, {"b", 2}, {"b", 3}, {"c", 4}, {"d", 5}, {"b", 6}} {
		turn(w.workflow, w.since)
	}
	if got, want := in.nextWaiters(6), []idem.ExecutionID{"b2", "c4", "d5", "a1", "b3", "b6"}; !slices.Equal(got,
		want) {
		t.Errorf("next are %v, want %v", got, want)
	}
	if got := in.nextWaiters(2); !slices.Equal(got, []idem.ExecutionID{"b2", "c4"}) {
		t.Errorf("the next two are %v", got)
	}
	in.removeWaiter("c4")
	delete(in.taken, 0)
	turn("e", 0)
	if got, want := in.nextWaiters(4), []idem.ExecutionID{"e0", "a1", "b2", "d5"}; !slices.Equal(got, want) {
		t.Errorf("next are %v, want %v", got, want)
	}
}

// TestTwoExecutionsThatDoNotKnowOfTheSameSlotsTakeDifferentOnes: the oldest takes what has been
// free for longest, and the next one what became so after it, whatever the numbers are and which
// process has heard of the second one.
func TestTwoExecutionsThatDoNotKnowOfTheSameSlotsTakeDifferentOnes(t *testing.T) {
	y := protocol.NewLayout("/hooklock")
	p := New(&Options{Layout: y, Process: limited{most: 4}})
	p.known.followed = true
	event := func(key string, revision int64, value []byte) {
		kv := &mvccpb.KeyValue{Key: []byte(key), ModRevision: revision, CreateRevision: revision, Value: value}
		e := &clientv3.Event{Type: clientv3.EventTypePut, Kv: kv}
		if value == nil {
			e.Type = clientv3.EventTypeDelete
		}
		(&following{p}).applyEvent(e)
	}
	slot := limitedLock("", "").Slots[0]
	var lines []idem.ExecutionID
	for n := range 4 {
		l := limitedLock(fmt.Sprint("runs", n), "a")
		event(y.Slot("erp", n), int64(n+1), protocol.EncodeSlot(&l, &slot))
	}
	for n := range 2 {
		l := limitedLock(fmt.Sprint("waits", n), "a")
		lines = append(lines, l.Execution)
		event(y.SlotWaiter("erp", l.Execution), int64(10+n), protocol.EncodeSlotWaiter(&l, "erp", "s", int64(10+n)))
	}
	in := p.known.limits["erp"]
	event(y.Slot("erp", 2), 20, nil)
	if first, second := p.known.findFreeSlot(in, lines[0], AsHead, 4),
		p.known.findFreeSlot(in, lines[1], AsHead, 4); first != 2 ||
		second != -1 {
		t.Errorf("with one free they take %d and %d", first, second)
	}
	event(y.Slot("erp", 0), 21, nil)
	if first, second := p.known.findFreeSlot(in, lines[0], AsHead, 4),
		p.known.findFreeSlot(in, lines[1], AsHead, 4); first != 2 ||
		second != 0 {
		t.Errorf("with another one they take %d and %d", first, second)
	}
	event(y.Root+"supers/of/a/later/release", 22, []byte("x"))
	event(y.SlotWaiter("erp", lines[0]), 23, nil)
	if second := p.known.findFreeSlot(in, lines[1], AsHead, 4); second != 2 {
		t.Errorf("alone it takes %d", second)
	}
}

// Another process may have run the event to its end between the look at its queue and the question.
func TestASlotWaiterWhoseParkedEventEndedMeanwhileIsForgotten(t *testing.T) {
	p := New(&Options{
		Layout: protocol.NewLayout("/hooklock"), Process: limited{most: 1},
	})
	ended := limitedLock("w", "ended")
	p.Ask(&ended, "locks/w")
	for range roundsToCome + 1 {
		(&following{p}).lookAfter()
	}
	if n := p.Waiters(); n != 0 {
		t.Errorf("%d wait for a slot, and nothing is there that could take one", n)
	}
}

// TestWhatIsKnownOfLimitsIsBoundedWhileNothingWaits: a limit that has a workflow or a tenant in its
// name is one of very many, and of what others have there a process that does not follow them never
// hears that it is free.
func TestWhatIsKnownOfLimitsIsBoundedWhileNothingWaits(t *testing.T) {
	e := etcdtest.Start(t)
	pool, err := link.OpenPool(&link.Target{Endpoints: []string{e.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	y := protocol.NewLayout("/hooklock")
	p := New(&Options{Pool: pool, Layout: y, Process: limited{most: 1}})
	for i := range maxKnown + 10 { // as each refusal leaves it
		other := limitedLock("w", fmt.Sprint(i))
		slot := idem.Slot{LimitName: fmt.Sprint("tenant/", i), Rule: "tenant/{path.account}"}
		p.mu.Lock()
		p.known.noteFound(&mvccpb.KeyValue{Key: []byte(y.Slot(slot.LimitName, 0)),
			Value: protocol.EncodeSlot(&other, &slot)},
			true)
		p.mu.Unlock()
	}
	has, wants := limitedLock("one", "a"), limitedLock("two", "b")
	if _, err := e.Client.Put(etcdtest.Within(t, etcdtest.Patience), y.Slot("erp", 0),
		string(protocol.EncodeSlot(&has, &has.Slots[0]))); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Look(etcdtest.Within(t, etcdtest.Patience), y.Keys(&wants), wants.Slots); err != nil {
		t.Fatal(err)
	}
	if full := p.Choose(&wants, Late); full != "erp" {
		t.Errorf("%q has no slot", full)
	}
	if known := len(p.known.limits); known > maxKnown {
		t.Errorf("%d limits are known", known)
	}
}
