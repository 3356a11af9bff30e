package link

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// Operation is one request to etcd, as its caller saw it.
type Operation struct {
	Name string // txn, range, put, delete_range, lease_grant, lease_revoke, lease_keep_alive, or another name of etcd's API
	// Host and Port of the member as configured; empty for an etcd in this process.
	Host, Port string
	Took       time.Duration
	// Code is how it failed, in the spelling of gRPC, as "DEADLINE_EXCEEDED"; empty when it did not.
	Code string
}

// The Codes of a request that this process has cancelled itself, and of one about a lease that has ended, which is an answer like any other.
const (
	CodeCancelled = "CANCELLED"
	CodeNotFound  = "NOT_FOUND"
)

// interceptors measure the requests to one member.
func interceptors(endpoint string, report func(Operation)) []grpc.DialOption {
	if report == nil {
		return nil
	}
	host, port := HostPort(endpoint)
	done := func(method string, since time.Time, err error) {
		report(Operation{Name: operationOf(method), Host: host, Port: port, Took: time.Since(since), Code: codeOf(err)})
	}
	unary := func(ctx context.Context, method string, req, answer any, c *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
		since := time.Now()
		err := invoke(ctx, method, req, answer, c, o...)
		done(method, since, err)
		return err
	}
	stream := func(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, open grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
		since := time.Now()
		s, err := open(ctx, d, c, method, o...)
		if !strings.HasSuffix(method, "/LeaseKeepAlive") {
			return s, err
		}
		if err != nil {
			done(method, since, err)
			return nil, err
		}
		return &renewal{ClientStream: s, done: func(err error) { done(method, since, err) }}, nil
	}
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(unary), grpc.WithChainStreamInterceptor(stream)}
}

// renewal is a stream for one renewal of a lease: it is over with its first answer (see renewLease).
type renewal struct {
	grpc.ClientStream
	done func(error)
	over bool
}

// RecvMsg implements grpc.ClientStream.
func (r *renewal) RecvMsg(m any) error {
	err := r.ClientStream.RecvMsg(m)
	if !r.over {
		r.over = true
		r.done(err)
	}
	return err
}

// observed returns c with its requests measured, if c is an etcd in this process. Any other client measures itself, because it was made with
// interceptors, or belongs to another package.
func observed(c *clientv3.Client, report func(Operation)) *clientv3.Client {
	if report == nil || c.ActiveConnection() != nil {
		return c
	}
	twin := clientv3.NewCtxClient(c.Ctx())
	twin.Cluster, twin.Watcher, twin.Auth, twin.Maintenance = c.Cluster, c.Watcher, c.Auth, c.Maintenance
	twin.KV, twin.Lease = &observedKV{c.KV, report}, &observedLease{c.Lease, report}
	return twin
}

// measured runs one request to the etcd in this process.
func measured[T any](report func(Operation), name string, run func() (T, error)) (T, error) {
	since := time.Now()
	answer, err := run()
	report(Operation{Name: name, Took: time.Since(since), Code: codeOf(err)})
	return answer, err
}

type observedKV struct {
	clientv3.KV
	report func(Operation)
}

// Get implements clientv3.KV.
func (k *observedKV) Get(ctx context.Context, key string, o ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return measured(k.report, "range", func() (*clientv3.GetResponse, error) { return k.KV.Get(ctx, key, o...) })
}

// Put implements clientv3.KV.
func (k *observedKV) Put(ctx context.Context, key, value string, o ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	return measured(k.report, "put", func() (*clientv3.PutResponse, error) { return k.KV.Put(ctx, key, value, o...) })
}

// Delete implements clientv3.KV.
func (k *observedKV) Delete(ctx context.Context, key string, o ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	return measured(k.report, "delete_range", func() (*clientv3.DeleteResponse, error) { return k.KV.Delete(ctx, key, o...) })
}

// Txn implements clientv3.KV.
func (k *observedKV) Txn(ctx context.Context) clientv3.Txn {
	return &observedTxn{k.KV.Txn(ctx), k.report}
}

type observedTxn struct {
	clientv3.Txn
	report func(Operation)
}

// If implements clientv3.Txn.
func (t *observedTxn) If(c ...clientv3.Cmp) clientv3.Txn { t.Txn = t.Txn.If(c...); return t }

// Then implements clientv3.Txn.
func (t *observedTxn) Then(o ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Then(o...); return t }

// Else implements clientv3.Txn.
func (t *observedTxn) Else(o ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(o...); return t }

// Commit implements clientv3.Txn.
func (t *observedTxn) Commit() (*clientv3.TxnResponse, error) {
	return measured(t.report, "txn", t.Txn.Commit)
}

// Commit implements Committer.
func (k *observedKV) Commit(ctx context.Context, txn *pb.TxnRequest) (*pb.TxnResponse, error) {
	return measured(k.report, "txn", func() (*pb.TxnResponse, error) { return k.KV.(Committer).Commit(ctx, txn) })
}

type observedLease struct {
	clientv3.Lease
	report func(Operation)
}

// Grant implements clientv3.Lease.
func (l *observedLease) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	return measured(l.report, "lease_grant", func() (*clientv3.LeaseGrantResponse, error) { return l.Lease.Grant(ctx, ttl) })
}

// TimeToLive implements clientv3.Lease.
func (l *observedLease) TimeToLive(ctx context.Context, id clientv3.LeaseID, o ...clientv3.LeaseOption) (*clientv3.LeaseTimeToLiveResponse, error) {
	return measured(l.report, "lease_time_to_live", func() (*clientv3.LeaseTimeToLiveResponse, error) { return l.Lease.TimeToLive(ctx, id, o...) })
}

// Revoke implements clientv3.Lease.
func (l *observedLease) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	return measured(l.report, "lease_revoke", func() (*clientv3.LeaseRevokeResponse, error) { return l.Lease.Revoke(ctx, id) })
}

// KeepAliveOnce implements clientv3.Lease.
func (l *observedLease) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	return measured(l.report, "lease_keep_alive", func() (*clientv3.LeaseKeepAliveResponse, error) { return l.Lease.KeepAliveOnce(ctx, id) })
}

// operationOf converts /etcdserverpb.Lease/LeaseKeepAlive to lease_keep_alive.
func operationOf(method string) string {
	name := method[strings.LastIndexByte(method, '/')+1:]
	var b strings.Builder
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// codeOf returns how a request failed. The codes of gRPC are a closed set, whatever the error says.
func codeOf(err error) string {
	var coded interface{ Code() codes.Code }
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return spelled(codes.DeadlineExceeded)
	case errors.Is(err, context.Canceled):
		return spelled(codes.Canceled)
	case errors.As(err, &coded): // what etcd's own client makes of it
		return spelled(coded.Code())
	}
	return spelled(grpcstatus.Code(err))
}

// spelled converts DeadlineExceeded to DEADLINE_EXCEEDED, as the conventions for telemetry have it.
func spelled(c codes.Code) string {
	if c > codes.Unauthenticated { // no such code
		c = codes.Unknown
	}
	if c == codes.Canceled {
		return CodeCancelled // in Go it has one l
	}
	return strings.ToUpper(operationOf(c.String()))
}

// HostPort splits an endpoint as Operation does.
func HostPort(endpoint string) (host, port string) {
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		return u.Hostname(), u.Port()
	}
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return endpoint, ""
	}
	return host, port
}
