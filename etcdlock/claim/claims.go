package claim

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/owned"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/reap"
	"hooklock/etcdlock/session"
	"hooklock/etcdlock/slots"
	"hooklock/etcdlock/view"
	"hooklock/idem"
)

// How a lock is claimed. One transaction takes it (protocol.Claim); these are its answers, and what
// follows from each:
//
//	applied                            this process has the lock
//	refused: the lock, a waiter, or
//	the record is in the way           the caller decides on what it sees, which says whether the lock's owner is dead
//	refused: the lock under the other
//	strategy has changed               again, with its revision now; a copy of the event, or a client, that has it is in the way
//	refused: a slot has been taken, or
//	another execution waits for one    again with another one, or the limit that has none is in the way
//	refused: nothing of that           the epoch has moved, by a fence of this process: again, if the session lives
//	not sent, because it is paused     the caller decides on what there is besides
//	an error that is definite          it was not applied and never will be
//	no answer                          fence, so that it never will be, and read whether it was
//
// The claim of the first waiter and that of a client of the lock API are other transactions with
// the same answers.

// Options are what claims work with.
type Options struct {
	Pool   *link.Pool      // reads and watches etcd
	Sender *commit.Sender  // sends the transactions
	Tasks  *commit.Tasks   // run in the background; Store.Close waits for them
	Leases *commit.Leases  // of the names of twins
	Layout protocol.Layout // spells the keys
	Keeper *session.Keeper // keeps the session of this process
	View   *view.View      // what this process knows of waiting and parked executions
	Own    *owned.Locks    // the locks of this process
	Reaper *reap.Reaper    // ends executions whose owner is dead
	// Unfenced is for the test that shows what the fence is for: nothing is fenced.
	Unfenced bool
}

// Claims take locks for executions of this process. They are safe for concurrent use.
type Claims struct{ options *Options }

// New returns claims.
func New(o *Options) *Claims { return &Claims{o} }

// Claim is that of idem.Ledger. It returns idem.ErrStoreUnavailable when ctx ends first; what then
// still arrives in etcd is given back.
func (s *Claims) Claim(ctx context.Context, l idem.Lock, prev int64) (idem.RunningLock, *idem.Obstacle, error) {
	session, err := s.assignToSession(&l)
	// what was known stays in force
	if pause := s.options.View.Pauses.Of(l.Route, l.Scope.Workflow); err != nil && pause != nil {
		return nil, &idem.Obstacle{Paused: pause}, nil
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
	c := &claimer{options: s.options, session: session, lock: l, keys: s.options.Layout.Keys(&l), value: value,
		prev: prev}
	return c.run(ctx, nil)
}

// ClaimHead claims for l, which waits in its queue as the entry of revision q that a session has.
// turn is the key of its slot waiter; "" = it has none. help runs what goes on after ctx has ended;
// nil: a task does. Its results are those of Claim.
func (s *Claims) ClaimHead(
	ctx context.Context, l *idem.Lock, of *session.Session, prev, q int64, turn string,
	help func(func(life context.Context)) bool,
) (idem.RunningLock, *idem.Obstacle, error) {
	value, err := protocol.EncodeLock(l)
	if err != nil {
		return nil, nil, commit.Unavailable(err)
	}
	c := &claimer{options: s.options, session: of, lock: *l, keys: s.options.Layout.Keys(l), value: value, prev: prev,
		place: q}
	c.keys.SlotWaiter = turn
	return c.run(ctx, help)
}

// ClaimHeld claims for a client of the lock API: lock lives on the hold alive, and this process
// does not keep it. held is what lock says, of is the session of this process. Its results are
// those of Claim.
func (s *Claims) ClaimHeld(
	ctx context.Context, held *idem.Lock, of *session.Session, lock, alive protocol.Leased,
) (idem.RunningLock, *idem.Obstacle, error) {
	l := *held
	l.Alive = protocol.SessionAlive(of.Name)
	c := &claimer{options: s.options, session: of, lock: *held, keys: s.options.Layout.Keys(&l), value: lock.Value,
		hold: &alive}
	return c.run(ctx, nil)
}

// newTransaction returns the transaction that takes the lock, if all is as in at.
func (c *claimer) newTransaction(at protocol.Revisions) protocol.Op {
	lock := protocol.Leased{Value: c.value}
	switch {
	case c.hold != nil:
		return protocol.Acquire(c.keys, at, lock, *c.hold)
	case c.place != 0:
		return protocol.ClaimAsHead(c.keys, at, lock)
	}
	return protocol.Claim(c.keys, at, lock)
}

// claimUntilDefinite takes r, which is on its way, to a definite end. When abandoned is closed, no
// caller waits for the result any more.
func (c *claimer) claimUntilDefinite(life context.Context, abandoned <-chan struct{}, r *commit.Request,
	epoch int64) (result claimed) {
	defer func() {
		if result.lock == nil {
			c.unchooseSlots()
		}
	}()
	for ; r != nil; r, epoch = c.sendClaim(life) {
		switch answer := c.awaitReply(abandoned, r); {
		case answer.Applied():
			return c.finishApplied(answer)
		case answer.Err == nil:
			if again := c.resolveRefusal(life, epoch, answer); again != nil {
				return *again
			}
		case link.Definite(answer.Err):
			return claimed{err: commit.Unavailable(answer.Err)}
		default:
			return c.resolveUnknown(life, epoch, answer.Err)
		}
	}
	return c.whilePaused(life)
}

// resolveRefusal returns the result after a refusal; nil: it is to be sent again.
func (c *claimer) resolveRefusal(life context.Context, epoch int64, answer commit.Reply) *claimed {
	st, err := c.stateAfter(life, answer)
	if err != nil {
		return &claimed{err: commit.Unavailable(err)}
	}
	switch c.nextStep(st, protocol.Refused) {
	case protocol.Decide:
		r := c.inTheWay(life, st)
		return &r
	case protocol.BesideOther:
		c.other = st.OtherRevision()
		return nil
	}
	if again, r := c.slotsTaken(life); again || r != nil {
		return r
	}
	if err := c.session.LearnEpoch(life, c.options.Pool, epoch); err != nil { // nothing was in the way but the epoch
		return &claimed{err: commit.Unavailable(err)}
	}
	return nil
}

// nextStep is what follows a claim that was not applied as far as is known, when things stand as in
// st.
func (c *claimer) nextStep(st *protocol.State, answer protocol.Answer) protocol.Step {
	return protocol.AfterClaim(st,
		&protocol.Unapplied{Lock: &c.lock, At: protocol.Revisions{OtherLock: c.other, Entry: c.place, Record: c.prev},
			Answer: answer})
}

// isBlocked reports whether a refusal is explained by what stands in etcd.
func (c *claimer) isBlocked(st *protocol.State) bool {
	return c.nextStep(st, protocol.Refused) == protocol.Decide
}

// inTheWay is what the Guard decides on.
func (c *claimer) inTheWay(life context.Context, st *protocol.State) claimed {
	if st.Unread != nil {
		return claimed{err: commit.Unavailable(st.Unread)}
	}
	seen := st.Obstacle(c.lock.Scope.Key)
	if seen.Lock == nil {
		seen.Lock = st.HoldsBack(&c.lock)
	}
	if l := seen.Lock; l != nil {
		dead, err := c.options.Reaper.IsDead(life, l)
		if err != nil {
			return claimed{err: commit.Unavailable(err)}
		}
		l.Dead = dead
	}
	return claimed{obstacle: seen}
}

// LookAfter reads how things stand after a transaction got no answer but cause. It may still be on
// its way, so reading alone proves nothing: first a fence makes it fail if it has not been applied.
func (s *Claims) LookAfter(
	life context.Context, cause error, of *session.Session, epoch int64, k protocol.Keys,
) (*protocol.State, error) {
	return s.options.lookAfter(life, cause, of, epoch, k)
}

func (s *Options) lookAfter(
	life context.Context, cause error, of *session.Session, epoch int64, k protocol.Keys,
) (*protocol.State, error) {
	if link.Fencing(cause) && !s.Unfenced {
		if err := of.Fence(life, s.Pool, epoch); err != nil {
			return nil, err
		}
	}
	return history.Look(life, s.Pool, k)
}

// resolveUnknown finds out what became of a claim without a definite answer.
func (c *claimer) resolveUnknown(life context.Context, epoch int64, cause error) claimed {
	st, err := c.options.lookAfter(life, cause, c.session, epoch, c.keys)
	if err != nil {
		return claimed{err: commit.Unavailable(err)}
	}
	kind := AnswerOf(cause)
	switch c.nextStep(st, kind) {
	case protocol.FindLock:
		won := c.addOwnLock(st.Lock.Created, st.Lock.Revision, st.HighWaterMark)
		won.lock.See(st.Lock)
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

// whilePaused returns the answer to a claim that was not sent. If etcd does not answer, the pause
// stays in force all the same. A place is kept.
func (c *claimer) whilePaused(ctx context.Context) claimed {
	if c.place != 0 {
		return claimed{err: idem.ErrNotClaimed}
	}
	seen := &idem.Obstacle{}
	if st, err := history.Look(ctx, c.options.Pool, c.keys); err == nil {
		if found := c.inTheWay(ctx, st); found.err == nil {
			seen = found.obstacle
		}
	}
	seen.Paused = c.pause
	return claimed{obstacle: seen}
}

// claimer is one claim on its way to a definite end.
type claimer struct {
	options *Options
	session *session.Session
	lock    idem.Lock
	keys    protocol.Keys
	value   []byte // of the lock
	prev    int64
	other   int64       // the revision of the lock under another strategy, which another event has; 0 = it is free
	place   int64       // the own place in the queue, 0 = it did not wait
	pause   *idem.Pause // why it was not sent; nil = it was
	same    int         // refusals in a row after which the same slots were free
	// it takes the lock for a client of the lock API, which lives on this hold: this process does
	// not keep it; nil = it does not
	hold *protocol.Leased
}

// claimed is the result of a claim: one of the three is set.
type claimed struct {
	lock     *owned.Lock
	obstacle *idem.Obstacle
	err      error
}

// run claims for as long as ctx lives; what comes later is given back, by help; nil: a task does.
// The usual way, one answer and the lock, takes no goroutine.
func (c *claimer) run(ctx context.Context, help func(func(life context.Context)) bool) (idem.RunningLock,
	*idem.Obstacle,
	error) {
	if !c.options.Tasks.Enter() {
		return nil, nil, commit.Unavailable(commit.ErrClosed)
	}
	defer c.options.Tasks.Leave()
	if r := c.chooseSlots(ctx); r != nil {
		return nil, r.obstacle, r.err
	}
	r, epoch := c.sendClaim(ctx)
	if r == nil {
		c.unchooseSlots()
		result := c.whilePaused(ctx)
		return nil, result.obstacle, result.err
	}
	select {
	case answer := <-r.Reply:
		if answer.Applied() {
			return c.finishApplied(answer).lock, nil, nil
		}
		r.Reply <- answer
	case <-ctx.Done():
	}
	if help == nil {
		help = c.options.Tasks.Help
	}
	result, err := commit.InTime(ctx, help, func(life context.Context) claimed {
		return c.claimUntilDefinite(life, ctx.Done(), r, epoch)
	}, c.giveBack)
	switch {
	case err != nil:
		return nil, nil, commit.Unavailable(c.options.Pool.Because(err))
	case result.lock == nil:
		return nil, result.obstacle, result.err
	}
	return result.lock, nil, nil
}

// sendClaim sends the claim, with the epoch that it carries; nil: it is paused. The pauses are read
// after the epoch, see view.Pauses.
func (c *claimer) sendClaim(ctx context.Context) (r *commit.Request, epoch int64) {
	epoch = c.session.Epoch()
	if c.pause = c.options.View.Pauses.Of(c.lock.Route, c.lock.Scope.Workflow); c.pause != nil {
		return nil, epoch
	}
	r = commit.NewRequest(c.keys.Lock,
		c.newTransaction(protocol.Revisions{Epoch: epoch, OtherLock: c.other, Record: c.prev, Entry: c.place}),
		len(c.value)).AddSlots(c.keys).AddOtherLock(c.keys, &c.lock)
	r.Unbatched = c.hold != nil
	if c.place == 0 && c.hold == nil {
		c.options.Sender.SendInPlace(ctx, r)
	} else { // its caller may give up before the time of ctx is over
		c.options.Sender.Send(r)
	}
	return r, epoch
}

// stateAfter is how things stand after a refusal. A claim past the queue brings lock and record,
// which explain nearly all refusals.
func (c *claimer) stateAfter(life context.Context, answer commit.Reply) (*protocol.State, error) {
	st, err := protocol.ReadState(answer.Responses, answer.Revision)
	if err != nil || c.place != 0 || c.isBlocked(st) {
		return st, err
	}
	return history.Look(life, c.options.Pool, c.keys)
}

// awaitReply returns the answer to r. A request that was not sent yet is withdrawn when abandoned
// is closed.
func (c *claimer) awaitReply(abandoned <-chan struct{}, r *commit.Request) commit.Reply {
	select {
	case answer := <-r.Reply:
		return answer
	case <-abandoned:
		if c.options.Sender.Withdraw(r) {
			return commit.Reply{Err: link.ErrNotSent}
		}
		return <-r.Reply
	}
}

// finishApplied returns the lock of a claim whose answer is that it was applied.
func (c *claimer) finishApplied(answer commit.Reply) claimed {
	r := c.addOwnLock(answer.Revision, answer.Revision, protocol.HighWaterMarkIn(c.keys, answer.Responses))
	var candidates protocol.Candidates
	if c.place != 0 {
		candidates = protocol.CandidatesAt(answer.Responses[protocol.ReadFirstAfterClaim], answer.Revision)
		r.lock.Behind(candidates)
	}
	c.options.View.Queues.ApplyLock(c.keys.Lock, r.lock.Lock(), answer.Revision, candidates)
	return r
}

func (c *claimer) addOwnLock(created, revision int64, mark *mvccpb.KeyValue) claimed {
	l := c.lock
	l.Created, l.Token, l.Revision = created, created, revision
	if len(l.Slots) > 0 {
		c.options.View.Slots.NoteTaken(&l)
	}
	protocol.Judge(&l, mark)
	if c.hold != nil {
		return claimed{lock: c.options.Own.Make(l, c.keys, c.session)}
	}
	return claimed{lock: c.options.Own.Add(l, c.keys, c.session)}
}

// giveBack releases a lock that is not wanted any more: its sender has the answer that nothing was
// claimed.
func (c *claimer) giveBack(life context.Context, r claimed) {
	if r.lock != nil {
		_ = r.lock.GiveBack(life) // tries until it is definite or the Store's time is up
	}
}

// chooseSlots says which slots the claim is to take, where it counts against limits. What it
// returns is why there is none for it. What is paused gets none, and is not refused for what it
// would wait for besides.
func (c *claimer) chooseSlots(ctx context.Context) *claimed {
	if len(c.lock.Slots) == 0 {
		return nil
	}
	if c.pause = c.options.View.Pauses.Of(c.lock.Route, c.lock.Scope.Workflow); c.pause != nil {
		r := c.whilePaused(ctx)
		return &r
	}
	for looked := false; ; looked = true {
		c.lock.Slots = slices.Clone(c.lock.Slots) // a lock that was shown to others stays as it is
		full := c.options.View.Slots.Choose(&c.lock, c.slotArrival())
		if full == "" {
			return c.encodeLock()
		}
		if c.place != 0 && c.options.View.Slots.Knows() { // it goes on waiting, and the watch tells it
			return &claimed{obstacle: &idem.Obstacle{Full: c.slotByLimit(full),
				Oldest: c.options.View.Slots.Oldest(full)}}
		}
		st, err := c.options.View.Slots.Look(ctx, c.keys, c.lock.Slots)
		switch {
		case err != nil:
			return &claimed{err: commit.Unavailable(err)}
		case c.isBlocked(st) && c.place == 0:
			r := c.inTheWay(ctx, st)
			return &r
		case looked || c.place != 0:
			seen := st.Obstacle(c.lock.Scope.Key)
			seen.Full, seen.Oldest = c.slotByLimit(full), c.options.View.Slots.Oldest(full)
			return &claimed{obstacle: seen}
		}
	}
}

func (c *claimer) slotArrival() slots.Arrival {
	if c.place != 0 {
		return slots.AsHead
	}
	return slots.Late
}

// slotByLimit is the slot of that name.
func (c *claimer) slotByLimit(name string) *idem.Slot {
	for i := range c.lock.Slots {
		if c.lock.Slots[i].LimitName == name {
			return &c.lock.Slots[i]
		}
	}
	return nil
}

// encodeLock makes the keys and the value of the lock with its slots.
func (c *claimer) encodeLock() *claimed {
	c.keys.Slots = slots.Chosen(c.options.Layout, &c.lock)
	var err error
	if c.value, err = protocol.EncodeLock(&c.lock); err != nil {
		c.unchooseSlots()
		return &claimed{err: commit.Unavailable(err)}
	}
	return nil
}

// slotsTaken finds out, after a refusal that nothing else explains, whether it is about slots. Then
// others are chosen; r is why there are none.
func (c *claimer) slotsTaken(life context.Context) (again bool, r *claimed) {
	if len(c.lock.Slots) == 0 {
		return false, nil
	}
	chosen := c.lock.Slots
	c.unchooseSlots()
	if _, err := c.options.View.Slots.Look(life, c.keys, chosen); err != nil {
		return false, &claimed{err: commit.Unavailable(err)}
	}
	if r := c.chooseSlots(life); r != nil {
		return false, r
	}
	if c.same++; !slices.Equal(chosen, c.lock.Slots) {
		c.same = 0
	}
	return c.same < manyTimes, nil
}

// manyTimes is how often the same slots are tried before it is taken for the epoch: each may have
// been taken, and freed since.
const manyTimes = 3

func (c *claimer) unchooseSlots() {
	if len(c.lock.Slots) > 0 {
		c.options.View.Slots.Unchoose(&c.lock)
	}
}

// AnswerOf is the kind of an answer that does not say that a transaction was applied.
func AnswerOf(err error) protocol.Answer {
	switch {
	case err == nil:
		return protocol.Refused
	case link.Fencing(err):
		return protocol.Missing
	}
	return protocol.Full
}

// Prepare makes l the lock of the live session, and its value.
func (s *Claims) Prepare(l *idem.Lock) (*session.Session, []byte, error) {
	session, err := s.assignToSession(l)
	if err != nil {
		return nil, nil, err
	}
	value, err := protocol.EncodeLock(l)
	if err != nil {
		return nil, nil, commit.Unavailable(err)
	}
	return session, value, nil
}

// assignToSession makes l the lock of the live session.
func (s *Claims) assignToSession(l *idem.Lock) (*session.Session, error) {
	session, _, err := s.options.Keeper.Current()
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	if len(l.Scope.Workflow) > protocol.MaxWorkflowBytes {
		return nil, commit.Unavailable(fmt.Errorf("workflow of %d bytes, at most %d: %w", len(l.Scope.Workflow),
			protocol.MaxWorkflowBytes, protocol.ErrTooLarge))
	}
	if !utf8.ValidString(l.Scope.Workflow) { // its value could not spell it
		return nil, commit.Unavailable(fmt.Errorf("workflow %q: give UTF-8", l.Scope.Workflow))
	}
	l.Alive = protocol.SessionAlive(session.Name)
	if l.Holder == "" {
		l.Holder = session.Holder()
	}
	return session, nil
}
