package virtual

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
	_ "unsafe" // for linkname

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/features"
	"go.uber.org/zap"
)

// valCtxCh is the channel of etcd's client that never closes. A watch waits on it, and time stands
// still in a bubble where a goroutine waits on a channel from outside, so each bubble needs one of
// its own. One bubble at a time may run in a process for that reason.
//
//go:linkname valCtxCh go.etcd.io/etcd/client/v3.valCtxCh
var valCtxCh chan struct{}

// etcd is one member with everything but a listener: raft, mvcc, leases and a database. It can be
// stopped, and started again on its data.
type etcd struct {
	t     testing.TB
	dir   string
	gates map[string]bool // of features that are not the default

	mu      sync.Mutex
	member  *member       // nil while it is stopped
	started chan struct{} // closed at the next start
	begun   []time.Time   // when a member has started
}

// member is one run of the server.
type member struct {
	server *etcdserver.EtcdServer
	kv     pb.KVServer
	client *clientv3.Client
	over   chan struct{} // closed when it stops
}

func startEtcd(t testing.TB, dir string, gates map[string]bool) *etcd {
	t.Helper()
	valCtxCh = make(chan struct{})
	e := &etcd{t: t, dir: dir, gates: gates, started: make(chan struct{})}
	e.start()
	return e
}

func (e *etcd) start() {
	address := url.URL{Scheme: "http", Host: "127.0.0.1:1"} // nothing listens there
	members, err := types.NewURLsMap("a=" + address.String())
	if err != nil {
		e.t.Error(err)
		return
	}
	gates := features.NewDefaultServerFeatureGate("a", zap.NewNop())
	if err := gates.(interface {
		SetFromMap(on map[string]bool) error
	}).SetFromMap(e.gates); err != nil {
		e.t.Error(err)
		return
	}
	server, err := etcdserver.NewServer(config.ServerConfig{
		Name: "a", ClientURLs: types.URLs{address}, PeerURLs: types.URLs{address}, DataDir: e.dir,
		InitialPeerURLsMap: members, InitialClusterToken: "virtual",
		NewCluster: true, TickMs: 100, ElectionTicks: 10, InitialElectionTickAdvance: true, SnapshotCount: 10000,
		SnapshotCatchUpEntries: 5000, MaxSnapFiles: 5, MaxWALFiles: 5,
		MaxTxnOps: 128, MaxRequestBytes: 1 << 20, QuotaBackendBytes: 1 << 30, UnsafeNoFsync: true, BcryptCost: 4,
		AuthToken: "simple", TokenTTL: 300,
		BackendBatchInterval: 100 * time.Millisecond, WarningApplyDuration: time.Hour,
		WarningUnaryRequestDuration: time.Hour, MaxLearners: 1,
		Logger: zap.NewNop(), ServerFeatureGate: gates,
	})
	if err != nil {
		e.t.Errorf("start etcd: %v", err)
		return
	}
	server.Start()
	<-server.ReadyNotify()
	m := &member{server: server, kv: v3rpc.NewQuotaKVServer(server), client: v3client.New(server),
		over: make(chan struct{})}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.member = m
	e.begun = append(e.begun, time.Now())
	close(e.started)
	e.started = make(chan struct{})
}

// stop ends the member. It returns false where none runs.
func (e *etcd) stop() bool {
	e.mu.Lock()
	m := e.member
	e.member = nil
	e.mu.Unlock()
	if m == nil {
		return false
	}
	close(m.over)
	_ = m.client.Close()
	m.server.Stop()
	return true
}

// current is the member that runs, or nil, and a channel that is closed when the next one does.
func (e *etcd) current() (*member, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.member, e.started
}

// await waits for a member that runs. It returns nil when done closes first.
func (e *etcd) await(done <-chan struct{}) *member {
	for {
		m, started := e.current()
		if m != nil {
			return m
		}
		select {
		case <-started:
		case <-done:
			return nil
		}
	}
}

// starts is when members have started; the last one is of the one that runs, or ran.
func (e *etcd) starts() []time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.begun)
}

// compact drops the history of the database.
func (e *etcd) compact(ctx context.Context) {
	if m, _ := e.current(); m != nil {
		_, _ = m.client.Compact(ctx, m.server.KV().Rev())
	}
}
