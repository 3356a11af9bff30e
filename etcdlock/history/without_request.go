package history

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// WithoutRequest returns those of these executions whose request is not stored: they are not parked, and have left no dead letter. ids is at most as
// long as a request to etcd may be; see parked.Known.
func (s *Reader) WithoutRequest(ctx context.Context, ids []idem.ExecutionID) (without []idem.ExecutionID, err error) {
	ops := make([]clientv3.Op, len(ids))
	for i, id := range ids {
		ops[i] = clientv3.OpGet(s.o.Layout.Of(protocol.KindParked, id), clientv3.WithKeysOnly())
	}
	answers, _, err := s.o.Pool.ReadEach(ctx, ops)
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	for i, id := range ids {
		if protocol.First(answers[i]) == nil {
			without = append(without, id)
		}
	}
	return without, nil
}
