package history

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// CountBatch counts are written in one request; etcd takes 128.
const CountBatch = 100

const (
	countEvery = 700 * time.Millisecond // between two writes: readers are to see a duplicate within a second
	countMost  = 1000                   // counts in one write, the rest comes with the next
	maxTallies = 100_000
)

// Duplicates writes in the background what was not executed here: it counts the duplicates of executions that this process has answered without
// running, and keeps how events arrived that were refused, or answered as duplicates. Each process has a key of its own for each execution and
// each event with what it knows so far. So no transaction compares these keys, and readers add them up.
type Duplicates struct {
	o *Options
	// Most bounds the executions and events that are counted at a time.
	Most    int
	wake    chan struct{}
	writing chan struct{} // holds a token during a write: one at a time
	// leases are apart from those of records, so that closing the store does not wait for them.
	leases *commit.Leases

	mu      sync.Mutex
	tallies map[string]*tally // by the prefix of their keys
	events  int               // those of them that are of events
	shedN   int64             // arrivals that were not kept
	queue   []*tally          // those that are not written yet, the oldest first
	out     int               // those that are being written
	// generation is in the name of the keys. Tallies that are written may be dropped; what is counted after that begins at zero and
	// must not go over what it was.
	generation int
}

// tally is what this process knows of the duplicates of one execution, or of the arrivals of one event.
type tally struct {
	key       string        // without this process's own part
	n         int64         // duplicates of the execution
	history   *idem.History // of the event; nil = it is of an execution
	queued    bool          // it is in the queue; while it is being written, only if a duplicate has come since
	retention time.Duration

	// The fields below are guarded by writing.
	lease  clientv3.LeaseID // that the count was written with, 0 = none
	leased link.Instant
}

// NewDuplicates returns an empty count. Run writes it.
func NewDuplicates(o *Options) *Duplicates {
	d := &Duplicates{o: o, Most: maxTallies, writing: make(chan struct{}, 1), wake: make(chan struct{}, 1), tallies: map[string]*tally{}}
	d.leases = commit.NewLeases(o.Pool.NewLease, o, o.Clock, o.Spawn)
	return d
}

// Add counts one duplicate of an execution that was answered without running. It never blocks; readers in this process see it at once, others
// within a second. The count lives for retention after the duplicate. When more than 100,000 executions have unwritten counts at a time,
// further ones are not counted.
func (d *Duplicates) Add(id idem.ExecutionID, retention time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.tallyLocked(d.o.Layout.Counts(id), retention); t != nil {
		t.n++
		d.enqueueLocked(t)
	}
}

// tallyLocked returns the tally of that key; nil if there is no room for another one.
func (d *Duplicates) tallyLocked(key string, retention time.Duration) *tally {
	t := d.tallies[key]
	if t == nil {
		if len(d.tallies) >= d.Most && !d.resetLocked() {
			return nil
		}
		t = &tally{key: key, retention: retention}
		d.tallies[key] = t
	}
	return t
}

func (d *Duplicates) enqueueLocked(t *tally) {
	if !t.queued {
		t.queued = true
		d.queue = append(d.queue, t)
		link.Wake(d.wake)
	}
}

// Counted returns how many executions and events are counted at this time.
func (d *Duplicates) Counted() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.tallies)
}

// resetLocked drops all tallies, if all are written.
func (d *Duplicates) resetLocked() bool {
	if d.pendingLocked() {
		return false
	}
	clear(d.tallies)
	d.events = 0
	d.generation++
	return true
}

// keyLocked returns the process's own key.
func (d *Duplicates) keyLocked(t *tally) string {
	return t.key + d.o.Writer + "-" + strconv.Itoa(d.generation)
}

func (t *tally) value() []byte {
	if t.history != nil {
		return protocol.EncodeHistory(t.history)
	}
	return protocol.EncodeCount(t.n)
}

// Run writes what was counted, until ctx ends.
func (d *Duplicates) Run(ctx context.Context) {
	for {
		select {
		case <-d.wake:
		case <-ctx.Done():
			return
		}
		for d.Pending() {
			if link.Sleep(ctx, countEvery) != nil {
				return
			}
			d.Write(ctx)
		}
	}
}

// Pending reports whether some counts are not written yet, also those that are being written.
func (d *Duplicates) Pending() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pendingLocked()
}

func (d *Duplicates) pendingLocked() bool { return len(d.queue) > 0 || d.out > 0 }

// Finish writes what is left, if etcd takes it at once.
func (d *Duplicates) Finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, link.TxnTimeout)
	defer cancel()
	for more := d.Pending(); more; more = d.Pending() {
		if !d.Write(ctx) {
			return
		}
	}
}

// Index writes the indexes of the leases that arrivals are on. Nothing may be written after it.
func (d *Duplicates) Index(ctx context.Context) { d.leases.Finish(ctx) }

// Write writes the counts that have waited longest. It returns false if etcd did not take them: they wait on.
func (d *Duplicates) Write(ctx context.Context) bool {
	select {
	case d.writing <- struct{}{}:
		defer func() { <-d.writing }()
	case <-ctx.Done(): // the other one waits for an etcd that does not answer
		return false
	}
	var err error
	for batch := range slices.Chunk(d.take(), CountBatch) {
		if err == nil {
			err = d.send(ctx, batch)
		}
		d.sent(batch, err != nil)
	}
	return err == nil
}

func (d *Duplicates) take() []*tally {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.out = min(len(d.queue), countMost)
	some := d.queue[:d.out:d.out]
	d.queue = d.queue[d.out:]
	for _, t := range some {
		t.queued = false
	}
	return some
}

func (d *Duplicates) sent(some []*tally, again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.out -= len(some)
	for _, t := range some {
		if again {
			d.enqueueLocked(t) // once: etcd takes no request that writes a key twice, and would refuse it again and again
		}
	}
}

// send writes a batch, usually in one request. A duplicate that comes meanwhile queues its execution again. Writing twice does no harm, so lost
// answers are ignored.
func (d *Duplicates) send(ctx context.Context, batch []*tally) error {
	err := d.put(ctx, batch)
	if err == nil {
		return nil
	}
	for _, t := range batch {
		d.leases.DropIfGone(t.lease, err)
		t.lease = 0
	}
	return fmt.Errorf("write duplicates: %w", err)
}

func (d *Duplicates) put(ctx context.Context, batch []*tally) error {
	var ops protocol.Writes
	size := 0
	for _, t := range batch {
		if err := d.prolong(ctx, t); err != nil {
			return err
		}
		d.mu.Lock()
		key, value := d.keyLocked(t), t.value()
		d.mu.Unlock()
		if size += len(value); len(ops) > 0 && size > commit.MaxBatchBytes {
			if err := d.o.Pool.CommitParts(ctx, ops); err != nil {
				return err
			}
			ops, size = nil, len(value)
		}
		ops = append(ops, protocol.Note(key, protocol.Leased{Value: value, Lease: t.lease}))
	}
	return d.o.Pool.CommitParts(ctx, ops)
}

// prolong lets the count live for the retention from now on, and takes a new lease only if it has to. Arrivals are found by their age, so each
// write of them is on the lease of its time.
func (d *Duplicates) prolong(ctx context.Context, t *tally) (err error) {
	clock := d.o.Clock
	if t.history != nil {
		d.mu.Lock()
		row := protocol.RowOfArrivals(t.history)
		d.mu.Unlock()
		t.lease, err = d.leases.Take(ctx, t.retention, protocol.KindArrivals, &row)
		return err
	}
	if t.lease != 0 && clock.Since(t.leased) < idem.Slack(t.retention) {
		return nil
	}
	t.leased = clock.Instant()
	t.lease, err = d.leases.Take(ctx, t.retention, "", nil)
	return err
}

// maxCounts bounds the counts that are read of one execution: each process that has answered a duplicate has a key.
const maxCounts = 1000

// ReadCounts returns the read of all processes' counts of the duplicates of an execution; see Count.
func (s *Reader) ReadCounts(id idem.ExecutionID) clientv3.Op {
	return clientv3.OpGet(s.o.Layout.Counts(id), clientv3.WithPrefix(), clientv3.WithLimit(maxCounts))
}

// Count adds up the duplicates of an execution: what all processes have written, and for this one what it knows itself.
func (d *Duplicates) Count(id idem.ExecutionID, written []*mvccpb.KeyValue) (n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	own := ""
	if t := d.tallies[d.o.Layout.Counts(id)]; t != nil {
		own, n = d.keyLocked(t), t.n
	}
	for _, kv := range written {
		if string(kv.Key) != own {
			n += protocol.DecodeCount(kv.Value)
		}
	}
	return n
}
