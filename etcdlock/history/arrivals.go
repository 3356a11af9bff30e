package history

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// MaxEvents bounds the events whose arrivals this process has in memory, of 2 KiB each at most.
// Those that are written go when there is no room.
const MaxEvents = 10_000

// refusedRetention is for how long at least the arrivals of an event are kept that is refused, and
// may be lost.
const refusedRetention = 24 * time.Hour

// NoteArrival notes a delivery that was not executed. It never blocks; others know of it within a
// second, as long as the store takes it, and for retention after it, or refusedRetention if
// the event may be lost. When 10,000 events have arrivals that are not written yet, those of
// further events are shed.
func (d *Duplicates) NoteArrival(event idem.Scope, route, eventID string, a idem.Arrival, retention time.Duration) {
	a.At, a.Took = a.At.UTC().Round(time.Millisecond), (a.Took + time.Millisecond - 1).Truncate(time.Millisecond)
	key := d.options.Layout.Arrivals(event)
	var following idem.Following
	if a.Decision.Row().MayBeLost {
		following, retention = d.options.Follow(route, eventID == ""), max(retention, refusedRetention)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tallies[key] == nil && !d.mayStoreLocked(route, following.NewPerSecond) {
		d.shedN++
		return
	}
	if d.tallies[key] == nil && d.events >= MaxEvents && !d.resetLocked() {
		d.shedN++
		return
	}
	t := d.tallyLocked(key, retention)
	if t == nil {
		d.shedN++
		return
	}
	h := d.historyLocked(t, event, route, eventID)
	h.Add(a)
	d.enqueueLocked(&t.note)
	if following.Patience > 0 {
		d.followLocked(key, &refusal{event: event, tally: t, at: a.At, due: following.Due(h.First.At, a.At),
			until: a.At.Add(following.Remembered)})
	}
}

// historyLocked returns the history of an event in t.
func (d *Duplicates) historyLocked(t *tally, event idem.Scope, route, eventID string) *idem.History {
	if t.history == nil {
		d.events++
		t.history = &idem.History{Scope: event, Route: route, EventID: eventID}
	}
	return t.history
}

// forgottenKept is for how long it is stored that a record was removed.
const forgottenKept = 30 * 24 * time.Hour

// forgottenBy ends the key of what is known of the latest forget of an event. It is in the place of
// a process, and no process has this name.
const forgottenBy = "forgotten"

// NoteForgotten returns the note that the record of e was removed, for the transaction that does
// so. The event is found by it for 30 days, without what its labels say: they may be the reason for
// the removal. It returns the error of the grant or of ctx.
func (d *Duplicates) NoteForgotten(ctx context.Context, e *idem.ExecutionFacts, f idem.Forgotten) (n Note, err error) {
	f.At = f.At.UTC().Round(time.Millisecond)
	h := &idem.History{Scope: e.Scope, Route: e.Route, EventID: e.EventID, Forgotten: &f}
	row := protocol.RowOfArrivals(h)
	n.Key, n.Value = d.options.Layout.Arrivals(e.Scope)+forgottenBy, protocol.EncodeHistory(h)
	n.Lease, err = d.leases.Take(ctx, forgottenKept, protocol.KindArrivals, &row)
	return n, err
}

// EndNote is called with the answer to the transaction with a note of Duplicates.
func (d *Duplicates) EndNote(n Note, err error) { d.leases.DropIfGone(n.Lease, err) }

// Shed returns how many arrivals were not kept.
func (d *Duplicates) Shed() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shedN
}

func (s *Reader) readArrivals(event idem.Scope) clientv3.Op {
	return clientv3.OpGet(s.options.Layout.Arrivals(event), clientv3.WithPrefix(), clientv3.WithLimit(maxCounts))
}

// arrivalsOf returns how an event arrived: what all processes have written, and for this one what
// it knows itself; nil = nothing is known.
func (d *Duplicates) arrivalsOf(event idem.Scope, written []*mvccpb.KeyValue) *idem.History {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all idem.History
	own := ""
	if t := d.tallies[d.options.Layout.Arrivals(event)]; t != nil {
		own = t.key
		all.Merge(t.history)
	}
	for _, kv := range written {
		if h := protocol.DecodeHistory(kv.Value); h != nil && string(kv.Key) != own {
			all.Merge(h)
		}
	}
	if all.Empty() {
		return nil
	}
	return &all
}
