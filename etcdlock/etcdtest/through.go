package etcdtest

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Through sends a transaction that a test has taken hold of. A type that replaces a client's KV
// embeds one, because link.Commit bypasses the KV.
type Through struct{ remote pb.KVClient }

// ThroughOf returns a Through that sends by c.
func ThroughOf(c *clientv3.Client) Through { return Through{clientv3.RetryKVClient(c)} }

// Commit implements link.Committer.
func (t Through) Commit(ctx context.Context, txn *pb.TxnRequest) (*pb.TxnResponse, error) {
	r, err := t.remote.Txn(ctx, txn)
	return r, clientv3.ContextError(ctx, err)
}
