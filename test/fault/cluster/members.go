package cluster

import (
	"context"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/testkit"
)

// Etcd is a cluster of etcd processes, each behind a wire.
type Etcd struct {
	Members []*testkit.Member
	Wires   []*etcdtest.Wire
	// Client reaches the members directly.
	Client *clientv3.Client
	tb     testing.TB
}

// StartEtcd starts n members and waits until they answer.
func StartEtcd(tb testing.TB, b Binaries, n int) *Etcd {
	tb.Helper()
	e := &Etcd{Members: testkit.StartEtcd(tb, b.Etcd, n), tb: tb}
	for _, m := range e.Members {
		e.Wires = append(e.Wires, etcdtest.NewWire(tb, strings.TrimPrefix(m.Endpoint, "http://")))
	}
	var err error
	e.Client, err = clientv3.New(clientv3.Config{
		Endpoints: testkit.Endpoints(e.Members), Logger: zap.NewNop(), DialKeepAliveTime: 10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
	})
	if err != nil {
		tb.Fatalf("connect to etcd: %v", err)
	}
	tb.Cleanup(func() { _ = e.Client.Close() })
	return e
}

// Endpoints are the wires' ends, beginning with number first: replicas begin at different ones.
func (e *Etcd) Endpoints(first int) (endpoints []string) {
	for i := range e.Wires {
		endpoints = append(endpoints, e.Wires[(first+i)%len(e.Wires)].Endpoint)
	}
	return endpoints
}

// Leader is the number of the member that leads now; it waits until there is one.
func (e *Etcd) Leader() (leader int) {
	e.tb.Helper()
	testkit.Until(e.tb, "etcd has a leader", func() bool {
		for i, m := range e.Members {
			ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
			status, err := e.Client.Status(ctx, m.Endpoint)
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				leader = i
				return true
			}
		}
		return false
	})
	return leader
}

// FreezeAll holds all members still; ThawAll lets them go on.
func (e *Etcd) FreezeAll() {
	e.tb.Helper()
	for _, m := range e.Members {
		m.Freeze(e.tb)
	}
}

// ThawAll ends FreezeAll.
func (e *Etcd) ThawAll() {
	e.tb.Helper()
	for _, m := range e.Members {
		m.Thaw(e.tb)
	}
}

// Leases counts the leases, and those that no key lives on.
func (e *Etcd) Leases() (all, empty int) {
	e.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	leases, err := e.Client.Leases(ctx)
	if err != nil {
		e.tb.Fatalf("list leases: %v", err)
	}
	for _, l := range leases.Leases {
		ttl, err := e.Client.TimeToLive(ctx, l.ID, clientv3.WithAttachedKeys())
		if err != nil {
			e.tb.Fatalf("look at a lease: %v", err)
		}
		if ttl.TTL > 0 {
			all++
			if len(ttl.Keys) == 0 {
				empty++
			}
		}
	}
	return all, empty
}
