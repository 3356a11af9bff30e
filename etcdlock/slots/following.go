package slots

import (
	"context"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// slotsRound is how often waiters are checked: a limit may have been changed, or a slot waiter may
// have got lost.
const slotsRound = time.Second

// roundsToCome is for how many rounds a parked queue that is next is waited for: then the following
// one is next.
const roundsToCome = 3

// Run follows all slots and slot waiters while an execution waits for a slot, until ctx ends.
func (p *Slots) Run(ctx context.Context) {
	f := &following{p}
	keys := &link.Reflector{Pool: p.options.Pool, On: link.OfWaits, Source: f, Round: slotsRound}
	for link.AwaitWake(ctx, p.wanted) {
		keys.Run(ctx, 0)
		f.stopFollowing()
	}
}

// following tells Slots what etcd has.
type following struct{ slots *Slots }

func (f *following) stopFollowing() {
	f.slots.mu.Lock()
	defer f.slots.mu.Unlock()
	if f.slots.known.followed = false; !f.idleLocked() { // a waiter came just now
		link.Wake(f.slots.wanted)
	}
}

// List reads all slots and slot waiters, and lets all waiters ask again. It returns the error of
// ctx.
func (f *following) List(ctx context.Context) (int64, error) {
	p := f.slots
	answers, revision, err := p.options.Pool.Read(ctx, clientv3.OpGet(p.options.Layout.All(protocol.KindSlots),
		clientv3.WithPrefix()), clientv3.OpGet(p.options.Layout.All(protocol.KindSlotWaiters), clientv3.WithPrefix()))
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known.forgetAll()
	for i, slot := range []bool{true, false} {
		for _, kv := range answers[i].GetResponseRange().Kvs {
			p.known.noteFound(kv, slot)
		}
	}
	p.known.followed = true
	for _, w := range p.waiters {
		p.wakeWaiter(w)
	}
	p.wakeAgainLocked("")
	return revision, nil
}

// Watches returns one watch of slots and slot waiters, whose keys are adjacent. Of two watches, one
// could report that an execution waits no more before the other reports its slot: then the next one
// would try that slot.
func (f *following) Watches(from int64) []link.Watch {
	both := clientv3.WithRange(clientv3.GetPrefixRangeEnd(f.slots.options.Layout.All(protocol.KindSlotWaiters)))
	return []link.Watch{{Key: f.slots.options.Layout.All(protocol.KindSlots),
		Opts: []clientv3.OpOption{both, clientv3.WithRev(from)}, News: f.applyEvent}}
}

func (f *following) applyEvent(e *clientv3.Event) {
	p := f.slots
	slot := strings.HasPrefix(string(e.Kv.Key), p.options.Layout.All(protocol.KindSlots))
	if !slot && !strings.HasPrefix(string(e.Kv.Key), p.options.Layout.All(protocol.KindSlotWaiters)) {
		return // of a kind that this release does not know
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Type == clientv3.EventTypeDelete {
		p.tellLocked(p.known.noteGone(e.Kv, slot))
		return
	}
	p.tellLocked(p.known.noteFound(e.Kv, slot))
}

func (f *following) idleLocked() bool { return len(f.slots.waiters) == 0 && len(f.slots.again) == 0 }

// Idle implements link.Source.
func (f *following) Idle() bool { return f.lookAfter() }

// lookAfter lets waiters ask again that may have lost their entry or whose limit may have changed,
// and removes slot waiters that no execution here waits with.
func (f *following) lookAfter() (nobody bool) {
	p := f.slots
	session, err := p.options.Session()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		return f.idleLocked()
	}
	for x, w := range p.waiters {
		in := p.known.limits[w.turn]
		lost := in == nil || in.waiters[x] == nil
		if w.idle++; w.ready != "" && w.idle > roundsToCome && (lost || slices.Contains(p.nextLocked(w.turn), x)) {
			delete(p.waiters, x) // its queue has been looked at without it: it has ended, or will ask again
			continue
		}
		if lost {
			p.wakeWaiter(w)
		}
	}
	p.wakeAgainLocked("")
	for name, in := range p.known.limits {
		p.tellLocked(name)
		for x, t := range in.waiters {
			if t.Session == session.Name &&
				(p.waiters[x] == nil || p.waiters[x].turn != name && p.waiters[x].idle > 1) {
				p.dropSlotWaiter(name, x)
			}
		}
	}
	return f.idleLocked()
}

// dropSlotWaiter removes a slot waiter, in the background.
func (p *Slots) dropSlotWaiter(at string, x idem.ExecutionID) {
	key := p.options.Layout.SlotWaiter(at, x)
	p.options.Tasks.Help(func(life context.Context) {
		for pause := link.NewBackoff(); ; {
			answer := p.options.Sender.Do(life,
				commit.NewRequest(key, protocol.DropSlotWaiter(protocol.Keys{SlotWaiter: key}), 0))
			if answer.Err == nil || pause.Wait(life) != nil {
				return
			}
		}
	})
}

// EnterSlotWaiters makes the head of a queue a slot waiter of a limit, and removes the one that it
// had at another. A refusal means that its queue entry is gone, which its waiter finds out.
func (p *Slots) EnterSlotWaiters(life context.Context, w *Waiter, k protocol.Keys, q int64, session *session.Session,
	at string) error {
	id := w.lock.Execution
	k.SlotWaiter = p.options.Layout.SlotWaiter(at, id)
	if w.turn != "" && w.turn != at {
		k.OldSlotWaiter = p.options.Layout.SlotWaiter(w.turn, id)
	}
	turn := protocol.Leased{Value: protocol.EncodeSlotWaiter(&w.lock, at, session.Name, q), Lease: session.Lease}
	p.mu.Lock()
	if w := p.waiters[id]; w != nil {
		w.turn = at // also if its answer gets lost
	}
	p.mu.Unlock()
	return p.options.Sender.Do(life,
		commit.NewRequest(k.Lock, protocol.EnterSlotWaiters(k, protocol.Revisions{Entry: q}, turn),
			len(turn.Value)).AddSlots(k)).Err
}
