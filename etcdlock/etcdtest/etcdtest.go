// Package etcdtest gives tests a real etcd that is ready in a tenth of a second, and a connection
// to it that can be disturbed.
package etcdtest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// Etcd is a single member on the loopback interface. It ends with its test.
type Etcd struct {
	// Endpoint is its address, host:port.
	Endpoint string
	// Client is a connection for the test itself.
	Client *clientv3.Client
	server *embed.Etcd
	stop   sync.Once
}

// Stop ends the member before its test does.
func (e *Etcd) Stop() { e.stop.Do(e.server.Close) }

// ID returns the ID of the member.
func (e *Etcd) ID() uint64 { return uint64(e.server.Server.MemberID()) }

// StartCluster is Start for a cluster of n members.
func StartCluster(tb testing.TB, n int) []*Etcd {
	tb.Helper()
	configs, names := make([]*embed.Config, n), make([]string, n)
	for i := range configs {
		cfg := newConfig(tb)
		// apart from each other, members need more time for an election
		cfg.Name, cfg.TickMs, cfg.ElectionMs = fmt.Sprintf("m%d", i), 50, 500
		cfg.ListenPeerUrls = []url.URL{{Scheme: "http", Host: freeAddress(tb)}}
		cfg.AdvertisePeerUrls = cfg.ListenPeerUrls
		cfg.ListenClientUrls = []url.URL{{Scheme: "http", Host: freeAddress(tb)}}
		cfg.AdvertiseClientUrls = cfg.ListenClientUrls
		cfg.StrictReconfigCheck = false // which lets no member join for the first five seconds
		configs[i], names[i] = cfg, cfg.Name+"="+cfg.ListenPeerUrls[0].String()
	}
	servers, members := make([]*embed.Etcd, n), make([]*Etcd, n)
	for i, cfg := range configs {
		cfg.InitialCluster = strings.Join(names, ",")
		servers[i] = startServer(tb, cfg)
	}
	for i, server := range servers {
		members[i] = awaitReady(tb, server, nil)
	}
	return members
}

// AddLearner starts one more member of a cluster, which is a learner.
func AddLearner(tb testing.TB, members []*Etcd) *Etcd {
	tb.Helper()
	cfg := newConfig(tb)
	cfg.Name, cfg.TickMs, cfg.ElectionMs = "learner", 50, 500
	cfg.ListenPeerUrls = []url.URL{{Scheme: "http", Host: freeAddress(tb)}}
	cfg.AdvertisePeerUrls = cfg.ListenPeerUrls
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	Eventually(tb, "the cluster has a version, without which no member can join", func() bool {
		for _, m := range members {
			if m.server.Server.ClusterVersion() == nil {
				return false
			}
		}
		return true
	})
	if _, err := members[0].Client.MemberAddAsLearner(ctx, []string{cfg.ListenPeerUrls[0].String()}); err != nil {
		tb.Fatal(err)
	}
	cluster := []string{cfg.Name + "=" + cfg.ListenPeerUrls[0].String()}
	for _, m := range members {
		c := m.server.Config()
		cluster = append(cluster, c.Name+"="+c.ListenPeerUrls[0].String())
	}
	cfg.InitialCluster, cfg.ClusterState = strings.Join(cluster, ","), embed.ClusterStateFlagExisting
	return awaitReady(tb, startServer(tb, cfg), nil)
}

// freeAddress returns an address that nothing listens on.
func freeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// Start runs an etcd for tb, on a fresh directory. It does not sync to disk: do not use it to
// measure, or to test a power cut.
func Start(tb testing.TB) *Etcd { tb.Helper(); return startWith(tb, func(*embed.Config) {}, nil) }

// StartSynced is Start with a disk that is synced, for benchmarks.
func StartSynced(tb testing.TB) *Etcd {
	tb.Helper()
	return startWith(tb, func(c *embed.Config) { c.UnsafeNoFsync = false }, nil)
}

// StartWithQuota is Start with a limit of the database in bytes, to be used up.
func StartWithQuota(tb testing.TB, bytes int64) *Etcd {
	tb.Helper()
	return startWith(tb, func(c *embed.Config) { c.QuotaBackendBytes = bytes }, nil)
}

// StartWithTxnOps is Start with a limit of the operations of one transaction.
func StartWithTxnOps(tb testing.TB, n uint) *Etcd {
	tb.Helper()
	return startWith(tb, func(c *embed.Config) { c.MaxTxnOps = n }, nil)
}

// StartWithRequestBytes is Start with a limit of one request, --max-request-bytes.
func StartWithRequestBytes(tb testing.TB, n uint) *Etcd {
	tb.Helper()
	return startWith(tb, func(c *embed.Config) { c.MaxRequestBytes = n }, nil)
}

// startWith runs a member with what change makes of its configuration. t is what clients need for
// it, nil where it is plain.
func startWith(tb testing.TB, change func(*embed.Config), t *tls.Config) *Etcd {
	tb.Helper()
	cfg := newConfig(tb)
	change(cfg)
	return awaitReady(tb, startServer(tb, cfg), t)
}

func newConfig(tb testing.TB) *embed.Config {
	tb.Helper()
	cfg := embed.NewConfig()
	cfg.Dir = tb.TempDir()
	cfg.TickMs, cfg.ElectionMs = 10, 100
	cfg.UnsafeNoFsync = true
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	any := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg.ListenClientUrls, cfg.ListenPeerUrls = any, any
	return cfg
}

func startServer(tb testing.TB, cfg *embed.Config) *embed.Etcd {
	tb.Helper()
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		tb.Fatalf("start etcd: %v", err)
	}
	return server
}

// awaitReady returns a member that has been started, once it answers.
func awaitReady(tb testing.TB, server *embed.Etcd, t *tls.Config) *Etcd {
	tb.Helper()
	e := &Etcd{server: server}
	tb.Cleanup(e.Stop)
	select {
	case <-server.Server.ReadyNotify():
	case <-time.After(20 * time.Second):
		tb.Fatal("etcd was not ready after 20 s")
	}
	e.Endpoint = server.Clients[0].Addr().String()
	e.Client = dialClient(tb, clientv3.Config{Endpoints: []string{e.Endpoint}, TLS: t})
	return e
}

// Dial is a client of its own to an endpoint. It ends with its test.
func Dial(tb testing.TB, endpoint string) *clientv3.Client {
	tb.Helper()
	return dialClient(tb, clientv3.Config{Endpoints: []string{endpoint}})
}

func dialClient(tb testing.TB, c clientv3.Config) *clientv3.Client {
	tb.Helper()
	c.Logger = zap.NewNop()
	client, err := clientv3.New(c)
	if err != nil {
		tb.Fatalf("connect to etcd: %v", err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// MakeRoom ends a NOSPACE alarm as an operator would: it deletes the key "fill", compacts,
// defragments and disarms the alarm.
func (e *Etcd) MakeRoom(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	got, err := e.Client.Get(ctx, "fill")
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := e.Client.Delete(ctx, "fill"); err != nil {
		tb.Fatal(err)
	}
	if _, err := e.Client.Compact(ctx, got.Header.Revision+1, clientv3.WithCompactPhysical()); err != nil {
		tb.Fatal(err)
	}
	if _, err := e.Client.Defragment(ctx, e.Endpoint); err != nil {
		tb.Fatal(err)
	}
	// A request that found no room a moment before raises the alarm again behind the disarming.
	for again := true; again; {
		if _, err := e.Client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
			tb.Fatal(err)
		}
		_, err := e.Client.Put(ctx, "room", "")
		if err != nil && !errors.Is(err, rpctypes.ErrNoSpace) {
			tb.Fatal(err)
		}
		alarms, listErr := e.Client.AlarmList(ctx)
		if listErr != nil {
			tb.Fatal(listErr)
		}
		again = err != nil || len(alarms.Alarms) > 0
	}
}

// RaiseCorrupt raises the alarm CORRUPT of a member, as etcd does when its data differs from that
// of the others, and returns what disarms it.
func (e *Etcd) RaiseCorrupt(tb testing.TB) (disarm func()) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	alarm := &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: e.ID(), Alarm: pb.AlarmType_CORRUPT}
	if _, err := pb.NewMaintenanceClient(e.Client.ActiveConnection()).Alarm(ctx, alarm); err != nil {
		tb.Fatal(err)
	}
	return func() {
		tb.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		if _, err := e.Client.AlarmDisarm(ctx,
			&clientv3.AlarmMember{MemberID: alarm.MemberID, Alarm: alarm.Alarm}); err != nil {
			tb.Fatal(err)
		}
	}
}

// Count is the number of keys that begin with prefix.
func (e *Etcd) Count(ctx context.Context, prefix string) (int64, error) {
	got, err := e.Client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return got.Count, nil
}

// Fill uses up the space of an etcd with a quota.
func (e *Etcd) Fill(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	lump := string(make([]byte, 256<<10))
	for ctx.Err() == nil {
		if _, err := e.Client.Put(ctx, "fill", lump); errors.Is(err, rpctypes.ErrNoSpace) {
			return
		}
	}
	tb.Fatal("the store does not get full")
}

// Compact throws away all history, as etcd's auto-compaction does sooner or later.
func (e *Etcd) Compact(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	put, err := e.Client.Put(ctx, "elsewhere", "x")
	if err == nil {
		_, err = e.Client.Compact(ctx, put.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err != nil {
		tb.Fatalf("compact: %v", err)
	}
}

// Expire waits for keys below prefix, and ends the leases of all of them.
func (e *Etcd) Expire(tb testing.TB, prefix string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	var found *clientv3.GetResponse
	Eventually(tb, "keys below "+prefix, func() bool {
		var err error
		found, err = e.Client.Get(ctx, prefix, clientv3.WithPrefix())
		return err == nil && len(found.Kvs) > 0
	})
	for _, kv := range found.Kvs {
		if _, err := e.Client.Revoke(ctx, clientv3.LeaseID(kv.Lease)); err != nil &&
			(kv.Lease == 0 || !errors.Is(err, rpctypes.ErrLeaseNotFound)) {
			tb.Fatal(err)
		}
	}
}
