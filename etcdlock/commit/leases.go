package commit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

const (
	// LeaseKeys bounds the keys on one lease. etcd removes all keys of a lease in one step, and
	// everything else waits that long: measured, 5 ms for a thousand; and with RBAC each put checks
	// every key on its lease.
	LeaseKeys = 1000
	// leaseLow: the next lease is requested when the current one takes no more keys than this.
	leaseLow = 200
)

// Leases is the pool of leases that records, counts and audits are put on. Keys share a lease,
// because a lease costs etcd more than a key does.
type Leases struct {
	grant Grant
	list  List
	clock link.Clock
	tasks *Tasks

	mu      sync.Mutex
	current map[class]*current
	rows    map[clientv3.LeaseID][]protocol.Row // of listed leases whose index is not written
}

// Grant grants a lease that lives for ttl.
type Grant func(ctx context.Context, ttl time.Duration) (clientv3.LeaseID, error)

// List writes down which keys are on leases, so that they can be found by their age and by what
// they are about.
type List interface {
	// ListLease is called before a lease takes the first key of that kind.
	ListLease(ctx context.Context, kind string, lease clientv3.LeaseID, retention time.Duration) error
	// IndexLease is called when a lease takes no more keys. What it cannot write, readers find by
	// the keys themselves.
	IndexLease(ctx context.Context, kind string, lease clientv3.LeaseID, rows []protocol.Row)
}

// NewLeases returns a pool whose leases come from grant, on behalf of running tasks. list is told
// of the leases of keys that are found by their age; it may be nil if Take is always given "".
func NewLeases(grant Grant, list List, clock link.Clock, tasks *Tasks) *Leases {
	return &Leases{grant: grant, list: list, clock: clock, tasks: tasks, current: map[class]*current{},
		rows: map[clientv3.LeaseID][]protocol.Row{}}
}

// class names the keys that share leases.
type class struct {
	retention time.Duration
	listedAs  string // the kind of the keys if they are found by their age; "" = they are not
}

// current is the lease that keys of one class are put on now, and the next one while it is being
// granted.
type current struct {
	lease    clientv3.LeaseID // 0 = none
	left     int              // keys that it still takes
	granted  link.Instant
	granting chan struct{} // not nil while the next one is being granted; closed when that is done
	err      error         // of the last grant
}

// wholeSeconds rounds d as etcd does: leases last for whole seconds.
func wholeSeconds(d time.Duration) time.Duration {
	return time.Duration(link.LeaseSeconds(d)) * time.Second
}

// leaseOpen bounds for how long a lease takes keys. A list of the newest keys reads all that are on
// leases which still take some.
const leaseOpen = time.Hour

// OpenFor returns for how long a lease for that retention takes keys.
func OpenFor(retention time.Duration) time.Duration {
	return min(idem.ExtraRetention(retention), leaseOpen)
}

// NoticeLife is for how long a process can learn that it has to look at a lock or to drop a record.
// A process that learns nothing for so long has lost its session, and with that all that it
// remembered.
const NoticeLife = time.Minute

// Notice returns a value for a key whose presence says it all, on a lease that lives for life. It
// returns the error of the grant or of ctx.
func (b *Leases) Notice(ctx context.Context, life time.Duration) (protocol.Leased, error) {
	lease, err := b.Take(ctx, life, "", nil)
	return protocol.Leased{Value: notice, Lease: lease}, err
}

var notice = []byte(`{"v":1}`)

// Take returns the lease for one more key. It lives for the retention, and at most
// idem.ExtraRetention longer. listed is the kind of the key if it is to be found by its age, and
// row by what else; listed "" = it is not, and row is nil. It returns the error of the grant or of
// ctx.
func (b *Leases) Take(ctx context.Context, retention time.Duration, listed string, row *protocol.Row) (clientv3.LeaseID,
	error) {
	of := class{wholeSeconds(retention), listed}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.current[of]
	if c == nil {
		c = &current{}
		b.current[of] = c
	}
	for {
		age, most := b.clock.Since(c.granted), OpenFor(of.retention)
		usable := c.lease != 0 && c.left > 0 && age < most
		if c.granting == nil && (!usable || c.left <= leaseLow || age > most*3/4) {
			b.nextLocked(c, of)
		}
		if usable {
			c.left--
			if row != nil { // before its key is written: an index may name what never was, but must not miss what is
				b.rows[c.lease] = append(b.rows[c.lease], *row)
			}
			return c.lease, nil
		}
		if err := b.awaitLocked(ctx, c); err != nil {
			return 0, err
		}
	}
}

// nextLocked requests the next lease.
func (b *Leases) nextLocked(c *current, of class) {
	done := make(chan struct{})
	c.granting = done
	started := b.tasks.Help(func(ctx context.Context) {
		granted := b.clock.Instant() // before etcd starts to count
		lease, err := b.grant(ctx, of.retention+idem.ExtraRetention(of.retention))
		if err == nil && of.listedAs != "" {
			err = b.list.ListLease(ctx, of.listedAs, lease, of.retention)
		}
		b.mu.Lock()
		old := clientv3.LeaseID(0)
		if err == nil {
			old = c.lease
			c.lease, c.left, c.granted = lease, LeaseKeys, granted
			if of.listedAs != "" {
				b.rows[lease] = []protocol.Row{}
			}
		}
		c.err, c.granting = err, nil
		close(done)
		b.mu.Unlock()
		b.writeIndex(ctx, of.listedAs, old)
	})
	if !started {
		c.err, c.granting = ErrClosed, nil
		close(done)
	}
}

// writeIndex has the index of a lease written that takes no more keys. Once it is written, its rows
// are gone from here, and an index without them would hide what is on the lease.
func (b *Leases) writeIndex(ctx context.Context, kind string, lease clientv3.LeaseID) {
	rows := b.Rows(lease)
	if rows == nil {
		return
	}
	b.list.IndexLease(ctx, kind, lease, rows)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.rows, lease)
}

// Rows returns what is on a lease of this pool whose index is not written; nil = it is no such
// lease.
func (b *Leases) Rows(lease clientv3.LeaseID) []protocol.Row {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clip(b.rows[lease])
}

// Finish has the indexes of all leases written, until ctx ends. Nothing may be taken after it.
func (b *Leases) Finish(ctx context.Context) {
	b.mu.Lock()
	kinds := map[clientv3.LeaseID]string{}
	for of, c := range b.current {
		_ = b.awaitLocked(ctx, c) // what is on its way has an index, too
		kinds[c.lease] = of.listedAs
	}
	b.mu.Unlock()
	for lease, kind := range kinds {
		if ctx.Err() == nil {
			b.writeIndex(ctx, kind, lease)
		}
	}
}

// awaitLocked waits for the requested lease. It releases the mutex meanwhile.
func (b *Leases) awaitLocked(ctx context.Context, c *current) error {
	if coming := c.granting; coming != nil {
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

// DropIfGone forgets a lease if err says that etcd does not know it any more.
func (b *Leases) DropIfGone(lease clientv3.LeaseID, err error) {
	if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.current {
		if c.lease == lease {
			c.lease = 0
		}
	}
	delete(b.rows, lease)
}
