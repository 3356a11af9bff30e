package link

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// Read is a read in the words of etcd's client, to be sent beside one of the table's. Asking is the only way to get at all that is in a clientv3.Op.
func Read(read clientv3.Op) *pb.RequestOp {
	heard := &listener{}
	_, _ = clientv3.NewKVFromKVClient(heard, nil).Do(context.Background(), read)
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: heard.read}}
}

// listener takes the request that a client makes of a read.
type listener struct {
	pb.KVClient
	read *pb.RangeRequest
}

// Range implements pb.KVClient.
func (l *listener) Range(_ context.Context, r *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	l.read = r
	return &pb.RangeResponse{}, nil
}
