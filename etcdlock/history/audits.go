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

// Audits notes audits, each by itself. Those that changed nothing are bounded for each token, see refusals.
type Audits struct {
	*writer
	refusals
	Room int // for audits that wait to be written; further ones are shed

	n     int64
	shedN int64
}

// NewAudits returns an empty log. Run writes it.
func NewAudits(o *Options) *Audits {
	a := &Audits{writer: newWriter(o), refusals: newRefusals(), Room: maxQueued}
	a.after = a.deleteOldestRefusals
	return a
}

// Add adds an audit. It never blocks. Other replicas see it within a second, as long as etcd takes it, and for idem.AuditKept. A process that
// is killed before that loses it, and when 10,000 audits wait to be written, further ones are dropped and counted.
func (a *Audits) Add(one idem.Audit) {
	one.At = one.At.UTC().Round(time.Millisecond)
	a.mu.Lock()
	defer a.mu.Unlock()
	refused := one.ChangedNothing()
	if a.pendingLocked() >= a.Room || refused && !a.hasRoomLocked(one.Who) {
		a.shedN++
		return
	}
	a.n++
	key, value := a.o.Layout.Audit(one.At, a.o.Writer, a.n), protocol.EncodeAudit(&one)
	if refused {
		key = a.o.Layout.Refused(one.At, a.o.Writer, a.n, one.Who)
	}
	a.enqueueLocked(&note{retention: idem.AuditKept, says: func() (string, []byte, *protocol.Row) { return key, value, nil }})
}

// Shed returns how many audits this process has dropped.
func (a *Audits) Shed() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.shedN
}

// List returns a page of audits, the newest first. It returns idem.ErrCursor for an invalid cursor and idem.ErrStoreUnavailable if etcd cannot be read.
func (a *Audits) List(ctx context.Context, q idem.AuditQuery) (page idem.AuditPage, err error) {
	after, ok := strings.CutPrefix(q.Cursor, protocol.KindAudits)
	if q.Cursor != "" && !ok {
		return page, idem.ErrCursor
	}
	a.Finish(ctx) // the caller may look for what it has just done
	limit, looked, last := pageLimit(q.Limit), 0, ""
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
		case q.Takes(one):
			page.Audits = append(page.Audits, *one)
		}
	}
	return page, nil
}
