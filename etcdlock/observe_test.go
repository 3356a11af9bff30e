package etcdlock

import (
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/link"
)

// operations remembers what was reported.
type operations struct {
	mu   sync.Mutex
	news sync.Cond
	all  []link.Operation
}

func (o *operations) add(op link.Operation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, op)
	o.news.Broadcast()
}

// await waits until an operation of this name was reported.
func (o *operations) await(t *testing.T, name string) {
	t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		late = true
		o.news.Broadcast()
	})
	defer timer.Stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for !slices.ContainsFunc(o.all, func(op link.Operation) bool { return op.Name == name }) {
		if late {
			t.Fatalf("no %s was measured", name)
		}
		o.news.Wait()
	}
}

func (o *operations) find(name string) (link.Operation, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, op := range o.all {
		if op.Name == name {
			return op, true
		}
	}
	return link.Operation{}, false
}

func TestEveryRequestToEtcdIsMeasured(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t)
	host, port, err := net.SplitHostPort(etcd.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"over the network": {Endpoints: []string{etcd.Endpoint}},
		"in this process":  {Client: startEmbedded(t, t.TempDir()).Client()},
	} {
		t.Run(name, func(t *testing.T) {
			var seen operations
			seen.news.L = &seen.mu
			o.Prefix, o.SessionTTL, o.OnOperation = "/measured", minTTL, seen.add
			s := openStore(t, o)
			record, err := mustClaim(t, s, lockFor("w", "one"), 0).Settle(within(t, patience), success("kept"))
			if err != nil || record.Size == 0 {
				t.Fatalf("record of %d bytes, %v", record.Size, err)
			}
			seen.await(t, "lease_keep_alive")
			for _, op := range []string{"txn", "lease_grant", "lease_keep_alive"} {
				got, ok := seen.find(op)
				if !ok || got.Took <= 0 || got.Code != "" {
					t.Errorf("%s: %+v", op, got)
				}
				if len(o.Endpoints) > 0 && (got.Host != host || got.Port != port) {
					t.Errorf("%s: member %s:%s", op, got.Host, got.Port)
				}
			}
		})
	}
}
