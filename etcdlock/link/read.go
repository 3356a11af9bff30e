package link

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// Read converts a read of etcd's client, to be sent beside one of the table's. Executing it is the
// only way to get at everything in a clientv3.Op.
func Read(read clientv3.Op) *pb.RequestOp {
	heard := &listener{}
	_, _ = clientv3.NewKVFromKVClient(heard, nil).Do(context.Background(), read)
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: heard.read}}
}

// listener receives the request that a client makes of a read.
type listener struct {
	pb.KVClient
	read *pb.RangeRequest
}

// Range implements pb.KVClient.
func (l *listener) Range(_ context.Context, r *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	l.read = r
	return &pb.RangeResponse{}, nil
}

// MaxReads bounds the reads of one request; etcd takes 128.
const MaxReads = 100

// Read reads several things at one revision. It repeats until etcd answers; it returns the error of
// ctx, rpctypes.ErrCompacted, rpctypes.ErrFutureRev after etcd has gone back, or
// rpctypes.ErrTooManyOps.
func (p *Pool) Read(ctx context.Context, ops ...clientv3.Op) (answers []*pb.ResponseOp, revision int64, err error) {
	reads := make([]*pb.RequestOp, len(ops))
	for i, op := range ops {
		reads[i] = Read(op)
	}
	return p.ReadOps(ctx, reads)
}

// Keys reads a key, or those that the options say. It repeats as Read does.
func (p *Pool) Keys(ctx context.Context, key string, options ...clientv3.OpOption) (kvs []*mvccpb.KeyValue,
	revision int64, err error) {
	answers, revision, err := p.Read(ctx, clientv3.OpGet(key, options...))
	if err != nil {
		return nil, 0, err
	}
	return answers[0].GetResponseRange().Kvs, revision, nil
}

// ReadOps is Read for requests in their wire form.
func (p *Pool) ReadOps(ctx context.Context, reads []*pb.RequestOp) (answers []*pb.ResponseOp, revision int64,
	err error) {
	for pause := NewBackoff(); ; {
		response, err := p.Commit(ctx, p.Attempt, nil, reads)
		if err == nil {
			return response.Responses, response.Header.Revision, nil
		}
		if !errors.Is(err, rpctypes.ErrCompacted) && !errors.Is(err, rpctypes.ErrFutureRev) &&
			!errors.Is(err, rpctypes.ErrTooManyOps) && !TooLarge(err) {
			err = p.Because(pause.Wait(ctx))
		}
		if err != nil {
			return nil, 0, fmt.Errorf("read: %w", err)
		}
	}
}

// ReadEach reads many things in few requests. revision is that of the first request: the others may
// be newer.
func (p *Pool) ReadEach(ctx context.Context, ops []clientv3.Op) (answers []*pb.ResponseOp, revision int64, err error) {
	revision = math.MaxInt64
	for some := range slices.Chunk(ops, MaxReads) {
		err := inParts(some, func(part []clientv3.Op) error {
			a, at, err := p.Read(ctx, part...)
			if err == nil {
				answers, revision = append(answers, a...), min(revision, at)
			}
			return err
		})
		if err != nil {
			return nil, 0, err
		}
	}
	return answers, revision, nil
}

// CommitParts commits writes together, or in parts if etcd takes fewer at a time. A write that etcd
// refuses for its own size is left out: it would be refused for ever, and with it those that travel
// beside it.
func (p *Pool) CommitParts(ctx context.Context, writes []*pb.RequestOp) error {
	return inParts(writes, func(part []*pb.RequestOp) error {
		_, err := p.Commit(ctx, p.Attempt, nil, part)
		if len(part) == 1 && TooLarge(err) {
			return nil
		}
		return err
	})
}

// inParts calls send with all of some, or with halves of it if etcd takes fewer operations or bytes
// in one request: its operator sets --max-txn-ops and --max-request-bytes.
func inParts[T any](some []T, send func([]T) error) error {
	err := send(some)
	if len(some) < 2 || !errors.Is(err, rpctypes.ErrTooManyOps) && !TooLarge(err) {
		return err
	}
	half := len(some) / 2
	if err := inParts(some[:half], send); err != nil {
		return err
	}
	return inParts(some[half:], send)
}
