package link

import (
	"context"
	"math"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// Committer is the KV of a client that takes a transaction in its wire form.
type Committer interface {
	// Commit sends the transaction once. Its error is etcd's or that of the context; then the
	// transaction may have been applied all the same.
	Commit(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error)
}

// callOptions are those of etcd's own client: a request that its server would refuse for its size
// is not sent, and an answer may have any size.
var callOptions = []grpc.CallOption{grpc.WaitForReady(true), grpc.MaxCallSendMsgSize(2 << 20),
	grpc.MaxCallRecvMsgSize(math.MaxInt32)}

// Commit sends a transaction that was not built of clientv3's Op and Cmp, which copy everything in
// them. Its errors are those of clientv3. The KV of a client without a connection must be a
// Committer: OpenPool has checked that.
func Commit(ctx context.Context, c *clientv3.Client, txn *pb.TxnRequest) (*pb.TxnResponse, error) {
	if kv, ok := c.KV.(Committer); ok {
		return kv.Commit(ctx, txn)
	}
	response, err := clientv3.RetryKVClient(c).Txn(ctx, txn, callOptions...)
	return response, clientv3.ContextError(ctx, err)
}
