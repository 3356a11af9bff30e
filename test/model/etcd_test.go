package model

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
)

// TestTheStoreIsLikeEtcd sends random transactions of the protocol to the model's store and to a
// real etcd. Both apply the same ones, and have the same keys afterwards, at the same revisions.
func TestTheStoreIsLikeEtcd(t *testing.T) {
	etcd := etcdtest.Start(t)
	for _, sc := range []scenario{
		bounded("limit, latest", []int{0, 1, 2}, budget{}, func(sc *scenario) {
			sc.limits, sc.order, sc.releaseDelay = [maxProcesses]uint8{1, 2, 1}, [maxEvents]uint8{2, 1, 3}, true
			first(&sc.latest)
		}),
		bounded("two locks, strategies", []int{0, 0, 1}, budget{}, func(sc *scenario) {
			sc.lockCount, sc.apart, sc.lockOf[1] = 3, true, 2
			second(&sc.none)
		}),
	} {
		t.Run(sc.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(*seed, uint64(len(sc.name))))
			for range 4 {
				newTwin(t, etcd, sc).random(r, 300)
			}
		})
	}
}

// twin is a store and an etcd that are to have the same keys.
type twin struct {
	t         *testing.T
	m         *model
	s         *state
	client    *clientv3.Client
	kv        pb.KVClient
	revisions [256]int64 // of etcd, for each of the store
	leases    map[int64]clientv3.LeaseID
	applied   int
}

func newTwin(t *testing.T, etcd *etcdtest.Etcd, sc scenario) *twin {
	t.Helper()
	m := newModel(sc)
	w := &twin{
		t:      t,
		m:      m,
		s:      &state{},
		client: etcd.Client,
		kv:     pb.NewKVClient(etcd.Client.ActiveConnection()),
		leases: map[int64]clientv3.LeaseID{},
	}
	if _, err := w.client.Delete(context.Background(), "m/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	for p := range m.processCount {
		w.open(p)
	}
	return w
}

func (w *twin) open(p int) {
	w.m.openSession(w.s, p)
	i := session(w.s.opened)
	put, err := w.client.Put(
		context.Background(),
		w.m.aliveKey(alive(i), 0),
		"",
		clientv3.WithLease(w.lease(int64(sessionLease(i)))),
	)
	if err != nil {
		w.t.Fatal(err)
	}
	w.revisions[w.s.clock] = put.Header.Revision
}

// lease is that of etcd for one of the store. Each is granted when it is first asked for.
func (w *twin) lease(of int64) clientv3.LeaseID {
	if id, ok := w.leases[of]; ok || of == 0 {
		return id
	}
	lease, err := w.client.Grant(context.Background(), 3600)
	if err != nil {
		w.t.Fatal(err)
	}
	w.leases[of] = lease.ID
	return lease.ID
}

func (w *twin) revoke(of clientv3.LeaseID) {
	if _, err := w.client.Revoke(context.Background(), w.lease(int64(of))); err != nil {
		w.t.Fatal(err)
	}
}

// random makes steps until the store has no revisions left.
func (w *twin) random(r *rand.Rand, steps int) {
	for range steps {
		if w.s.clock > never-3 {
			break
		}
		switch r.IntN(40) {
		case 0:
			if i := session(1 + r.IntN(int(w.s.opened))); w.s.sessions[i] != 0 && w.s.opened < maxSessions {
				w.m.loseSession(w.s, i)
				w.revoke(sessionLease(i))
				w.open(int(i) % w.m.processCount)
			}
		case 1:
			x, n := w.anybody(r), uint8(r.IntN(holdLeases-1))
			if w.s.leaseLives(x, n) {
				w.m.loseHold(w.s, x, n)
				w.revoke(holdLease(x, n))
			}
		default:
			w.send(w.transaction(r))
		}
		w.compare()
	}
	if w.applied < steps/4 {
		w.t.Errorf("only %d of %d transactions were applied: they are not like what processes send", w.applied, steps)
	}
}

func (w *twin) anybody(r *rand.Rand) execution {
	return execution(1 + r.IntN(w.m.deliveryCount*idsPerArrival))
}

// transaction is one that a process could send which knows most of what is there.
func (w *twin) transaction(r *rand.Rand) *txn {
	m, s := w.m, w.s
	t := &txn{
		kind:    claim + kind(r.IntN(int(kinds-claim))),
		by:      w.anybody(r),
		session: session(1 + r.IntN(int(s.opened))),
		outcome: outcome(1 + r.IntN(int(abortedUnsure))),
	}
	if l := s.locks[r.IntN(m.lockCount)]; l.created != 0 && r.IntN(2) == 0 {
		t.by = l.by
	} else if q := s.queue[r.IntN(m.eventCount)]; q.created != 0 && r.IntN(2) == 0 {
		t.by = q.by
	}
	l, q := s.locks[m.lock(t.by)], s.queue[m.event(t.by)]
	t.epoch, t.created, t.l, t.q, t.prev = s.sessions[t.session], l.created, l.modified, q.created,
		s.records[m.event(t.by)].modified
	t.h, t.o, t.alive, t.cancel, t.token = s.holds[t.by].modified, m.otherIs(
		s,
		t.by,
	), l.alive, uint8(
		r.IntN(3),
	), l.token
	t.lease, t.parked, t.trying, t.fresh, t.letter, t.turn, t.seen = uint8(
		r.IntN(coolingLease),
	), l.parked, r.IntN(
		2,
	) == 0, r.IntN(
		2,
	) == 0, r.IntN(
		2,
	) == 0, r.IntN(
		2,
	) == 0, r.IntN(
		2,
	) == 0
	if m.limited() && l.slot == 0 {
		t.slot = uint8(1 + r.IntN(maxSlots))
	}
	t.old = executionOf(t.by.delivery(), uint8(t.by%idsPerArrival)) // the other ID of its delivery
	for e := range m.eventCount {
		other := s.queue[e]
		if other.created == 0 || e == m.event(t.by) || m.lock(other.by) != m.lock(t.by) {
			continue
		}
		t.last = max(t.last, other.created-revision(r.IntN(2)))
		t.over, t.overQ, t.overParked = other.by, other.modified, other.parked
		if t.kind == handOver {
			t.next, t.heir, t.q, t.prev = other.by, max(other.session, 1), other.modified, s.records[e].modified
		}
	}
	switch {
	case t.kind == handOver && t.next == 0:
		t.kind = settle
	case t.kind >= enterSlotWaiters && !m.limited():
		t.kind = leave
	case t.kind == forceReleaseParked:
		t.letter = true
	}
	if !m.latest[t.by.delivery()] {
		t.over, t.overQ, t.last = 0, 0, 0
	}
	m.look(s, t)
	for _, known := range []*revision{&t.epoch, &t.created, &t.l, &t.q, &t.prev, &t.h, &t.o, &t.last, &t.overQ} {
		if n := 1 + revision(r.IntN(int(s.clock))); r.IntN(30) == 0 && *known != 0 &&
			w.revisions[n] != w.revisions[n-1] { // else it changed nothing
			*known = n
		}
	}
	return t
}

func (w *twin) send(t *txn) {
	w.t.Helper()
	c := w.m.compile(t)
	passes := c.passes(&w.s.store)
	request := w.m.op(t).GetRequestTxn()
	w.translate(request)
	got, err := w.kv.Txn(context.Background(), request)
	if errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseNotFound) {
		if passes {
			w.t.Fatalf("etcd knows a lease no more that the store has: %+v", *t)
		}
		return
	}
	if err != nil {
		w.t.Fatalf("%s: %v", t.kind, err)
	}
	if got.Succeeded != passes {
		w.t.Fatalf("etcd applies %s: %v; the store: %v. %+v", t.kind, got.Succeeded, passes, *t)
	}
	if !passes {
		return
	}
	w.applied++
	at := w.s.next()
	w.revisions[at] = got.Header.Revision
	c.run(&w.s.store, at)
}

// translate puts etcd's revisions and leases into what was made with those of the store.
func (w *twin) translate(request *pb.TxnRequest) {
	revision := func(c *pb.Compare, n int64) int64 {
		switch {
		case n == 0, n == never:
			return n
		case c.Result == pb.Compare_GREATER && c.RangeEnd != nil:
			return w.revisions[n+1] - 1
		case c.Result == pb.Compare_LESS:
			return w.revisions[n-1] + 1
		}
		return w.revisions[n]
	}
	for _, c := range request.Compare {
		switch than := c.TargetUnion.(type) {
		case *pb.Compare_ModRevision:
			than.ModRevision = revision(c, than.ModRevision)
		case *pb.Compare_CreateRevision:
			than.CreateRevision = revision(c, than.CreateRevision)
		}
	}
	for _, ops := range [][]*pb.RequestOp{request.Success, request.Failure} {
		for _, op := range ops {
			if put := op.GetRequestPut(); put != nil {
				put.Lease = int64(w.lease(put.Lease))
			}
			if nested := op.GetRequestTxn(); nested != nil {
				w.translate(nested)
			}
		}
	}
}

// compare fails unless etcd has the keys of the store.
func (w *twin) compare() {
	w.t.Helper()
	got, err := w.client.Get(context.Background(), "m/", clientv3.WithPrefix())
	if err != nil {
		w.t.Fatal(err)
	}
	type at struct{ created, modified int64 }
	there := map[string]at{}
	for _, kv := range got.Kvs {
		there[string(kv.Key)] = at{kv.CreateRevision, kv.ModRevision}
	}
	for key, r := range w.m.spelled.refs {
		created, modified := w.s.revisionsOf(r)
		found := there[key]
		switch {
		case (created == 0) != (found.created == 0):
			w.t.Fatalf("%s is in etcd: %v, in the store: %v", key, found.created != 0, created != 0)
		case created == 0:
		case r.class == lockKey || r.class == queueKey:
			if w.revisions[created] != found.created {
				w.t.Fatalf("%s was created at %d in etcd, in the store at %d", key, found.created, w.revisions[created])
			}
			fallthrough
		case r.class <= holdKey:
			if w.revisions[modified] != found.modified {
				w.t.Fatalf(
					"%s was changed at %d in etcd, in the store at %d",
					key,
					found.modified,
					w.revisions[modified],
				)
			}
		}
	}
}
