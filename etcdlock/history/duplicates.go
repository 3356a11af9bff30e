package history

import (
	"context"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

const maxTallies = 100_000

// Duplicates notes what was not executed here: it counts the duplicates of executions that this
// process has answered without running, and keeps how events arrived that were refused, or answered
// as duplicates. Each process has a note for each execution and each event with what it knows so
// far, and readers add them up.
type Duplicates struct {
	*writer
	// Most bounds the executions and events that are counted at a time.
	Most int

	tallies map[string]*tally // by the prefix of their keys
	refusedEvents
	events int   // those of them that are of events
	shedN  int64 // arrivals that were not kept
	// generation is in the name of the keys. Tallies that are written may be dropped; what is
	// counted after that begins at zero and must not go over what it was.
	generation int
}

// tally is what this process knows of the duplicates of one execution, or of the arrivals of one
// event.
type tally struct {
	note
	key        string
	duplicates int64         // duplicates of the execution
	history    *idem.History // of the event; nil = it is of an execution
}

// NewDuplicates returns an empty count. Run writes it.
func NewDuplicates(o *Options) *Duplicates {
	return &Duplicates{writer: newWriter(o), Most: maxTallies, tallies: map[string]*tally{},
		refusedEvents: refusedEvents{followed: map[string]*refusal{}, rates: map[string]*rate{},
			orphans: make(chan struct{}, 1)}}
}

// Add counts one duplicate of an execution that was answered without running. It never blocks;
// readers in this process see it at once, others within a second. The count lives for retention
// after the duplicate. When more than 100,000 executions have unwritten counts at a time, further
// ones are not counted.
func (d *Duplicates) Add(id idem.ExecutionID, retention time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.tallyLocked(d.options.Layout.Duplicates(id), retention); t != nil {
		t.duplicates++
		d.enqueueLocked(&t.note)
	}
}

// tallyLocked returns the tally of that key; nil if there is no room for another one.
func (d *Duplicates) tallyLocked(key string, retention time.Duration) *tally {
	t := d.tallies[key]
	if t == nil {
		if len(d.tallies) >= d.Most && !d.resetLocked() {
			return nil
		}
		t = &tally{key: key + d.options.Writer + "-" + strconv.Itoa(d.generation)}
		t.says = t.sayLocked
		d.tallies[key] = t
	}
	t.retention = max(t.retention, retention)
	return t
}

// Erase drops what this process knows of how an event arrived, and of the duplicates of an
// execution of it. What is in etcd of it is deleted by the transaction before.
func (d *Duplicates) Erase(event idem.Scope, id idem.ExecutionID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.tallies[d.options.Layout.Arrivals(event)]; t != nil && t.history != nil {
		t.history = &idem.History{Scope: event, Route: t.history.Route, EventID: t.history.EventID}
	}
	if t := d.tallies[d.options.Layout.Duplicates(id)]; t != nil {
		t.duplicates = 0
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
	if d.pendingLocked() > 0 {
		return false
	}
	clear(d.tallies)
	d.events = 0
	d.generation++
	return true
}

// sayLocked returns the note of a tally.
func (t *tally) sayLocked() (own string, value []byte, row *protocol.Row) {
	if t.history == nil {
		return t.key, protocol.EncodeCount(t.duplicates), nil
	}
	found := protocol.RowOfArrivals(t.history)
	return t.key, protocol.EncodeHistory(t.history), &found
}

// Index writes the indexes of the leases that arrivals are on. Nothing may be written after it.
func (d *Duplicates) Index(ctx context.Context) { d.leases.Finish(ctx) }

// maxCounts bounds the counts that are read of one execution: each process that has answered a
// duplicate has a key.
const maxCounts = 1000

// ReadCounts returns the read of all processes' counts of the duplicates of an execution; see
// Count.
func (s *Reader) ReadCounts(id idem.ExecutionID) clientv3.Op {
	return clientv3.OpGet(s.options.Layout.Duplicates(id), clientv3.WithPrefix(), clientv3.WithLimit(maxCounts))
}

// Count adds up the duplicates of an execution: what all processes have written, and for this one
// what it knows itself.
func (d *Duplicates) Count(id idem.ExecutionID, written []*mvccpb.KeyValue) (n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	own := ""
	if t := d.tallies[d.options.Layout.Duplicates(id)]; t != nil {
		own, n = t.key, t.duplicates
	}
	for _, kv := range written {
		if string(kv.Key) != own {
			n += protocol.DecodeCount(kv.Value)
		}
	}
	return n
}
