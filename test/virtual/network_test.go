package virtual

import (
	"context"
	"errors"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// network is the way from one process to etcd and back. Requests and answers take their time, get
// lost, and arrive after their sender has given them up.
type network struct {
	pb.KVClient // the methods that are not used
	w           *world
	dead        chan struct{} // closed when the process is killed

	mu   sync.Mutex
	open chan struct{} // nil while packets pass; closed when they pass again
}

// callLimit is how long etcd works on a request at most.
const callLimit = 7 * time.Second

// brokenAfter is when a connection that carries nothing is given up, and its watches with it.
const brokenAfter = 13 * time.Second

func newNetwork(w *world) *network { return &network{w: w, dead: make(chan struct{})} }

// client is etcd's client at this end of the network.
func (n *network) client() *clientv3.Client {
	c := clientv3.NewCtxClient(context.Background())
	c.KV = &committer{clientv3.NewKVFromKVClient(n, c), n}
	c.Lease = &leases{n: n}
	c.Watcher = &watches{n}
	return c
}

// cut stops all packets until the function that it returns is called.
func (n *network) cut() (mend func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open != nil {
		return func() {}
	}
	open := make(chan struct{})
	n.open = open
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		close(open)
		n.open = nil
	}
}

// passes waits while packets do not pass. It returns false where the packet is lost.
func (n *network) passes(late bool) bool {
	n.mu.Lock()
	open := n.open
	n.mu.Unlock()
	switch {
	case n.isDead():
		return false
	case open == nil:
		return true
	case !late:
		return false
	}
	select { // as TCP sends again what was not acknowledged
	case <-open:
		return !n.isDead()
	case <-n.dead:
		return false
	}
}

func (n *network) isDead() bool {
	select {
	case <-n.dead:
		return true
	default:
		return false
	}
}

// exchange sends a request and waits for its answer, or for the end of ctx. The request goes on
// without its sender.
func exchange[T any](ctx context.Context, n *network, ask func(context.Context, *member) (T, error)) (T, error) {
	type result struct {
		answer T
		err    error
	}
	arrived, f := make(chan result, 1), n.w.fate()
	n.w.tasks.Go(func() {
		time.Sleep(f.there)
		if f.requestLost || !n.passes(f.late) {
			return
		}
		m, _ := n.w.etcd.current()
		if m == nil {
			return
		}
		limited, cancel := context.WithTimeout(context.Background(), callLimit)
		defer cancel()
		answer, err := ask(limited, m)
		select {
		case <-m.over: // whatever it says, its connection is gone
			return
		default:
		}
		time.Sleep(f.back)
		if !f.answerLost && n.passes(f.late) {
			arrived <- result{answer, err}
		}
	})
	select {
	case r := <-arrived:
		return r.answer, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// Range implements pb.KVClient.
func (n *network) Range(ctx context.Context, r *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	return exchange(ctx, n, func(ctx context.Context, m *member) (*pb.RangeResponse, error) {
		return m.kv.Range(ctx, r)
	})
}

// DeleteRange implements pb.KVClient.
func (n *network) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest,
	_ ...grpc.CallOption) (*pb.DeleteRangeResponse, error) {
	return exchange(ctx, n, func(ctx context.Context, m *member) (*pb.DeleteRangeResponse, error) {
		return m.kv.DeleteRange(ctx, r)
	})
}

// Txn implements pb.KVClient.
func (n *network) Txn(ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	return exchange(ctx, n, func(ctx context.Context, m *member) (*pb.TxnResponse, error) { return m.kv.Txn(ctx, r) })
}

// committer is a KV that implements link.Committer.
type committer struct {
	clientv3.KV
	n *network
}

func (c *committer) Commit(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	answer, err := c.n.Txn(ctx, r)
	return answer, clientv3.ContextError(ctx, err)
}

type leases struct {
	clientv3.Lease
	n *network
}

func (l *leases) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	return exchange(ctx, l.n, func(ctx context.Context, m *member) (*clientv3.LeaseGrantResponse, error) {
		return m.client.Grant(ctx, ttl)
	})
}

func (l *leases) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	return exchange(ctx, l.n, func(ctx context.Context, m *member) (*clientv3.LeaseRevokeResponse, error) {
		return m.client.Revoke(ctx, id)
	})
}

func (l *leases) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	return exchange(ctx, l.n, func(ctx context.Context, m *member) (*clientv3.LeaseKeepAliveResponse, error) {
		return m.client.KeepAliveOnce(ctx, id)
	})
}

func (l *leases) TimeToLive(ctx context.Context, id clientv3.LeaseID,
	o ...clientv3.LeaseOption) (*clientv3.LeaseTimeToLiveResponse, error) {
	return exchange(ctx, l.n, func(ctx context.Context, m *member) (*clientv3.LeaseTimeToLiveResponse, error) {
		return m.client.TimeToLive(ctx, id, o...)
	})
}

type watches struct{ n *network }

// Watch is etcd's, until its connection breaks.
func (w *watches) Watch(ctx context.Context, key string, o ...clientv3.OpOption) clientv3.WatchChan {
	n, events := w.n, make(chan clientv3.WatchResponse)
	n.w.tasks.Go(func() {
		defer close(events)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		n.w.tasks.Go(func() {
			select {
			case <-n.dead:
				cancel()
			case <-ctx.Done():
			}
		})
		if !n.quiet(ctx) {
			return
		}
		m := n.w.etcd.await(ctx.Done())
		if m == nil {
			return
		}
		in := m.client.Watch(ctx, key, o...)
		for {
			select {
			case r, ok := <-in:
				if !ok {
					return
				}
				time.Sleep(n.w.fate().there)
				if !n.quiet(ctx) {
					return
				}
				select {
				case events <- r:
				case <-ctx.Done():
					return
				}
			case <-m.over:
				return
			case <-ctx.Done():
				return
			}
		}
	})
	return events
}

// quiet waits while the network is cut. It returns false where the connection breaks meanwhile.
func (n *network) quiet(ctx context.Context) bool {
	n.mu.Lock()
	open := n.open
	n.mu.Unlock()
	if open == nil {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(brokenAfter)
	defer timer.Stop()
	select {
	case <-open:
		return ctx.Err() == nil
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// Close implements clientv3.Watcher.
func (w *watches) Close() error { return nil }

// RequestProgress implements clientv3.Watcher.
func (w *watches) RequestProgress(context.Context) error { return errors.ErrUnsupported }
