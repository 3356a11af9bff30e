package etcdlock

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/history"
	"hooklock/etcdlock/operate"
	"hooklock/etcdlock/owned"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/reap"
	"hooklock/etcdlock/session"
	"hooklock/etcdlock/view"
	"hooklock/idem"
)

// surroundings are the Store, as its parts see it: each part has an interface for what it asks and
// tells, and gets it here, from the other parts and from what the Options say.
type surroundings struct{ core *core }

var (
	_ view.Process    = (*surroundings)(nil)
	_ history.Process = (*surroundings)(nil)
	_ reap.Process    = (*surroundings)(nil)
	_ operate.Process = (*surroundings)(nil)
	_ owned.Listener  = (*surroundings)(nil)
)

// Session implements view.Process.
func (a *surroundings) Session() (*session.Session, error) {
	session, _, err := a.core.keeper.Current()
	return session, err
}

// Size implements view.Process and history.Process.
func (a *surroundings) Size(route string, slot idem.Slot) int {
	if a.core.options.Limit == nil {
		return 0
	}
	return a.core.options.Limit(route, slot)
}

// OnPauses implements view.Process.
func (a *surroundings) OnPauses(begun, over []*idem.Pause) {
	if a.core.options.OnPause == nil {
		return
	}
	for _, p := range over {
		a.core.options.OnPause(*p, true)
	}
	for _, p := range begun {
		a.core.options.OnPause(*p, false)
	}
}

// OnParkedChange implements view.Process.
func (a *surroundings) OnParkedChange(id idem.ExecutionID) { a.core.own.RereadParked(id) }

// Holds implements history.Process and reap.Process.
func (a *surroundings) Holds(id idem.ExecutionID) bool { return a.core.own.Has(id) }

// Rows implements history.Process.
func (a *surroundings) Rows(lease clientv3.LeaseID) []protocol.Row { return a.core.leases.Rows(lease) }

// Follow implements history.Process.
func (a *surroundings) Follow(route string, byPayload bool) idem.Following {
	if a.core.options.Follow == nil {
		return idem.Following{}
	}
	return a.core.options.Follow(route, byPayload)
}

// OnLost implements history.Process.
func (a *surroundings) OnLost(e idem.LostEvent) {
	if a.core.options.OnLost != nil {
		a.core.options.OnLost(e)
	}
}

// Counted implements history.Process.
func (a *surroundings) Counted() []idem.RouteCounts {
	if a.core.options.Counted == nil {
		return nil
	}
	return a.core.options.Counted()
}

// OnReaped implements reap.Process.
func (a *surroundings) OnReaped(dead *idem.Lock) {
	if a.core.options.OnReaped != nil {
		a.core.options.OnReaped(dead)
	}
}

// OnNotReaped implements reap.Process.
func (a *surroundings) OnNotReaped(dead *idem.Lock, err error) {
	a.core.options.Logger.Warn("lock.bury", "execution", dead.Execution, "workflow", dead.Scope.Workflow, "error", err)
}

// OnEnded implements operate.Process and owned.Listener. A lock of the lock API is no execution of
// a route.
func (a *surroundings) OnEnded(record *idem.Record, recorded bool) {
	if record.Route != "" && a.core.options.OnEnded != nil {
		a.core.options.OnEnded(record, recorded)
	}
}

// OnReduced implements owned.Listener.
func (a *surroundings) OnReduced(record *idem.Record, bytes int) {
	if a.core.options.OnReduced != nil {
		a.core.options.OnReduced(record, bytes)
	}
}

// Rekeep implements operate.Process.
func (a *surroundings) Rekeep(ctx context.Context, from, to idem.ExecutionID,
	kept idem.StoredRequest) (idem.StoredRequest, error) {
	if a.core.options.Rekeep == nil {
		return kept, nil
	}
	return a.core.options.Rekeep(ctx, from, to, kept.Value)
}

// Archived implements operate.Process.
func (a *surroundings) Archived(ctx context.Context, r *idem.Record, to idem.ExecutionID) (idem.StoredRequest,
	*idem.ParkedEntry, error) {
	if a.core.options.Archived == nil {
		return idem.StoredRequest{}, nil, idem.ErrNoRequest
	}
	return a.core.options.Archived(ctx, r, to)
}

// Erase implements operate.Process.
func (a *surroundings) Erase(ctx context.Context, id idem.ExecutionID, value []byte) error {
	if a.core.options.Erase == nil {
		return nil
	}
	return a.core.options.Erase(ctx, id, value)
}
