package etcdlock

import (
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/protocol"
)

// scene is a piece of etcd in which one transaction would pass.
type scene struct {
	t    *testing.T
	etcd *etcdtest.Etcd
	k    protocol.Keys
	at   protocol.Seen
	next protocol.Seen // of who is next
}

func (s *scene) put(key string) int64 {
	s.t.Helper()
	r, err := s.etcd.Client.Put(within(s.t, patience), key, "seen")
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Header.Revision
}

func (s *scene) del(key string) {
	s.t.Helper()
	if _, err := s.etcd.Client.Delete(within(s.t, patience), key); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) has(key string) bool {
	s.t.Helper()
	r, err := s.etcd.Client.Get(within(s.t, patience), key)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Count == 1
}

func (s *scene) revision() int64 {
	s.t.Helper()
	r, err := s.etcd.Client.Get(within(s.t, patience), "x")
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Header.Revision
}

func (s *scene) send(op protocol.Op) bool {
	s.t.Helper()
	r, err := etcdtest.ThroughOf(s.etcd.Client).Commit(within(s.t, patience), &pb.TxnRequest{Success: protocol.Writes{op}})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Responses[0].GetResponseTxn().Succeeded
}

// row is one transaction of the table: the scene in which it passes, what must be there afterwards, and for each of its compares what
// makes that one fail and no other.
type row struct {
	name   string
	scene  func(*scene)
	op     func(*scene) protocol.Op
	there  func(protocol.Keys) []string
	gone   func(protocol.Keys) []string
	breaks map[string]func(*scene)
}

var value = protocol.Leased{Value: []byte("new")}

func session0(s *scene)  { s.at.Epoch = s.put(s.k.S) }
func locked(s *scene)    { s.at.Created = s.put(s.k.L); s.at.L = s.put(s.k.L) }
func heldLock(s *scene)  { locked(s); s.k.A = s.k.H; s.put(s.k.H) }
func queued(s *scene)    { s.at.Q = s.put(s.k.Q) }
func elsewhere(s *scene) { s.at.O = s.put(s.k.O) }

func moveEpoch(s *scene)   { s.put(s.k.S) }
func takeLock(s *scene)    { s.put(s.k.L) }
func touchLock(s *scene)   { s.put(s.k.L) }
func takeOther(s *scene)   { s.put(s.k.O) }
func otherToken(s *scene)  { s.at.Created-- }
func writeRecord(s *scene) { s.put(s.k.I) }
func somebodyWaits(s *scene) {
	s.put(s.k.W + "another")
}
func placeOfAnother(s *scene) { s.del(s.k.Q); s.put(s.k.Q) }

// nextOf are the keys of who waits behind the execution of k.
func nextOf(k protocol.Keys) protocol.Keys {
	k.S, k.Q, k.I = k.S+"next", k.W+"next", k.I+"next"
	return k
}

func rows() []row {
	l := func(k protocol.Keys) []string { return []string{k.L} }
	q := func(k protocol.Keys) []string { return []string{k.Q} }
	i := func(k protocol.Keys) []string { return []string{k.I} }
	held := func(k protocol.Keys) []string { return []string{k.L, k.H} }
	lockAndSlot := func(k protocol.Keys) []string { return []string{k.L, k.Slots[0].Key} }
	limited := func(s *scene) {
		y := protocol.NewLayout(s.k.L)
		s.k.Slots = []protocol.SlotKey{{Key: y.Slot("erp", 3), Value: []byte("v"), Line: y.OfLimit(protocol.KindTurns, "erp")}}
		s.k.T = y.Turn("erp", "exec_x")
	}
	seenLock := map[string]func(*scene){"L.mod=l": touchLock}
	ownLock := map[string]func(*scene){"L.create=token": otherToken, "L.mod=l": touchLock}
	dead := map[string]func(*scene){"L.mod=l": touchLock, "alive key absent": func(s *scene) { s.put(s.k.A) }}
	cool := &protocol.Cooling{Lock: value, Hold: value}
	return []row{
		{"claim", session0, func(s *scene) protocol.Op { return protocol.Claim(s.k, s.at, value) }, l, nil,
			map[string]func(*scene){"E": moveEpoch, "L absent": takeLock, "O.mod=o": takeOther, "queue empty": somebodyWaits, "I.mod=prev": writeRecord}},
		{"claim over a record", func(s *scene) { session0(s); s.at.Prev = s.put(s.k.I) }, func(s *scene) protocol.Op { return protocol.Claim(s.k, s.at, value) }, l, nil,
			map[string]func(*scene){"E": moveEpoch, "L absent": takeLock, "O.mod=o": takeOther, "queue empty": somebodyWaits, "I.mod=prev": func(s *scene) { s.del(s.k.I) }}},
		{"claim under strategy none, while another event has the workflow", func(s *scene) { session0(s); elsewhere(s) }, func(s *scene) protocol.Op { return protocol.Claim(s.k, s.at, value) }, l, nil,
			map[string]func(*scene){"E": moveEpoch, "L absent": takeLock, "O.mod=o": takeOther, "queue empty": somebodyWaits, "I.mod=prev": writeRecord}},
		{"enqueue behind nobody", session0, func(s *scene) protocol.Op { return protocol.Enqueue(s.k, s.at, value, value) }, q, nil,
			map[string]func(*scene){"E": moveEpoch, "L.mod=l": takeLock, "O.mod=o": takeOther, "Q absent": func(s *scene) { s.put(s.k.Q) }, "I.mod=prev": writeRecord}},
		{"enqueue", func(s *scene) { session0(s); locked(s) }, func(s *scene) protocol.Op { return protocol.Enqueue(s.k, s.at, value, value) }, q, nil,
			map[string]func(*scene){"E": moveEpoch, "L.mod=l": touchLock, "O.mod=o": takeOther, "Q absent": func(s *scene) { s.put(s.k.Q) }, "I.mod=prev": writeRecord}},
		{"claim as head", func(s *scene) { session0(s); queued(s); somebodyWaits(s) }, func(s *scene) protocol.Op { return protocol.ClaimAsHead(s.k, s.at, value) }, l, q,
			map[string]func(*scene){"E": moveEpoch, "L absent": takeLock, "O.mod=o": takeOther, "Q.create=q": placeOfAnother, "I.mod=prev": writeRecord,
				"no Q with a smaller create revision": func(s *scene) { s.del(s.k.W + "another"); s.del(s.k.Q); s.put(s.k.W + "earlier"); queued(s) }}},
		{"claim with a slot", func(s *scene) { session0(s); limited(s) }, func(s *scene) protocol.Op { return protocol.Claim(s.k, s.at, value) }, lockAndSlot, nil,
			map[string]func(*scene){"slot absent": func(s *scene) { s.put(s.k.Slots[0].Key) }, "nobody in line": func(s *scene) { s.put(s.k.Slots[0].Line + "another") },
				"E": moveEpoch, "L absent": takeLock, "O.mod=o": takeOther, "queue empty": somebodyWaits, "I.mod=prev": writeRecord}},
		{"claim as head with a slot", func(s *scene) { session0(s); queued(s); limited(s); s.put(s.k.T) }, func(s *scene) protocol.Op { return protocol.ClaimAsHead(s.k, s.at, value) }, lockAndSlot,
			func(k protocol.Keys) []string { return []string{k.Q, k.T} }, map[string]func(*scene){"slot absent": func(s *scene) { s.put(s.k.Slots[0].Key) },
				"E": moveEpoch, "L absent": takeLock, "O.mod=o": takeOther, "Q.create=q": placeOfAnother, "I.mod=prev": writeRecord,
				"no Q with a smaller create revision": func(s *scene) { s.del(s.k.Q); s.put(s.k.W + "earlier"); queued(s) }}},
		{"enqueue with a turn", func(s *scene) { session0(s); limited(s) }, func(s *scene) protocol.Op { return protocol.Enqueue(s.k, s.at, value, value) },
			func(k protocol.Keys) []string { return []string{k.Q, k.T} }, nil,
			map[string]func(*scene){"E": moveEpoch, "L.mod=l": takeLock, "O.mod=o": takeOther, "Q absent": func(s *scene) { s.put(s.k.Q) }, "I.mod=prev": writeRecord}},
		{"take a turn", func(s *scene) { queued(s); limited(s); s.k.U = s.k.T + "before"; s.put(s.k.U) }, func(s *scene) protocol.Op { return protocol.TakeTurn(s.k, s.at, value) },
			func(k protocol.Keys) []string { return []string{k.T} }, func(k protocol.Keys) []string { return []string{k.U} }, map[string]func(*scene){"Q.create=q": placeOfAnother}},
		{"settle with a slot", func(s *scene) { locked(s); limited(s); s.put(s.k.Slots[0].Key) }, func(s *scene) protocol.Op { return protocol.Settle(s.k, s.at, value, nil, nil) }, i,
			func(k protocol.Keys) []string { return []string{k.L, k.Slots[0].Key} }, seenLock},
		{"settle with a slot and cool", func(s *scene) { locked(s); limited(s); s.put(s.k.Slots[0].Key) }, func(s *scene) protocol.Op { return protocol.Settle(s.k, s.at, value, cool, nil) }, lockAndSlot, nil, seenLock},
		{"reap with a slot", func(s *scene) { locked(s); limited(s); s.put(s.k.Slots[0].Key) }, func(s *scene) protocol.Op { return protocol.Reap(s.k, s.at, value, nil) }, i,
			func(k protocol.Keys) []string { return []string{k.L, k.Slots[0].Key} }, dead},
		{"leave", queued, func(s *scene) protocol.Op { return protocol.Leave(s.k, s.at) }, nil, q,
			map[string]func(*scene){"Q.create=q": placeOfAnother}},
		{"settle", locked, func(s *scene) protocol.Op { return protocol.Settle(s.k, s.at, value, nil, nil) }, i, l, seenLock},
		{"settle what is held", heldLock, func(s *scene) protocol.Op { return protocol.Settle(s.k, s.at, value, nil, nil) }, i,
			func(k protocol.Keys) []string { return []string{k.L, k.H} }, seenLock},
		{"hand over", func(s *scene) {
			session0(s)
			locked(s)
			next := nextOf(s.k)
			s.put(next.S)
			s.next = protocol.Seen{Q: s.put(next.Q), Prev: s.put(next.I)}
			somebodyWaits(s)
		}, func(s *scene) protocol.Op {
			return protocol.HandOver(s.k, s.at, nextOf(s.k), s.next, value, value, nil, true)
		}, func(k protocol.Keys) []string { return []string{k.I, k.L} }, func(k protocol.Keys) []string { return []string{nextOf(k).Q} },
			map[string]func(*scene){"E": moveEpoch, "L.mod=l": touchLock, "Q.mod=q of the next": func(s *scene) { s.put(nextOf(s.k).Q) },
				"session of the next present": func(s *scene) { s.del(nextOf(s.k).S) },
				"I.mod=prev of the next":      func(s *scene) { s.put(nextOf(s.k).I) }}},
		{"settle and cool", locked, func(s *scene) protocol.Op { return protocol.Settle(s.k, s.at, value, cool, nil) },
			func(k protocol.Keys) []string { return []string{k.I, k.L, k.H} }, nil, seenLock},
		{"release", locked, func(s *scene) protocol.Op { return protocol.Release(s.k, s.at) }, nil,
			func(k protocol.Keys) []string { return []string{k.L, k.I} }, seenLock},
		{"release what is held", heldLock, func(s *scene) protocol.Op { return protocol.Release(s.k, s.at) }, nil,
			func(k protocol.Keys) []string { return []string{k.L, k.H, k.I} }, seenLock},
		{"adopt", func(s *scene) { session0(s); locked(s) }, func(s *scene) protocol.Op { return protocol.Adopt(s.k, s.at, value) }, l, nil,
			map[string]func(*scene){"E": moveEpoch, "L.create=token": otherToken, "L.mod=l": touchLock}},
		{"reap", locked, func(s *scene) protocol.Op { return protocol.Reap(s.k, s.at, value, nil) }, i, l, dead},
		{"reap and cool", locked, func(s *scene) protocol.Op { return protocol.Reap(s.k, s.at, value, cool) },
			func(k protocol.Keys) []string { return []string{k.I, k.L, k.H} }, nil, dead},
		{"reap a cooling lock", locked, func(s *scene) protocol.Op { return protocol.ReapCooling(s.k, s.at) }, nil,
			func(k protocol.Keys) []string { return []string{k.L, k.I} }, dead},
		{"acquire", session0, func(s *scene) protocol.Op { return protocol.Acquire(s.k, s.at, value, value) }, held, nil,
			map[string]func(*scene){"E": moveEpoch, "L absent": takeLock, "queue empty": somebodyWaits}},
		{"hold", locked, func(s *scene) protocol.Op { return protocol.Hold(s.k, s.at, value, value) }, held, nil, ownLock},
		{"heartbeat", func(s *scene) { locked(s); s.at.H = s.put(s.k.H) }, func(s *scene) protocol.Op { return protocol.Heartbeat(s.k, s.at, value) }, held, nil,
			map[string]func(*scene){"L.create=token": otherToken, "H.mod=h": func(s *scene) { s.del(s.k.H) }}},
		{"guard", func(s *scene) { locked(s); s.put(s.k.A) }, func(s *scene) protocol.Op { return protocol.Guard(s.k, s.at, value) }, l, nil,
			map[string]func(*scene){"L.create=token": otherToken, "L.mod=l": touchLock, "alive key present": func(s *scene) { s.del(s.k.A) }}},
		{"cancel", locked, func(s *scene) protocol.Op { return protocol.Cancel(s.k, s.at, value, value) }, func(k protocol.Keys) []string { return []string{k.L, k.C} }, nil,
			map[string]func(*scene){"L.mod=l": touchLock}},
		{"cancel what no process runs", locked, func(s *scene) protocol.Op { k := s.k; k.C = ""; return protocol.Cancel(k, s.at, value, value) }, l,
			func(k protocol.Keys) []string { return []string{k.C} }, map[string]func(*scene){"L.mod=l": touchLock}},
		{"cancel a waiting one", queued, func(s *scene) protocol.Op { return protocol.CancelWaiting(s.k, s.at, value) }, i, q,
			map[string]func(*scene){"Q.create=q": placeOfAnother, "I.mod=prev": writeRecord}},
		{"forget", func(s *scene) { s.at.Prev = s.put(s.k.I) }, func(s *scene) protocol.Op { return protocol.Forget(s.k, s.at, value, nil, false) },
			func(k protocol.Keys) []string { return []string{k.F} }, i, map[string]func(*scene){"I.mod=prev": writeRecord}},
		{"force release what is held", heldLock, func(s *scene) protocol.Op { return protocol.ForceRelease(s.k, s.at, value, value) },
			func(k protocol.Keys) []string { return []string{k.I, k.C} }, func(k protocol.Keys) []string { return []string{k.L, k.H} }, map[string]func(*scene){"L.mod=l": touchLock}},
		{"force release a cooling lock", heldLock, func(s *scene) protocol.Op { return protocol.ForceReleaseCooling(s.k, s.at) },
			nil, func(k protocol.Keys) []string { return []string{k.L, k.H, k.I} }, map[string]func(*scene){"L.mod=l": touchLock}},
		{"note", func(*scene) {}, func(s *scene) protocol.Op { return protocol.Note(s.k.C, value) }, func(k protocol.Keys) []string { return []string{k.C} }, nil, nil},
		{"fence", session0, func(s *scene) protocol.Op { return protocol.Fence(s.k, s.at, value) }, func(k protocol.Keys) []string { return []string{k.S} }, nil,
			map[string]func(*scene){"E": moveEpoch}},
	}
}

func TestEachTransactionPassesWhereItShouldAndEachCompareRefuses(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	n := 0
	stage := func(t *testing.T, r row) *scene {
		n++
		p := fmt.Sprintf("/%d/", n)
		s := &scene{t: t, etcd: e, k: protocol.Keys{S: p + "S", L: p + "L", O: p + "O", W: p + "Q/", Q: p + "Q/mine", I: p + "I", A: p + "A", H: p + "H", C: p + "C", F: p + "F", R: p + "R", P: p + "P", G: p + "G"}}
		r.scene(s)
		return s
	}
	for _, r := range append(rows(), parkedRows()...) {
		t.Run(r.name, func(t *testing.T) {
			s := stage(t, r)
			if !s.send(r.op(s)) {
				t.Fatal("refused")
			}
			if r.there != nil {
				for _, key := range r.there(s.k) {
					if !s.has(key) {
						t.Errorf("%s is missing", key)
					}
				}
			}
			if r.gone != nil {
				for _, key := range r.gone(s.k) {
					if s.has(key) {
						t.Errorf("%s is there", key)
					}
				}
			}
			if compares := r.op(s).GetRequestTxn().GetCompare(); len(compares) != len(r.breaks) {
				t.Errorf("%d compares, and %d of them are tested", len(compares), len(r.breaks))
			}
		})
		for name, spoil := range r.breaks {
			t.Run(r.name+" refuses without "+name, func(t *testing.T) {
				s := stage(t, r)
				spoil(s)
				op := r.op(s)
				before := s.revision()
				if s.send(op) {
					t.Fatal("passed")
				}
				if s.revision() != before {
					t.Fatal("a refused transaction changed something")
				}
			})
		}
	}
}
