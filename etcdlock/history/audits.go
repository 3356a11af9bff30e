package history

import (
	"context"
	"strings"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

const (
	maxQueued = 10_000 // that wait to be written
	// maxAuditsRead bounds what one page looks at, whatever it shows.
	maxAuditsRead = 5000
)

// Note is what a transaction writes beside its change.
type Note struct {
	Key string // where Leased is written
	protocol.Leased
}

// Audits notes audits, each by itself: those of changes in the transactions that make them, and
// others in the background. Those that changed nothing are bounded for each token, see refusals.
type Audits struct {
	*writer
	refusals
	Room int // for audits that wait to be written; further ones are shed

	numbered int64
	shedN    int64
}

// NewAudits returns an empty log. Run writes it.
func NewAudits(o *Options) *Audits {
	a := &Audits{writer: newWriter(o), Room: maxQueued,
		refusals: refusals{Bounds{Most: maxRefused, MostOfAll: maxRefusedOfAll}, map[string]int{}}}
	a.after = a.deleteOldestRefusals
	return a
}

// Add adds an audit that no transaction writes. It never blocks. Other replicas see it within a
// second, as long as etcd takes it, and for idem.AuditRetention. A process that is killed before
// that loses it, and when 10,000 audits wait to be written, further ones are dropped and counted.
func (a *Audits) Add(one idem.Audit) {
	refused := one.Name == "" && one.ChangedNothing()
	a.Name(&one)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pendingLocked() >= a.Room || refused && !a.hasRoomLocked(one.Who) {
		a.shedN++
		return
	}
	value := protocol.EncodeAudit(&one)
	a.enqueueLocked(&note{retention: idem.AuditRetention, says: func() (string, []byte, *protocol.Row) {
		return one.Name, value, nil
	}})
}

// Name names an audit, unless it has a name. What changed nothing has its place with its name.
func (a *Audits) Name(one *idem.Audit) {
	if one.Name != "" {
		return
	}
	one.At = one.At.UTC().Round(time.Millisecond)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.numbered++
	if one.Name = a.options.Layout.Audit(one.At, a.options.Writer, a.numbered); one.ChangedNothing() {
		one.Name = a.options.Layout.Refused(one.At, a.options.Writer, a.numbered, one.Who)
	}
}

// Note returns the note of an audit that has a name, for the transaction that makes it true. It
// returns the error of the grant or of ctx.
func (a *Audits) Note(ctx context.Context, one *idem.Audit) (n Note, err error) {
	n.Key, n.Value = one.Name, protocol.EncodeAudit(one)
	n.Lease, err = a.leases.Take(ctx, idem.AuditRetention, "", nil)
	return n, err
}

// EndNote is called with the answer to the transaction with a note of Audits: err is nil if it was
// applied or refused.
func (a *Audits) EndNote(n Note, err error) {
	if a.leases.DropIfGone(n.Lease, err); strings.HasPrefix(n.Key, a.options.Layout.All(protocol.KindRefused)) {
		a.afterLater()
	}
}

// Shed returns how many audits this process has dropped.
func (a *Audits) Shed() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.shedN
}

// List returns a page of audits, the newest first. It returns idem.ErrCursor for an invalid cursor
// and idem.ErrStoreUnavailable if etcd cannot be read.
func (a *Audits) List(ctx context.Context, q idem.AuditQuery) (page idem.AuditPage, err error) {
	after, ok := strings.CutPrefix(q.Cursor, protocol.KindAudits)
	if q.Cursor != "" && !ok {
		return page, idem.ErrCursor
	}
	a.Finish(ctx) // the caller may look for what it has just done
	limit, looked, last := pageLimit(q.PageSize), 0, ""
	for kv, err := range a.newestFirst(ctx, after) {
		if err != nil {
			return idem.AuditPage{}, commit.Unavailable(err)
		}
		if len(page.Audits) == limit || looked == maxAuditsRead {
			page.NextCursor = last
			return page, nil
		}
		looked, last = looked+1, protocol.KindAudits+a.timeOf(kv)
		switch one := protocol.DecodeAudit(kv.Value); {
		case one == nil:
		case one.At.Before(q.Since): // and so are all that follow
			return page, nil
		case q.Matches(one):
			page.Audits = append(page.Audits, *one)
		}
	}
	return page, nil
}
