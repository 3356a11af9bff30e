package link

import (
	"context"
	"iter"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Scan is a range of keys that is read in order.
type Scan struct {
	// From is the first key, and End the first one behind the range.
	From, End string
	// Batch is how many keys are read at a time.
	Batch int64
	// KeysOnly leaves the values out.
	KeysOnly bool
	// Fresh reads each batch as it is then. False: all are read at one revision, which etcd may
	// compact meanwhile.
	Fresh bool
	// Revision to read at, unless Fresh. 0 = that of the first read, which All writes here.
	Revision int64
}

// Below returns the scan of all keys with that prefix.
func Below(prefix string, batch int64) *Scan {
	return &Scan{From: prefix, End: clientv3.GetPrefixRangeEnd(prefix), Batch: batch}
}

// All yields the keys of a scan. An error is the last thing that it yields; see Read.
func (p *Pool) All(ctx context.Context, s *Scan) iter.Seq2[*mvccpb.KeyValue, error] {
	return func(yield func(*mvccpb.KeyValue, error) bool) {
		for from, more := s.From, true; more; {
			options := []clientv3.OpOption{clientv3.WithRange(s.End), clientv3.WithLimit(s.Batch),
				clientv3.WithRev(s.Revision)}
			if s.KeysOnly {
				options = append(options, clientv3.WithKeysOnly())
			}
			answers, at, err := p.Read(ctx, clientv3.OpGet(from, options...))
			if err != nil {
				yield(nil, err)
				return
			}
			if s.Revision == 0 && !s.Fresh {
				s.Revision = at
			}
			page := answers[0].GetResponseRange()
			for _, kv := range page.Kvs {
				if from = string(kv.Key) + "\x00"; !yield(kv, nil) {
					return
				}
			}
			more = page.More && len(page.Kvs) > 0
		}
	}
}
