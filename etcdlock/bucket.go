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
	// leaseKeys bounds the keys on one lease. etcd removes all keys of a lease in one step, and everything else waits that
	// long: measured, 5 ms for a thousand; and with RBAC each put checks every key on its lease.
	leaseKeys = 1000
	// leaseLow: the next lease is requested when the current one takes no more keys than this.
	leaseLow = 200
)

// buckets is the pool of leases that records, counts and audits are put on. Keys share a lease, because a lease costs etcd more than a key does.
type buckets struct {
	grant grantLease
	list  listLease
	clock link.Clock
	spawn func(func(context.Context)) bool

	mu      sync.Mutex
	classes map[lot]*class
}

// grantLease grants a lease of that length.
type grantLease func(ctx context.Context, ttl time.Duration) (clientv3.LeaseID, error)

// listLease writes down that a lease has keys of that kind, so that they can be found by their age.
type listLease func(ctx context.Context, kind string, lease clientv3.LeaseID, retention time.Duration) error

// newLeases returns a pool whose leases come from grant. spawn runs a function in the background, and returns false once its owner is closed. list is
// called before a lease takes the first key of a kind that is found by its age; it may be nil where take is always given "".
func newLeases(grant grantLease, list listLease, clock link.Clock, spawn func(func(context.Context)) bool) *buckets {
	return &buckets{grant: grant, list: list, clock: clock, spawn: spawn, classes: map[lot]*class{}}
}

// lot names the keys that share leases.
type lot struct {
	retention time.Duration
	listed    string // the kind of the keys if they are found by their age; "" = they are not
}

// class is the current lease of one lot, and the next one while it is being granted.
type class struct {
	lease   clientv3.LeaseID // 0 = none
	left    int              // keys that it still takes
	granted link.Instant
	coming  chan struct{} // not nil while the next one is being granted; closed when that is done
	err     error         // of the last grant
}

// wholeSeconds rounds d as etcd does: leases last for whole seconds.
func wholeSeconds(d time.Duration) time.Duration {
	return time.Duration(link.LeaseSeconds(d)) * time.Second
}

// leaseOpen bounds for how long a lease takes keys. A list of the newest keys reads all that are on leases which still take some.
const leaseOpen = time.Hour

// openFor returns for how long a lease for that retention takes keys.
func openFor(retention time.Duration) time.Duration { return min(idem.Slack(retention), leaseOpen) }

// take returns the lease for one more key. It lives for the retention, and at most idem.Slack longer. listed is the kind of the key if it is to
// be found by its age, else "". It returns the error of the grant or of ctx.
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
		if c.coming == nil && (!usable || c.left <= leaseLow || age > most*3/4) {
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

// nextLocked requests the next lease.
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
			c.lease, c.left, c.granted = lease, leaseKeys, granted
		}
		c.err, c.coming = err, nil
		close(done)
	})
	if !started {
		c.err, c.coming = errClosed, nil
		close(done)
	}
}

// awaitLocked waits for the requested lease. It releases the mutex meanwhile.
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

// dropIfGone forgets a lease if err says that etcd does not know it any more.
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
