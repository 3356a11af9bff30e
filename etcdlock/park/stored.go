package park

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Prepare returns what is stored of the parked execution of l besides l itself, with the lease of
// its age. It returns the error of the grant or of ctx.
func Prepare(ctx context.Context, leases *commit.Leases, l *idem.Lock, kept *idem.StoredRequest) (p protocol.Parking,
	err error) {
	p.Request.Value = kept.Value
	p.Index.Value = protocol.EncodeIndex(protocol.IndexOf(l))
	p.Age, err = leases.Notice(ctx, l.Parked.MaxAge)
	return p, err
}

// As returns p with what the ledger keeps of it from now on, without the request itself.
func As(p idem.Parked) *idem.Parked {
	p.Bytes, p.MaxAge, p.Since = p.Kept.Bytes, p.Kept.MaxAge, p.Since.UTC().Round(time.Millisecond)
	p.Kept = nil
	return &p
}

// CountOf returns what a transaction counts that parks an event of a route.
func CountOf(route string) *commit.Count {
	return &commit.Count{Counted: idem.Counted{Route: route, Kinds: idem.CountSetOf(idem.CountParked)}}
}

// Send sends the transaction that parks l, which txn makes, and commits counts with it: one of them
// is CountOf. The error of the answer wraps link.ErrNotSent if there was nothing to send.
func Send(
	ctx context.Context, sender *commit.Sender, leases *commit.Leases, l *idem.Lock, k protocol.Keys,
	kept *idem.StoredRequest,
	counts []*commit.Count,
	txn func(lock protocol.Leased, keep protocol.Parking) protocol.Op,
) commit.Reply {
	value, err := protocol.EncodeLock(l)
	var keep protocol.Parking
	if err == nil {
		keep, err = Prepare(ctx, leases, l, kept)
	}
	if err != nil {
		return commit.Reply{Err: fmt.Errorf("%w: %w", link.ErrNotSent, err)}
	}
	request := commit.NewRequest(k.Lock, txn(protocol.Leased{Value: value}, keep),
		len(value)+len(kept.Value)).AddSlots(k)
	request.Counts, request.CountsApart = counts, true
	answer := sender.Do(ctx, request)
	leases.DropIfGone(keep.Age.Lease, answer.Err)
	return answer
}

// TooLarge reports whether another attempt to park would be refused as well.
func TooLarge(err error) bool {
	return errors.Is(err, protocol.ErrTooLarge) || link.TooLarge(err)
}
