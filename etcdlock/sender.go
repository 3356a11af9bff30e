package etcdlock

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

const (
	maxBatch      = 100       // etcd refuses more than 128 operations on one path, a transaction of ours has up to 6, and one more for each slot
	maxBatchBytes = 512 << 10 // etcd refuses requests above 1.5 MiB
	maxInFlight   = 2         // measured: the second fills the pauses of the first, more give nothing
)

// request is one transaction on its way.
type request struct {
	txn     protocol.Op
	late    func() protocol.Op // makes txn when it leaves, of what is known then; nil = it is made
	place   string             // the lock that it is about: one unanswered request at a time
	side    side               // whether it may share the place
	slots   []string           // those that it takes or frees, and its turns at limits: the same holds for each of them
	size    int                // bytes of the values in it, and of its keys at most
	company bool               // one who comes: others of this process wait for the lock already, so an end here is near, and it waits for that
	alone   bool               // it names a lease of its own, which may be missing and would fail the whole batch
	reply   chan reply
	// until when who comes may be kept for an end, from when he came on: whoever is refused is not kept for as long again. Zero = he is not kept.
	until time.Time
	// refusals is how often it was refused before. What the last one has read is not true for long, so it passes those who wait for the place.
	refusals int
	// applied hears first that it was applied, before anything else about its place leaves. It must not block. Nil = nobody does.
	applied func(reply)
	done    chan struct{}      // closed when it is answered, and applied was told; nil = nobody waits for that
	lease   clientv3.LeaseID   // the shared one that it names, 0 = none
	own     []clientv3.LeaseID // those that were granted for it and nothing else
	over    clientv3.LeaseID   // the one that is over when it is applied, 0 = none

	// owned by the sender's mutex
	state  requestState
	before int // places and slots of it that others have
}

// side says how a request shares the lock that it is about: those who queue behind it may travel together, and with who ends what has it. Whatever the
// order, each finds what it compares (test/model/batch.go). Who queues waits for the end that is out, because the lock may be another's afterwards.
type side uint8

const (
	neither side = iota
	comes        // queues behind a lock that was seen
	ends         // settles, or hands over
)

type requestState int

const (
	waiting requestState = iota
	sent
	withdrawn
)

// reply is the answer to one transaction.
type reply struct {
	*pb.TxnResponse       // nil with an error
	revision        int64 // of the store, as of the transaction
	err             error // see definite
}

// newRequest takes the bytes of the values in txn.
func newRequest(place string, txn protocol.Op, values int) *request {
	return &request{txn: txn, place: place, size: values + longKeys*len(place), reply: make(chan reply, 1)}
}

// longKeys is how often a transaction has the name of its workflow in a key, at most: in its compares, in what it writes, and in what a refusal reads. In
// keys it may be three times as long as it is.
const longKeys = 10

// slotKeys is the same of the name of a limit, for each of them.
const slotKeys = 5

// about names the slots that r takes or frees, and its turns at limits.
func (r *request) about(k protocol.Keys) *request {
	if len(k.Slots) > 0 {
		r.slots = make([]string, 0, len(k.Slots)+1)
	}
	for i := range k.Slots {
		r.slots = append(r.slots, k.Slots[i].Key)
		r.size += slotKeys*len(k.Slots[i].Key) + len(k.Slots[i].Value)
	}
	for _, turn := range [...]string{k.T, k.U} {
		if turn != "" {
			r.slots = append(r.slots, turn)
		}
	}
	return r
}

// besides keeps r apart from what is about the other lock of l, where a route has a limit of its own: a reload changes which of the two a copy of the
// event takes, and each compares that the other one is free.
func (r *request) besides(k protocol.Keys, l *idem.Lock) *request {
	if l.Scope.PerEvent && l.OwnLimit() {
		r.slots = append(r.slots, k.O)
	}
	return r
}

// sender is the only place that sends transactions of deliveries. It groups what has come together while the requests before it
// were out (natural batching: nobody waits for company, but see rotation), because one request costs etcd one commit, however many are in it.
//
// All compares of a request are read before its first write, so two transactions about one lock must not meet in one request, nor
// in two that are out at once: the second waits until the first is answered. A busy lock does not hold up the others. The same holds for two about
// one slot. A request waits for all that it is about in the order of its arrival, so no two wait for each other.
type sender struct {
	pool *link.Pool
	// unused hears of leases that nothing is on and that no transaction will use: etcd would carry them until they run out. Nil ends none.
	unused func(clientv3.LeaseID)
	now    func() time.Time

	departing chan []*request // takes a batch without waiting while fewer than maxInFlight are out
	wg        sync.WaitGroup

	mu       sync.Mutex
	ready    []*request       // in the order of arrival, at most one for each place, and who ends beside who comes
	behind   map[string]*spot // an entry for each place that is taken
	inFlight int
	closed   bool
}

// spot is a place that somebody has.
type spot struct {
	n       int         // who have it
	shared  bool        // those are some who come, so more of them may have it, too, and one who ends
	ending  *time.Timer // runs while it is kept for who ends; nil = it is not
	until   time.Time   // when that is over
	waiting []*request  // the others, in the order of arrival
}

// newSender returns a sender of transactions to p. unused is told of leases that nothing is on and that no transaction will use; nil tells nobody.
func newSender(p *link.Pool, now func() time.Time, unused func(clientv3.LeaseID)) *sender {
	s := &sender{pool: p, now: now, unused: unused, departing: make(chan []*request, maxInFlight), behind: map[string]*spot{}}
	for range maxInFlight {
		s.wg.Go(s.run)
	}
	return s
}

// send takes r on its way; the answer comes to r.reply, always, within about txnTimeout of its departure.
func (s *sender) send(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sendLocked(r)
}

func (s *sender) sendLocked(r *request) {
	if left := r.until.Sub(s.now()); r.company && left > 0 && s.behind[r.place] == nil {
		at := &spot{shared: true}
		s.behind[r.place] = at
		s.keepLocked(r.place, at, left)
	}
	s.standLocked(r, r.place)
	for i := range r.slots {
		s.standLocked(r, r.slots[i])
	}
	if r.before == 0 {
		s.ready = append(s.ready, r)
	}
	s.dispatchLocked()
}

// standLocked takes place for r, or lets r wait for it.
func (s *sender) standLocked(r *request, place string) {
	if at := s.behind[place]; at != nil && at.ending != nil && r.side == neither {
		s.keptEnoughLocked(place, at)
	}
	at := s.behind[place]
	switch {
	case at == nil:
		s.behind[place] = &spot{n: 1, shared: r.side == comes}
		return
	case at.shared && r.side == comes && (at.mayShare() && !r.until.After(s.now()) || at.ending == nil && len(at.waiting) == 0):
		at.n++
		return
	case at.shared && r.side == ends && at.mayShare():
		at.n++
		s.endsLocked(at)
		return
	case r.refusals > 0 && len(r.slots) == 0:
		at.waiting = slices.Insert(at.waiting, 0, r)
	default:
		at.waiting = append(at.waiting, r)
	}
	r.before++
	if r.side == comes && at.ending != nil && r.until.Before(at.until) {
		at.until = r.until
		at.ending.Reset(r.until.Sub(s.now()))
	}
}

// mayShare reports whether nobody waits who needs the place for himself: he would wait for as long as one end follows the other.
func (at *spot) mayShare() bool { return len(at.waiting) == 0 || at.waiting[0].side == comes }

const (
	// moment is for how long a place is kept for the next end, where the lock has just been handed over here. Who comes then has to wait for the lock in any
	// case; on his own he would only let the end wait while etcd syncs its disk for him.
	moment = time.Millisecond
	// rotation is for how long it is kept where others of this process wait for the lock, which another process has. So those who come here get places next to
	// each other, and the lock leaves the process less often: docs/adr/0015-the-baton.md has what that gives.
	rotation = 50 * time.Millisecond
)

// expect keeps the place of a request that was just applied for the next end, which will come soon.
func (s *sender) expect(place string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.behind[place]; at != nil && at.ending == nil && at.mayShare() && !s.closed {
		s.keepLocked(place, at, moment)
	}
}

// keepLocked lets who comes wait for an end, for d at most.
func (s *sender) keepLocked(place string, at *spot, d time.Duration) {
	at.n++
	at.shared, at.until = true, s.now().Add(d)
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if at.ending == timer && !s.closed {
			s.keptEnoughLocked(place, at)
			s.dispatchLocked()
		}
	})
	at.ending = timer
}

// keptEnoughLocked is when no end has come to a place that was kept, or somebody needs it for himself.
func (s *sender) keptEnoughLocked(place string, at *spot) {
	at.ending.Stop()
	at.ending = nil
	s.comeLocked(at) // also where one who is not kept is out
	s.freeLocked(place)
}

// endsLocked is when an end has come to a place that others share. Where it was kept for that, those who came meanwhile travel with it.
func (s *sender) endsLocked(at *spot) {
	if at.ending != nil {
		at.ending.Stop()
		at.ending = nil
		at.n--
		s.comeLocked(at)
	}
	at.shared = false
}

// comeLocked lets all go who come, until there is one who needs the place for himself.
func (s *sender) comeLocked(at *spot) {
	for len(at.waiting) > 0 && at.waiting[0].side == comes {
		s.nextLocked(at)
	}
}

// nextLocked lets the first who waits for a place go, where that is all that it waits for.
func (s *sender) nextLocked(at *spot) {
	next := at.waiting[0]
	at.waiting[0] = nil
	at.waiting = at.waiting[1:]
	at.n++
	if next.before--; next.before == 0 {
		s.ready = append(s.ready, next)
	}
}

// do sends r and waits.
func (s *sender) do(ctx context.Context, r *request) reply {
	s.send(r)
	return s.await(ctx, r)
}

// await waits for the answer to r, which was sent. When ctx ends first the answer is an error that is definite if r has not left.
func (s *sender) await(ctx context.Context, r *request) reply {
	select {
	case answer := <-r.reply:
		return answer
	case <-ctx.Done():
		if s.withdraw(r) {
			return reply{err: link.ErrNotSent}
		}
		return reply{err: context.Cause(ctx)}
	}
}

// withdraw takes r back; false: it has left, and its answer will come.
func (s *sender) withdraw(r *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.state == sent {
		return false
	}
	r.state = withdrawn
	return true
}

// dispatchLocked sends what may go now.
func (s *sender) dispatchLocked() {
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

// run carries one batch after the other. Its goroutine is kept, because a new one would have to grow its stack each time.
func (s *sender) run() {
	for batch := range s.departing {
		s.deliver(batch)
		s.mu.Lock()
		s.inFlight--
		for _, r := range batch {
			s.freeAllLocked(r)
		}
		s.dispatchLocked()
		s.mu.Unlock()
	}
}

// batchLocked takes the next batch out of ready.
func (s *sender) batchLocked() (batch []*request) {
	size := 0
	for len(s.ready) > 0 && len(batch) < maxBatch {
		r := s.ready[0]
		switch {
		case r.state == withdrawn:
			s.popLocked()
			s.answer(r, reply{err: link.ErrNotSent})
			s.freeAllLocked(r)
			continue
		case len(batch) > 0 && (r.alone || batch[0].alone || size+r.size > maxBatchBytes):
			return batch
		}
		s.popLocked()
		r.state = sent
		size += r.size
		batch = append(batch, r)
	}
	return batch
}

func (s *sender) popLocked() {
	s.ready[0] = nil
	s.ready = s.ready[1:]
}

func (s *sender) freeAllLocked(r *request) {
	s.freeLocked(r.place)
	for i := range r.slots {
		s.freeLocked(r.slots[i])
	}
}

// freeLocked lets the next about place go.
func (s *sender) freeLocked(place string) {
	at := s.behind[place]
	switch at.n--; {
	case at.n > 0:
	case len(at.waiting) == 0:
		delete(s.behind, place)
	case at.waiting[0].side == comes:
		at.shared = true
		s.comeLocked(at)
	default:
		at.shared = false
		s.nextLocked(at)
	}
}

// deliver sends a batch and hands out the answers.
func (s *sender) deliver(batch []*request) {
	response, err := s.commit(batch)
	switch {
	case err == nil:
		for i, r := range batch {
			s.answer(r, reply{response.Responses[i].GetResponseTxn(), response.Header.Revision, nil})
		}
	case len(batch) > 1 && link.MemberAlone(err):
		for _, r := range batch {
			s.deliver([]*request{r})
		}
	default:
		for _, r := range batch {
			s.answer(r, reply{err: err})
		}
	}
}

// answer hands out an answer, and tells of the leases that are over with it: of a hold that the transaction deleted, and those of its own
// where it was not applied and never will be.
func (s *sender) answer(r *request, answer reply) {
	if r.applied != nil && answer.err == nil && answer.Succeeded {
		r.applied(answer)
	}
	if r.done != nil {
		close(r.done)
	}
	if s.unused != nil {
		for _, op := range answer.GetResponses() {
			for _, hold := range op.GetResponseDeleteRange().GetPrevKvs() {
				s.unused(clientv3.LeaseID(hold.Lease))
			}
		}
		switch {
		case answer.err == nil && answer.Succeeded:
			s.unused(r.over)
		case answer.err == nil || link.Definite(answer.err):
			for _, lease := range r.own {
				s.unused(lease)
			}
		}
	}
	r.reply <- answer
}

func (s *sender) commit(batch []*request) (*pb.TxnResponse, error) {
	txns := make(protocol.Writes, len(batch))
	for i, r := range batch {
		if r.late != nil {
			r.txn = r.late()
		}
		txns[i] = r.txn
	}
	// Not the life of any one delivery: the members of a batch share its fate.
	return s.pool.Commit(context.Background(), link.TxnTimeout, nil, txns)
}

// idle reports whether nothing waits to leave or for an answer.
func (s *sender) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.behind)+len(s.ready) == 0
}

// hold lets nothing leave until release is called, so that a test knows what travels in one request.
func (s *sender) hold() (release func()) {
	out := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.inFlight += n
		s.dispatchLocked()
	}
	out(maxInFlight)
	return func() { out(-maxInFlight) }
}

// waiting is how many requests could leave now.
func (s *sender) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ready)
}

// close waits until nothing is on its way. Call it once; nothing may be sent any more.
func (s *sender) close() {
	s.mu.Lock()
	s.closed = true
	s.dispatchLocked()
	s.mu.Unlock()
	s.wg.Wait()
}
