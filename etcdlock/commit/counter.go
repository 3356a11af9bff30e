package commit

import (
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Count is what an outcome adds to the counts of its route. It is committed in the request that
// commits the outcome, so no death of the process parts them.
type Count struct {
	idem.Counted
	// Done says that it is in what is committed, or will be. It belongs to the Counter.
	Done bool
	// Final says that no further request commits its outcome. It belongs to the Counter.
	Final bool
}

// Counter keeps the counts of this process. It is safe for concurrent use.
type Counter interface {
	// Carry is called before a request leaves that commits the outcomes of counts. It returns
	// writes that travel with it, and what is called with its error, and with those of counts whose
	// transactions etcd refused. apart: the writes are of no other counts, and are not applied if
	// the transaction of these is refused. Nil writes: none travel, and the function is nil.
	Carry(counts []*Count, apart bool) (writes protocol.Writes, answered func(err error, refused []*Count))
	// Release is called when no request carries counts any more. What is not counted yet is counted
	// without its outcome, which is not in etcd.
	Release(counts []*Count)
}

// CountWith has counts committed with the outcomes of requests. Call it before the first Send.
func (s *Sender) CountWith(c Counter) { s.counter = c }

// Release is that of the Counter.
func (s *Sender) Release(counts []*Count) {
	if s.counter != nil && len(counts) > 0 {
		s.counter.Release(counts)
	}
}

// carried is the counts that travel with a batch.
type carried struct {
	batch    []*Request
	writes   protocol.Writes // of all requests that are hardly ever refused
	answered func(error, []*Count)
	apart    []carriedApart // by request; nil = none travels apart
}

// carriedApart is the counts in the transaction of one request.
type carriedApart struct {
	writes   protocol.Writes
	answered func(error, []*Count)
}

// collectCounts returns what travels with a batch; nil = nothing does.
func (s *Sender) collectCounts(batch []*Request) *carried {
	if s.counter == nil {
		return nil
	}
	c := &carried{batch: batch}
	var together []*Count
	for i, r := range batch {
		switch {
		case len(r.Counts) == 0:
		case r.CountsApart:
			if c.apart == nil {
				c.apart = make([]carriedApart, len(batch))
			}
			c.apart[i].writes, c.apart[i].answered = s.counter.Carry(slices.Clone(r.Counts), true)
		default:
			together = append(together, r.Counts...)
		}
	}
	if len(together) > 0 {
		c.writes, c.answered = s.counter.Carry(together, false)
	}
	if c.answered == nil && c.apart == nil {
		return nil
	}
	return c
}

// withCounts returns the transaction of a request of the batch, with what it counts.
func (c *carried) withCounts(i int, txn protocol.Op) protocol.Op {
	if c == nil || c.apart == nil || c.apart[i].writes == nil {
		return txn
	}
	return protocol.With(txn, c.apart[i].writes)
}

// reportAnswer tells the counter of the answer to the batch.
func (c *carried) reportAnswer(response *pb.TxnResponse, err error) {
	var refused []*Count
	for i, r := range c.batch {
		var these []*Count
		if err == nil && !response.Responses[i].GetResponseTxn().Succeeded {
			these = r.Counts
		}
		if refused = append(refused, these...); c.apart != nil && c.apart[i].answered != nil {
			c.apart[i].answered(err, these)
		}
	}
	if c.answered != nil {
		c.answered(err, refused)
	}
}

// mayBeTheCounts reports whether a request may have been refused because of the counts in it. No
// outcome waits for them.
func mayBeTheCounts(err error) bool { return link.MemberAlone(err) || link.Refuses(err) }
