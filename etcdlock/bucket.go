package etcdlock

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/idem"
)

const (
	// bucketKeys bounds the records on one lease. etcd removes all keys of a lease in one step, and everything else waits that
	// long: measured, 5 ms for a thousand; and with RBAC each put checks every key on its lease.
	bucketKeys = 1000
	// bucketLow: the next lease is asked for when so few are left.
	bucketLow = 200
)

// buckets are the leases that records live on. They are shared, because a lease costs etcd more than a record does.
type buckets struct {
	grant func(ctx context.Context, ttl time.Duration) (clientv3.LeaseID, error)
	clock link.Clock
	spawn func(func(context.Context)) bool // runs something for the Store; false when that is closed

	// list writes down that keys of that kind are on a lease, so that they are found by their age; see past.go.
	list func(ctx context.Context, kind string, lease clientv3.LeaseID, retention time.Duration) error

	mu      sync.Mutex
	classes map[lot]*class
}

// lot is what shares leases.
type lot struct {
	retention time.Duration
	listed    string // the kind of the keys, where they are found by their age; "" = they are not
}

// class is the leases of one retention.
type class struct {
	lease   clientv3.LeaseID // 0 = none
	left    int              // records that it still takes
	granted link.Instant
	coming  chan struct{} // not nil while the next one is being granted; closed when that is done
	err     error         // of the last grant
}

// wholeSeconds is d as etcd counts: leases last for whole seconds.
func wholeSeconds(d time.Duration) time.Duration {
	return time.Duration(link.LeaseSeconds(d)) * time.Second
}

// bucketOpen bounds for how long a lease takes keys. Whoever lists the newest of them reads all that are on leases which still take some.
const bucketOpen = time.Hour

// openFor is for how long a lease for that retention takes keys.
func openFor(retention time.Duration) time.Duration { return min(idem.Slack(retention), bucketOpen) }

// take is the lease for one more key: it lives for the retention, and for idem.Slack longer at most. listed is the kind of the key where it is to
// be found by its age, else "". The error is the grant's or the context's.
func (b *buckets) take(ctx context.Context, retention time.Duration, listed string) (clientv3.LeaseID, error) {
	of := lot{wholeSeconds(retention), listed}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.classes[of]
	if c == nil {
		c = &class{}
		b.classes[of] = c
	}
	for {
		age, most := b.clock.Since(c.granted), openFor(of.retention)
		usable := c.lease != 0 && c.left > 0 && age < most
		if c.coming == nil && (!usable || c.left <= bucketLow || age > most*3/4) {
			b.nextLocked(c, of)
		}
		if usable {
			c.left--
			return c.lease, nil
		}
		if err := b.awaitLocked(ctx, c); err != nil {
			return 0, err
		}
	}
}

// nextLocked asks for the next lease.
func (b *buckets) nextLocked(c *class, of lot) {
	done := make(chan struct{})
	c.coming = done
	started := b.spawn(func(ctx context.Context) {
		granted := b.clock.Instant() // before etcd starts to count
		lease, err := b.grant(ctx, of.retention+idem.Slack(of.retention))
		if err == nil && of.listed != "" {
			err = b.list(ctx, of.listed, lease, of.retention)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if err == nil {
			c.lease, c.left, c.granted = lease, bucketKeys, granted
		}
		c.err, c.coming = err, nil
		close(done)
	})
	if !started {
		c.err, c.coming = errClosed, nil
		close(done)
	}
}

// awaitLocked waits for the lease that was asked for. It gives the mutex up meanwhile.
func (b *buckets) awaitLocked(ctx context.Context, c *class) error {
	if coming := c.coming; coming != nil {
		b.mu.Unlock()
		var err error
		select {
		case <-coming:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		b.mu.Lock()
		if err != nil {
			return err
		}
	}
	return c.err
}

// dropIfGone forgets a lease that etcd does not know any more.
func (b *buckets) dropIfGone(lease clientv3.LeaseID, err error) {
	if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.classes {
		if c.lease == lease {
			c.lease = 0
		}
	}
}
