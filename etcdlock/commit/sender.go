package commit

import (
	"context"
	"slices"
	"sync"
	"time"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// MaxBatchBytes bounds the values and keys of one request; etcd refuses requests above 1.5 MiB.
const MaxBatchBytes = 512 << 10

const (
	// etcd refuses more than 128 operations on one path; a transaction of ours has up to 6, and one
	// more for each slot
	maxBatch    = 100
	maxInFlight = 2 // measured: the second request fills the pauses of the first, more give nothing
)

// Request is one transaction to be sent. Make it with NewRequest.
type Request struct {
	Txn   protocol.Op        // the transaction
	Build func() protocol.Op // makes Txn when the request leaves; nil = Txn is given
	// key of the lock; one request about it is unanswered at a time, unless Side says otherwise
	Lock  string
	Side  Side
	Slots []string // other keys in conflict: slots that it takes or frees, slot waiters
	Size  int      // bytes of its values and keys, at most
	// other deliveries of this process wait for the lock: an enqueue request then waits for the
	// next end
	Contended bool
	Unbatched bool // it names a lease of its own: if that is missing, etcd refuses the whole batch
	Reply     chan Reply
	// HoldUntil bounds for how long an enqueue request waits for the next end. A repeated request
	// keeps the first value. Zero = it does not wait.
	HoldUntil time.Time
	// Refusals counts earlier attempts that etcd refused. A repeated request passes the others,
	// because what the refusal has read is soon outdated.
	Refusals int
	// OnApplied is called when the transaction was applied, before any other request about its lock
	// leaves. It must not block. Nil = not called.
	OnApplied   func(Reply)
	Done        chan struct{}      // closed after the answer and OnApplied; nil = none
	SharedLease clientv3.LeaseID   // of Leases; 0 = none
	AnswerLease clientv3.LeaseID   // as SharedLease, of the answer of a record
	OwnLeases   []clientv3.LeaseID // granted for this request alone; unused if it is not applied
	EndedLease  clientv3.LeaseID   // unused once it is applied; 0 = none

	// Counts are what its outcome adds to the counts of routes, once it is applied.
	Counts []*Count
	// CountsApart says that etcd often refuses it: what it counts does not travel with that of
	// others.
	CountsApart bool

	// The fields below are guarded by the sender's mutex.
	state     requestState
	blockedBy int // its keys that other requests have
}

// Side says how a request shares its lock with others. Enqueue requests may travel together, and
// with the request that ends the holder: in any order, each finds what it compares
// (test/model/batch.go). An enqueue request waits for an end that is under way, because the lock
// may change its owner.
type Side uint8

// How a request shares its lock.
const (
	Exclusive Side = iota // shares with none
	Enqueues              // appends an entry to the queue behind a lock
	Ends                  // settles, or hands off
)

type requestState int

const (
	queued requestState = iota
	sent
	withdrawn
)

// Reply is the answer to one transaction.
type Reply struct {
	*pb.TxnResponse       // nil with an error
	Revision        int64 // of the store, as of the transaction
	Err             error // see link.Definite
}

// Applied reports whether the answer says that the transaction was applied.
func (r Reply) Applied() bool { return r.Err == nil && r.Succeeded }

// NewRequest returns an Exclusive request about that lock. values is the size of the values in txn,
// in bytes.
func NewRequest(lock string, txn protocol.Op, values int) *Request {
	return &Request{Txn: txn, Lock: lock, Size: values + keysPerTxn*len(lock), Reply: make(chan Reply, 1)}
}

const (
	keysPerTxn  = 10 // keys with the name of the workflow in one transaction, at most
	keysPerSlot = 5  // keys with the name of the limit, for each slot
)

// AddSlots adds the slots that r takes or frees, and its slot waiters, to its conflicts. It returns
// r.
func (r *Request) AddSlots(k protocol.Keys) *Request {
	if len(k.Slots) > 0 {
		r.Slots = make([]string, 0, len(k.Slots)+1)
	}
	for i := range k.Slots {
		r.Slots = append(r.Slots, k.Slots[i].Key)
		r.Size += keysPerSlot*len(k.Slots[i].Key) + len(k.Slots[i].Value)
	}
	for _, turn := range [...]string{k.SlotWaiter, k.OldSlotWaiter} {
		if turn != "" {
			r.Slots = append(r.Slots, turn)
		}
	}
	return r
}

// AddOtherLock adds the workflow's own lock to the conflicts of a request about a lock per event,
// if the route has lock.limit: a reload changes which of the two a duplicate takes, and each
// transaction compares that the other one is free. It returns r.
func (r *Request) AddOtherLock(k protocol.Keys, l *idem.Lock) *Request {
	if l.Scope.PerEvent && l.OwnLimit() {
		r.Slots = append(r.Slots, k.OtherLock)
	}
	return r
}

// Sender sends the transactions of deliveries. It groups those that arrive while earlier requests
// are under way, because a request costs etcd one commit however many transactions are in it. None
// waits to be grouped, except for BatchWindow.
//
// etcd reads all compares of a request before its first write. So two transactions about one lock
// or slot must not travel in one request, nor in two that are under way at once: the second waits
// for the answer to the first. Other locks are not held up. A request waits for its keys in the
// order of its arrival, so no two requests wait for each other.
type Sender struct {
	pool  *link.Pool
	tasks *Tasks
	clock link.Clock
	// counter is set before the first request; nil = nothing is counted
	counter Counter

	departing chan []*Request // takes a batch without waiting while fewer than maxInFlight are out
	wg        sync.WaitGroup

	mu        sync.Mutex
	ready     []*Request           // may leave, in the order of arrival
	conflicts map[string]*conflict // by key; an entry for each key that a request has
	inFlight  int
	closed    bool
}

// conflict is a key that some requests have and others wait for.
type conflict struct {
	holders int         // requests that have it, and one more while hold runs
	shared  bool        // the holders are enqueue requests: more of them may join, and one that ends
	hold    *time.Timer // runs while enqueue requests wait for the next end; nil = none do
	holdEnd time.Time   // when that timer ends
	waiting []*Request  // in the order of arrival
}

// NewSender returns a sender of transactions to p, on behalf of running tasks.
func NewSender(p *link.Pool, clock link.Clock, tasks *Tasks) *Sender {
	s := &Sender{pool: p, clock: clock, tasks: tasks, departing: make(chan []*Request, maxInFlight),
		conflicts: map[string]*conflict{}}
	for range maxInFlight {
		s.wg.Go(s.run)
	}
	return s
}

// Send queues r. Its answer always comes to r.Reply, within about the Txn of its pool's Limits
// after its departure.
func (s *Sender) Send(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sendLocked(r)
}

// SendInPlace is Send for a caller that will do nothing but wait for the answer. Where r can leave
// at once, it leaves on the caller's goroutine: no other one wakes up for it, nor for its answer.
// ctx bounds the caller's wait; where little of that is left, r leaves as Send has it leave.
func (s *Sender) SendInPlace(ctx context.Context, r *Request) {
	end, bounded := ctx.Deadline()
	s.mu.Lock()
	s.queueLocked(r)
	var batch []*Request
	if s.inFlight < maxInFlight && (!bounded || end.Sub(s.clock.Now()) >= leastInPlace(s.pool.Txn)) {
		if batch = s.batchLocked(); len(batch) > 0 {
			s.inFlight++
		}
	}
	s.dispatchLocked()
	s.mu.Unlock()
	if len(batch) > 0 {
		s.sendAndRelease(batch)
	}
}

// leastInPlace returns how much of its time a caller must have left. A request that is sent once
// more without its counts takes twice txn, which is all that a delivery has for it (see
// link.LimitsFor): an eighth may have passed, and is the longest that a caller waits beyond its
// time.
func leastInPlace(txn time.Duration) time.Duration { return 2 * txn * 7 / 8 }

func (s *Sender) sendLocked(r *Request) {
	s.queueLocked(r)
	s.dispatchLocked()
}

// queueLocked makes r ready, or lets it wait for its keys.
func (s *Sender) queueLocked(r *Request) {
	if left := r.HoldUntil.Sub(s.clock.Now()); r.Contended && left > 0 && s.conflicts[r.Lock] == nil {
		at := &conflict{shared: true}
		s.conflicts[r.Lock] = at
		s.holdLocked(r.Lock, at, left)
	}
	s.takeLocked(r, r.Lock)
	for i := range r.Slots {
		s.takeLocked(r, r.Slots[i])
	}
	if r.blockedBy == 0 {
		s.ready = append(s.ready, r)
	}
}

// takeLocked gives r a key, or lets it wait for that.
func (s *Sender) takeLocked(r *Request, key string) {
	if at := s.conflicts[key]; at != nil && at.hold != nil && r.Side == Exclusive {
		s.releaseLocked(key, at)
	}
	at := s.conflicts[key]
	switch {
	case at == nil:
		s.conflicts[key] = &conflict{holders: 1, shared: r.Side == Enqueues}
		return
	case at.shared && r.Side == Enqueues && (at.isShareable() && !r.HoldUntil.After(s.clock.Now()) ||
		at.hold == nil && len(at.waiting) == 0):
		at.holders++
		return
	case at.shared && r.Side == Ends && at.isShareable():
		at.holders++
		s.endArrivedLocked(at)
		return
	case r.Refusals > 0 && len(r.Slots) == 0:
		at.waiting = slices.Insert(at.waiting, 0, r)
	default:
		at.waiting = append(at.waiting, r)
	}
	r.blockedBy++
	if r.Side == Enqueues && at.hold != nil && r.HoldUntil.Before(at.holdEnd) {
		at.holdEnd = r.HoldUntil
		at.hold.Reset(r.HoldUntil.Sub(s.clock.Now()))
	}
}

// isShareable reports whether no exclusive request waits: it would wait for as long as one end
// follows the other.
func (at *conflict) isShareable() bool { return len(at.waiting) == 0 || at.waiting[0].Side == Enqueues }

const (
	// endWindow is for how long enqueue requests wait for the next end after a hand-off in this
	// process. They have to wait for the lock anyway; sent alone, they would only delay the end by
	// one commit.
	endWindow = time.Millisecond
	// BatchWindow is for how long enqueue requests wait together if other deliveries of this
	// process wait for the lock, which another process has. Their entries are then next to each
	// other in the queue, and the lock leaves the process less often (docs/adr/0015-hand-off.md).
	BatchWindow = 50 * time.Millisecond
)

// ExpectEnd is called from OnApplied. It lets enqueue requests for that lock wait for the next end,
// which will come soon.
func (s *Sender) ExpectEnd(lock string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.conflicts[lock]; at != nil && at.hold == nil && at.isShareable() && !s.closed {
		s.holdLocked(lock, at, endWindow)
	}
}

// holdLocked lets enqueue requests wait for an end, for d at most.
func (s *Sender) holdLocked(lock string, at *conflict, d time.Duration) {
	at.holders++
	at.shared, at.holdEnd = true, s.clock.Now().Add(d)
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if at.hold == timer && !s.closed {
			s.releaseLocked(lock, at)
			s.dispatchLocked()
		}
	})
	at.hold = timer
}

// releaseLocked ends the wait for an end: the time is over, or an exclusive request needs the lock.
func (s *Sender) releaseLocked(lock string, at *conflict) {
	at.hold.Stop()
	at.hold = nil
	s.admitEnqueuesLocked(at)
	s.freeLocked(lock)
}

// endArrivedLocked lets an end join enqueue requests. Those that have waited for it travel with it.
func (s *Sender) endArrivedLocked(at *conflict) {
	if at.hold != nil {
		at.hold.Stop()
		at.hold = nil
		at.holders--
		s.admitEnqueuesLocked(at)
	}
	at.shared = false
}

// admitEnqueuesLocked gives the key to the enqueue requests before the first exclusive one.
func (s *Sender) admitEnqueuesLocked(at *conflict) {
	for len(at.waiting) > 0 && at.waiting[0].Side == Enqueues {
		s.admitNextLocked(at)
	}
}

// admitNextLocked gives the key to the first waiting request, which is ready if that was its last
// one.
func (s *Sender) admitNextLocked(at *conflict) {
	next := at.waiting[0]
	at.waiting[0] = nil
	at.waiting = at.waiting[1:]
	at.holders++
	if next.blockedBy--; next.blockedBy == 0 {
		s.ready = append(s.ready, next)
	}
}

// Do sends r and waits for its answer, as Await does.
func (s *Sender) Do(ctx context.Context, r *Request) Reply {
	s.Send(r)
	return s.Await(ctx, r)
}

// Await waits for the answer to r, which was sent. If ctx ends first, the answer is an error; it is
// definite if r has not left.
func (s *Sender) Await(ctx context.Context, r *Request) Reply {
	select {
	case answer := <-r.Reply:
		return answer
	case <-ctx.Done():
		if s.Withdraw(r) {
			return Reply{Err: link.ErrNotSent}
		}
		return Reply{Err: context.Cause(ctx)}
	}
}

// Withdraw takes r back. It returns false if r has left; its answer will come.
func (s *Sender) Withdraw(r *Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.state == sent {
		return false
	}
	r.state = withdrawn
	return true
}

// dispatchLocked hands out batches while fewer than maxInFlight are under way.
func (s *Sender) dispatchLocked() {
	for s.inFlight < maxInFlight {
		batch := s.batchLocked()
		if len(batch) == 0 {
			break
		}
		s.inFlight++
		s.departing <- batch
	}
	if s.closed && s.inFlight == 0 {
		close(s.departing)
	}
}

// run sends one batch after the other. Its goroutine is kept, because a new one would have to grow
// its stack each time.
func (s *Sender) run() {
	for batch := range s.departing {
		s.sendAndRelease(batch)
	}
}

// sendAndRelease delivers a batch, and lets what has waited for its keys, or for its return, go.
func (s *Sender) sendAndRelease(batch []*Request) {
	s.sendBatch(batch)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	for _, r := range batch {
		s.freeAllLocked(r)
	}
	s.dispatchLocked()
}

// batchLocked takes the next batch out of ready.
func (s *Sender) batchLocked() (batch []*Request) {
	size := 0
	for len(s.ready) > 0 && len(batch) < maxBatch {
		r := s.ready[0]
		switch {
		case r.state == withdrawn:
			s.popLocked()
			s.deliverReply(r, Reply{Err: link.ErrNotSent})
			s.freeAllLocked(r)
			continue
		case len(batch) > 0 && (r.Unbatched || batch[0].Unbatched || size+r.Size > MaxBatchBytes):
			return batch
		}
		s.popLocked()
		r.state = sent
		size += r.Size
		batch = append(batch, r)
	}
	return batch
}

func (s *Sender) popLocked() {
	s.ready[0] = nil
	s.ready = s.ready[1:]
}

func (s *Sender) freeAllLocked(r *Request) {
	s.freeLocked(r.Lock)
	for i := range r.Slots {
		s.freeLocked(r.Slots[i])
	}
}

// freeLocked gives a key back, and hands it to the next request.
func (s *Sender) freeLocked(key string) {
	at := s.conflicts[key]
	switch at.holders--; {
	case at.holders > 0:
	case len(at.waiting) == 0:
		delete(s.conflicts, key)
	case at.waiting[0].Side == Enqueues:
		at.shared = true
		s.admitEnqueuesLocked(at)
	default:
		at.shared = false
		s.admitNextLocked(at)
	}
}

// sendBatch sends a batch and hands out the answers.
func (s *Sender) sendBatch(batch []*Request) {
	response, err := s.commitCounted(batch)
	switch {
	case err == nil:
		for i, r := range batch {
			s.deliverReply(r, Reply{response.Responses[i].GetResponseTxn(), response.Header.Revision, nil})
		}
	case len(batch) > 1 && link.MemberAlone(err):
		half := len(batch) / 2
		s.sendBatch(batch[:half])
		s.sendBatch(batch[half:])
	default:
		for _, r := range batch {
			s.deliverReply(r, Reply{Err: err})
		}
	}
}

// deliverReply hands out an answer, and ends the leases that it leaves unused: those of deleted
// holds, and the request's own ones if it never will be applied.
func (s *Sender) deliverReply(r *Request, answer Reply) {
	if r.OnApplied != nil && answer.Applied() {
		r.OnApplied(answer)
	}
	if r.Done != nil {
		close(r.Done)
	}
	for _, op := range answer.GetResponses() {
		for _, hold := range op.GetResponseDeleteRange().GetPrevKvs() {
			s.Drop(clientv3.LeaseID(hold.Lease))
		}
	}
	switch {
	case answer.Applied():
		s.Drop(r.EndedLease)
	case answer.Err == nil || link.Definite(answer.Err):
		for _, lease := range r.OwnLeases {
			s.Drop(lease)
		}
	}
	r.Reply <- answer
}

// Drop ends a lease in the background that no key is on and that no transaction will use; 0 = there
// is none. Otherwise etcd would keep it until it expires: for a lock that is taken every minute
// with a TTL of a day, a thousand of them.
func (s *Sender) Drop(id clientv3.LeaseID) {
	if id != 0 {
		s.tasks.Help(func(life context.Context) { s.pool.Drop(life, id) })
	}
}

// commitCounted sends a batch with the counts of its outcomes, and without these where etcd refuses
// them: that must not keep an outcome back.
func (s *Sender) commitCounted(batch []*Request) (*pb.TxnResponse, error) {
	counts := s.collectCounts(batch)
	response, err := s.commitBatch(batch, counts)
	if counts == nil {
		return response, err
	}
	counts.reportAnswer(response, err)
	if mayBeTheCounts(err) {
		return s.commitBatch(batch, nil)
	}
	return response, err
}

// commitBatch sends a batch in one request, with counts if there are some.
func (s *Sender) commitBatch(batch []*Request, counts *carried) (*pb.TxnResponse, error) {
	txns := make(protocol.Writes, len(batch), len(batch)+1)
	for i, r := range batch {
		if r.Build != nil {
			r.Txn = r.Build()
		}
		txns[i] = counts.withCounts(i, r.Txn)
	}
	if counts != nil {
		txns = append(txns, counts.writes...)
	}
	// Not the context of one delivery: the transactions of a batch share its fate.
	return s.pool.Commit(context.Background(), s.pool.Txn, nil, txns)
}

// Idle reports whether nothing waits to leave or for an answer.
func (s *Sender) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conflicts)+len(s.ready) == 0
}

// Hold lets nothing leave until release is called, so that a test knows what travels in one
// request.
func (s *Sender) Hold() (release func()) {
	out := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.inFlight += n
		s.dispatchLocked()
	}
	out(maxInFlight)
	return func() { out(-maxInFlight) }
}

// Waiting returns how many requests could leave now.
func (s *Sender) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ready)
}

// Close waits until no request is under way. Call it once; nothing may be sent after it.
func (s *Sender) Close() {
	s.mu.Lock()
	s.closed = true
	s.dispatchLocked()
	s.mu.Unlock()
	s.wg.Wait()
}
