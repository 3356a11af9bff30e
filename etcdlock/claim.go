package etcdlock

import (
	"context"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/owned"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/etcdlock/slots"
	"hooklock/idem"
)

// How a lock is claimed. One transaction takes it (protocol.Claim); these are its answers, and what follows from each:
//
//	applied                            the lock is ours
//	refused: the lock, a waiter, or
//	the record is in the way           the caller decides on what it sees, which says whether the lock's owner is dead
//	refused: the lock under the other
//	strategy has changed               again, with its revision now; a copy of the event, or a client, that has it is in the way
//	refused: a slot has been taken, or
//	another execution waits for one    again with another one, or the limit that has none is in the way
//	refused: nothing of that           the epoch has moved, by a fence of ours: again, if the session lives
//	not sent, because it is paused     the caller decides on what there is besides
//	an error that is definite          it was not applied and never will be
//	no answer                          fence, so that it never will be, and read whether it was
//
// The claim of the first waiter and that of a client of the lock API are other transactions with the same answers.

// Claim implements idem.Ledger. It returns idem.ErrStoreUnavailable when ctx ends first; what then still arrives in etcd is given
// back by the Store.
func (s *Ledger) Claim(ctx context.Context, l idem.Lock, prev int64) (idem.Held, *idem.Seen, error) {
	session, err := s.assign(&l)
	if pause := s.view.Pauses.Of(l.Route, l.Scope.Workflow); err != nil && pause != nil { // what was known stays in force
		return nil, &idem.Seen{Paused: pause}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	l.Latest = nil // it does not wait
	var value []byte
	if len(l.Slots) == 0 { // otherwise it says which, when they are chosen
		if value, err = protocol.EncodeLock(&l); err != nil {
			return nil, nil, commit.Unavailable(err)
		}
	}
	k := s.layout.Keys(&l)
	c := &claimer{store: s.core, session: session, lock: l, keys: k, value: value, prev: prev}
	c.txn = func(at protocol.Seen) protocol.Op { return protocol.Claim(c.keys, at, protocol.Leased{Value: c.value}) }
	return c.run(ctx)
}

// claimHead returns the claim of the lock for l, which waits in its queue as the entry of revision q. turn is the key of its slot waiter; "" = it has none.
func (s *core) claimHead(l *idem.Lock, of *session.Session, prev, q int64, turn string) (*claimer, error) {
	value, err := protocol.EncodeLock(l)
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	c := &claimer{store: s, session: of, lock: *l, keys: s.layout.Keys(l), value: value, prev: prev, q: q}
	c.keys.Turn = turn
	c.txn = func(at protocol.Seen) protocol.Op {
		return protocol.ClaimAsHead(c.keys, at, protocol.Leased{Value: c.value})
	}
	return c, nil
}

// claim takes r, which is on its way, to a definite end. When abandoned is closed, no caller waits for the result any more.
func (c *claimer) claim(life context.Context, abandoned <-chan struct{}, r *commit.Request, epoch int64) (result claimed) {
	defer func() {
		if result.held == nil {
			c.unchoose()
		}
	}()
	for ; r != nil; r, epoch = c.depart() {
		switch answer := c.await(abandoned, r); {
		case answer.Applied():
			return c.applied(answer)
		case answer.Err == nil:
			if again := c.refused(life, epoch, answer); again != nil {
				return *again
			}
		case link.Definite(answer.Err):
			return claimed{err: commit.Unavailable(answer.Err)}
		default:
			return c.resolve(life, epoch, answer.Err)
		}
	}
	return c.whilePaused(life)
}

// refused is the result after a refusal; nil: it is to be sent again.
func (c *claimer) refused(life context.Context, epoch int64, answer commit.Reply) *claimed {
	st, err := c.stateAfter(life, answer)
	if err != nil {
		return &claimed{err: commit.Unavailable(err)}
	}
	switch c.next(st, protocol.Refused) {
	case protocol.Decide:
		r := c.inTheWay(life, st)
		return &r
	case protocol.BesideOther:
		c.o = st.OtherRevision()
		return nil
	}
	if again, r := c.slotsTaken(life); again || r != nil {
		return r
	}
	if err := c.session.Moved(life, c.store.pool, epoch); err != nil { // nothing was in the way but the epoch
		return &claimed{err: commit.Unavailable(err)}
	}
	return nil
}

// next is what follows a claim that was not applied as far as is known, when things stand as in st.
func (c *claimer) next(st *protocol.State, answer protocol.Answer) protocol.Step {
	return protocol.AfterClaim(st, &protocol.Unapplied{Lock: &c.lock, At: protocol.Seen{OtherLock: c.o, Entry: c.q, Record: c.prev}, Answer: answer})
}

// blocked reports whether a refusal is explained by what stands in etcd.
func (c *claimer) blocked(st *protocol.State) bool {
	return c.next(st, protocol.Refused) == protocol.Decide
}

// inTheWay is what the Guard decides on.
func (c *claimer) inTheWay(life context.Context, st *protocol.State) claimed {
	if st.Unread != nil {
		return claimed{err: commit.Unavailable(st.Unread)}
	}
	seen := st.Seen(c.lock.Scope.Key)
	if seen.Lock == nil {
		seen.Lock = st.HoldsBack(&c.lock)
	}
	if l := seen.Lock; l != nil {
		dead, err := c.store.reaper.IsDead(life, l)
		if err != nil {
			return claimed{err: commit.Unavailable(err)}
		}
		l.Dead = dead
	}
	return claimed{seen: seen}
}

// lookAfter reads how things stand after a transaction got no answer but cause. It may still be on its way, so reading alone proves nothing: first a
// fence makes it fail if it has not been applied.
func (s *core) lookAfter(life context.Context, cause error, of *session.Session, epoch int64, k protocol.Keys) (*protocol.State, error) {
	if link.Fencing(cause) && !s.unfenced {
		if err := of.Fence(life, s.pool, epoch); err != nil {
			return nil, err
		}
	}
	return history.Look(life, s.pool, k)
}

// resolve finds out what became of a claim without a definite answer.
func (c *claimer) resolve(life context.Context, epoch int64, cause error) claimed {
	st, err := c.store.lookAfter(life, cause, c.session, epoch, c.keys)
	if err != nil {
		return claimed{err: commit.Unavailable(err)}
	}
	kind := kindOf(cause)
	switch c.next(st, kind) {
	case protocol.FindLock:
		won := c.won(st.Lock.Created, st.Lock.Revision, st.Mark)
		won.held.See(st.Lock)
		if kind != protocol.Full {
			return won
		}
		c.giveBack(life, won)
		return claimed{err: commit.Unavailable(cause)}
	case protocol.LockLost:
		return claimed{err: idem.ErrLockLost}
	case protocol.Decide: // a full store can still say that it is not this one's turn, or how the event ended
		return c.inTheWay(life, st)
	case protocol.Never: // where the place is gone, too, Await finds out why
		return claimed{err: idem.ErrNotClaimed}
	}
	return claimed{err: commit.Unavailable(cause)}
}

// whilePaused returns the answer to a claim that was not sent. If etcd does not answer, the pause stays in force all the same. A place is kept.
func (c *claimer) whilePaused(ctx context.Context) claimed {
	if c.q != 0 {
		return claimed{err: idem.ErrNotClaimed}
	}
	seen := &idem.Seen{}
	if st, err := history.Look(ctx, c.store.pool, c.keys); err == nil {
		if found := c.inTheWay(ctx, st); found.err == nil {
			seen = found.seen
		}
	}
	seen.Paused = c.pause
	return claimed{seen: seen}
}

// claimer is one claim on its way to a definite end.
type claimer struct {
	store   *core
	session *session.Session
	lock    idem.Lock
	keys    protocol.Keys
	txn     func(protocol.Seen) protocol.Op
	value   []byte // of the lock; nil where txn has its own
	size    int    // of that
	prev    int64
	o       int64       // the revision of the lock under another strategy, which another event has; 0 = it is free
	q       int64       // the own place in the queue, 0 = it did not wait
	pause   *idem.Pause // why it was not sent; nil = it was
	same    int         // refusals in a row after which the same slots were free
	alone   bool        // it takes the lock for a client of the lock API, on a lease of its own: this process does not keep it

	help func(func(life context.Context)) bool // runs what goes on after run has given up; nil: a task does
}

// claimed is the result of a claim: one of the three is set.
type claimed struct {
	held *owned.Lock
	seen *idem.Seen
	err  error
}

// run claims for as long as ctx lives; what comes later is given back. The usual way, one answer and the lock, takes no goroutine.
func (c *claimer) run(ctx context.Context) (idem.Held, *idem.Seen, error) {
	if !c.store.tasks.Enter() {
		return nil, nil, commit.Unavailable(commit.ErrClosed)
	}
	defer c.store.tasks.Leave()
	if r := c.choose(ctx); r != nil {
		return nil, r.seen, r.err
	}
	r, epoch := c.depart()
	if r == nil {
		c.unchoose()
		result := c.whilePaused(ctx)
		return nil, result.seen, result.err
	}
	select {
	case answer := <-r.Reply:
		if answer.Applied() {
			return c.applied(answer).held, nil, nil
		}
		r.Reply <- answer
	case <-ctx.Done():
	}
	help := c.help
	if help == nil {
		help = c.store.tasks.Help
	}
	result, err := commit.InTime(ctx, help, func(life context.Context) claimed { return c.claim(life, ctx.Done(), r, epoch) }, c.giveBack)
	switch {
	case err != nil:
		return nil, nil, commit.Unavailable(c.store.pool.Because(err))
	case result.held == nil:
		return nil, result.seen, result.err
	}
	return result.held, nil, nil
}

// depart sends the claim, with the epoch that it carries; nil: it is paused. The pauses are read after the epoch, see view.Pauses.
func (c *claimer) depart() (r *commit.Request, epoch int64) {
	epoch = c.session.Epoch()
	if c.pause = c.store.view.Pauses.Of(c.lock.Route, c.lock.Scope.Workflow); c.pause != nil {
		return nil, epoch
	}
	r = commit.NewRequest(c.keys.Lock, c.txn(protocol.Seen{Epoch: epoch, OtherLock: c.o, Record: c.prev, Entry: c.q}), max(c.size, len(c.value))).AddSlots(c.keys).AddOtherLock(c.keys, &c.lock)
	r.Unbatched = c.alone
	c.store.sender.Send(r)
	return r, epoch
}

// stateAfter is how things stand after a refusal. A claim past the queue brings lock and record, which explain nearly all refusals.
func (c *claimer) stateAfter(life context.Context, answer commit.Reply) (*protocol.State, error) {
	st, err := protocol.ReadState(answer.Responses, answer.Revision)
	if err != nil || c.q != 0 || c.blocked(st) {
		return st, err
	}
	return history.Look(life, c.store.pool, c.keys)
}

// await returns the answer to r. A request that was not sent yet is withdrawn when abandoned is closed.
func (c *claimer) await(abandoned <-chan struct{}, r *commit.Request) commit.Reply {
	select {
	case answer := <-r.Reply:
		return answer
	case <-abandoned:
		if c.store.sender.Withdraw(r) {
			return commit.Reply{Err: link.ErrNotSent}
		}
		return <-r.Reply
	}
}

// applied is after the answer that the claim was applied.
func (c *claimer) applied(answer commit.Reply) claimed {
	r := c.won(answer.Revision, answer.Revision, markIn(c.keys, answer))
	var line protocol.Line
	if c.q != 0 {
		line = protocol.LineAt(answer.Responses[protocol.ReadFirstAfterClaim], answer.Revision)
		r.held.Behind(line)
	}
	c.store.view.Queues.Changed(c.keys.Lock, r.held.Lock(), answer.Revision, line)
	return r
}

// markIn is the mark that came with the lock; nil = there is none.
func markIn(k protocol.Keys, won commit.Reply) *mvccpb.KeyValue {
	if k.Mark == "" {
		return nil
	}
	for _, answer := range slices.Backward(won.Responses) { // its writes are before and behind, and the first waiter is read before
		if answer.GetResponseRange() != nil {
			return protocol.First(answer)
		}
	}
	return nil
}

func (c *claimer) won(created, revision int64, mark *mvccpb.KeyValue) claimed {
	l := c.lock
	l.Created, l.Token, l.Revision = created, created, revision
	if len(l.Slots) > 0 {
		c.store.view.Slots.Took(&l)
	}
	protocol.Judge(&l, mark)
	if c.alone {
		return claimed{held: c.store.own.Make(l, c.keys, c.session)}
	}
	return claimed{held: c.store.own.Add(l, c.keys, c.session)}
}

// giveBack releases a lock that is not wanted any more: its sender has been told that nothing was claimed.
func (c *claimer) giveBack(life context.Context, r claimed) {
	if r.held != nil {
		_ = r.held.GiveBack(life) // tries until it is definite or the Store's time is up
	}
}

// choose says which slots the claim is to take, where it counts against limits. What it returns is why there is none for it. What is paused gets none,
// and is not refused for what it would wait for besides.
func (c *claimer) choose(ctx context.Context) *claimed {
	if len(c.lock.Slots) == 0 {
		return nil
	}
	if c.pause = c.store.view.Pauses.Of(c.lock.Route, c.lock.Scope.Workflow); c.pause != nil {
		r := c.whilePaused(ctx)
		return &r
	}
	for looked := false; ; looked = true {
		c.lock.Slots = slices.Clone(c.lock.Slots) // a lock that was shown to others stays as it is
		full := c.store.view.Slots.Choose(&c.lock, c.comes())
		if full == "" {
			return c.encode()
		}
		if c.q != 0 && c.store.view.Slots.Knows() { // it goes on waiting, and the watch tells it
			return &claimed{seen: &idem.Seen{Full: c.limit(full), Oldest: c.store.view.Slots.Oldest(full)}}
		}
		st, err := c.store.view.Slots.Look(ctx, c.keys, c.lock.Slots)
		switch {
		case err != nil:
			return &claimed{err: commit.Unavailable(err)}
		case c.blocked(st) && c.q == 0:
			r := c.inTheWay(ctx, st)
			return &r
		case looked || c.q != 0:
			seen := st.Seen(c.lock.Scope.Key)
			seen.Full, seen.Oldest = c.limit(full), c.store.view.Slots.Oldest(full)
			return &claimed{seen: seen}
		}
	}
}

func (c *claimer) comes() slots.Arrival {
	if c.q != 0 {
		return slots.AsHead
	}
	return slots.Late
}

// limit is the slot of that name.
func (c *claimer) limit(name string) *idem.Slot {
	for i := range c.lock.Slots {
		if c.lock.Slots[i].Limit == name {
			return &c.lock.Slots[i]
		}
	}
	return nil
}

// encode makes the keys and the value of the lock with its slots.
func (c *claimer) encode() *claimed {
	c.keys.Slots = slots.Chosen(c.store.layout, &c.lock)
	var err error
	if c.value, err = protocol.EncodeLock(&c.lock); err != nil {
		c.unchoose()
		return &claimed{err: commit.Unavailable(err)}
	}
	return nil
}

// slotsTaken finds out, after a refusal that nothing else explains, whether it is about slots. Then others are chosen; r is why there are none.
func (c *claimer) slotsTaken(life context.Context) (again bool, r *claimed) {
	if len(c.lock.Slots) == 0 {
		return false, nil
	}
	chosen := c.lock.Slots
	c.unchoose()
	if _, err := c.store.view.Slots.Look(life, c.keys, chosen); err != nil {
		return false, &claimed{err: commit.Unavailable(err)}
	}
	if r := c.choose(life); r != nil {
		return false, r
	}
	if c.same++; !slices.Equal(chosen, c.lock.Slots) {
		c.same = 0
	}
	return c.same < manyTimes, nil
}

// manyTimes is how often the same slots are tried before it is taken for the epoch: each may have been taken, and freed since.
const manyTimes = 3

func (c *claimer) unchoose() {
	if len(c.lock.Slots) > 0 {
		c.store.view.Slots.Unchoose(&c.lock)
	}
}
