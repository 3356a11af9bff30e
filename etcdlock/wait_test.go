package etcdlock

import (
	"context"
	"errors"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/ledgertest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// inQueue is a place, with the Store that has it.
type inQueue struct {
	*ledgertest.InQueue
	store    *Store
	revision int64 // of its entry; 0 = not known
}

func mustEnqueue(tb testing.TB, s *Store, l idem.Lock) *inQueue {
	tb.Helper()
	p := ledgertest.MustEnqueue(tb, s, l)
	st, err := history.Look(within(tb, patience), s.pool, s.layout.Keys(&l))
	if err != nil {
		tb.Fatal(err)
	}
	return &inQueue{InQueue: p, store: s, revision: st.Place}
}

// myTurn waits until the lock is free for p.
func myTurn(ctx context.Context, p *inQueue) error { return ledgertest.MyTurn(ctx, p.InQueue) }

// inTurn has the lock for p as soon as it is its turn.
func inTurn(ctx context.Context, p *inQueue, l idem.Lock) (idem.RunningLock, error) {
	return ledgertest.InTurn(ctx, p.InQueue, l)
}

// look reads how things stand around p, with its queue.
func (p *inQueue) look(ctx context.Context) (*protocol.State, error) {
	answers, revision, err := p.store.pool.ReadOps(ctx, protocol.LockRecordAndCandidates(p.store.layout.Keys(&p.Lock)))
	if err != nil {
		return nil, err
	}
	return protocol.ReadState(answers, revision)
}

func TestAwaitEndsWithItsContextAndKeepsTheEntry(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	holder := mustClaim(t, s, lockFor("w", "one"), 0)
	p := mustEnqueue(t, s, lockFor("w", "two"))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Await(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if st, err := history.Look(within(t, patience), s.pool, s.layout.Keys(&p.Lock)); err != nil ||
		st.Place != p.revision {
		t.Fatalf("%+v %v", st, err)
	}
	for _, end := range []func(context.Context) error{p.Leave, p.Leave, holder.Release} {
		if err := end(within(t, patience)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnEnqueueThatArrivesLateLeavesNoGhost(t *testing.T) {
	e := etcdtest.Start(t)
	client := etcdtest.Dial(t, e.Endpoint)
	kv := newLateKV(client)
	s := openStore(t, Options{Client: client})
	kv.armed.Store(true)
	if _, _, err := s.Enqueue(within(t, patience), lockFor("w", "one"), 0, 0); !errors.Is(err, idem.ErrNotClaimed) {
		t.Fatalf("enqueue without an answer: %v", err)
	}
	if kv.arrive(t).Responses[0].GetResponseTxn().Succeeded {
		t.Fatal("a place that nobody waits in")
	}
}
