package finish

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Hold returns l, which has run for ran, on a hold of its own for ttl, on a new lease. If its
// transaction gets no answer, the lease is left to run out: the transaction may yet use it.
func (f *Finisher) Hold(ctx context.Context, l *idem.Lock, ttl, ran time.Duration) (next *idem.Lock, lock,
	alive protocol.Leased, err error) {
	held := *l
	held.Held, held.HoldTTL, held.Alive = true, ttl, protocol.HoldAlive(l.Execution)
	if l.MaxDuration > 0 {
		left := max(time.Second, l.MaxDuration-ran)
		limit, err := f.Pool.NewLease(ctx, left)
		if err != nil {
			return nil, lock, alive, err
		}
		held.DeadlineLease, ttl = int64(limit), min(ttl, left)
	}
	if lock.Value, err = protocol.EncodeLock(&held); err == nil {
		alive, held.HoldUntil, err = f.NewHold(ctx, l, ttl)
	}
	if err != nil {
		f.Sender.Drop(clientv3.LeaseID(held.DeadlineLease))
		return nil, lock, alive, err
	}
	return &held, lock, alive, nil
}

// NewHold returns a hold for ttl on a new lease, and when it runs out.
func (f *Finisher) NewHold(ctx context.Context, l *idem.Lock, ttl time.Duration) (alive protocol.Leased,
	until time.Time, err error) {
	until = f.Clock.Now().Add(ttl).Round(time.Millisecond)
	lease, err := f.Pool.NewLease(ctx, ttl)
	return protocol.Leased{Value: protocol.EncodeHold(l.Holder, until), Lease: lease}, until, err
}

// TimeLeft returns how long it takes until a held execution has reached its MaxDuration, up to a
// second more; 0 = it has. It asks no wall clock: the limit is a lease without keys. It returns the
// error of ctx.
func (f *Finisher) TimeLeft(ctx context.Context, l *idem.Lock) (time.Duration, error) {
	if l.DeadlineLease == 0 {
		return link.MaxLease, nil
	}
	limit, err := f.Pool.Lease(ctx, clientv3.LeaseID(l.DeadlineLease))
	if err != nil {
		return 0, err
	}
	return time.Duration(max(0, limit.TTL+1)) * time.Second, nil // -1 = it has run out
}
