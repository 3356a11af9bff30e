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
type surroundings struct{ s *core }

var (
	_ view.Process    = (*surroundings)(nil)
	_ history.Process = (*surroundings)(nil)
	_ reap.Process    = (*surroundings)(nil)
	_ operate.Process = (*surroundings)(nil)
	_ owned.Listener  = (*surroundings)(nil)
)

// Session implements view.Process.
func (a *surroundings) Session() (*session.Session, error) {
	session, _, err := a.s.keeper.Current()
	return session, err
}

// Size implements view.Process and history.Process.
func (a *surroundings) Size(route string, slot idem.Slot) int {
	if a.s.o.Limit == nil {
		return 0
	}
	return a.s.o.Limit(route, slot)
}

// OnPauses implements view.Process.
func (a *surroundings) OnPauses(begun, over []*idem.Pause) {
	if a.s.o.OnPause == nil {
		return
	}
	for _, p := range over {
		a.s.o.OnPause(*p, true)
	}
	for _, p := range begun {
		a.s.o.OnPause(*p, false)
	}
}

// OnParkedChange implements view.Process.
func (a *surroundings) OnParkedChange(id idem.ExecutionID) { a.s.own.RereadParked(id) }

// Holds implements history.Process and reap.Process.
func (a *surroundings) Holds(id idem.ExecutionID) bool { return a.s.own.Has(id) }

// Rows implements history.Process.
func (a *surroundings) Rows(lease clientv3.LeaseID) []protocol.Row { return a.s.leases.Rows(lease) }

// Follow implements history.Process.
func (a *surroundings) Follow(route string, byPayload bool) idem.Following {
	if a.s.o.Follow == nil {
		return idem.Following{}
	}
	return a.s.o.Follow(route, byPayload)
}

// OnLost implements history.Process.
func (a *surroundings) OnLost(e idem.LostEvent) {
	if a.s.o.OnLost != nil {
		a.s.o.OnLost(e)
	}
}

// Counted implements history.Process.
func (a *surroundings) Counted() []idem.RouteCounts {
	if a.s.o.Counted == nil {
		return nil
	}
	return a.s.o.Counted()
}

// OnReaped implements reap.Process.
func (a *surroundings) OnReaped(dead *idem.Lock) {
	if a.s.o.OnReaped != nil {
		a.s.o.OnReaped(dead)
	}
}

// OnNotReaped implements reap.Process.
func (a *surroundings) OnNotReaped(dead *idem.Lock, err error) {
	a.s.o.Logger.Warn("lock.bury", "execution", dead.Execution, "workflow", dead.Scope.Workflow, "error", err)
}

// OnEnded implements operate.Process and owned.Listener. A lock of the lock API is no execution of
// a route.
func (a *surroundings) OnEnded(record *idem.Record, recorded bool) {
	if record.Route != "" && a.s.o.OnEnded != nil {
		a.s.o.OnEnded(record, recorded)
	}
}

// OnReduced implements owned.Listener.
func (a *surroundings) OnReduced(record *idem.Record, bytes int) {
	if a.s.o.OnReduced != nil {
		a.s.o.OnReduced(record, bytes)
	}
}

// Rekeep implements operate.Process.
func (a *surroundings) Rekeep(ctx context.Context, from, to idem.ExecutionID,
	kept idem.StoredRequest) (idem.StoredRequest, error) {
	if a.s.o.Rekeep == nil {
		return kept, nil
	}
	return a.s.o.Rekeep(ctx, from, to, kept.Value)
}

// Archived implements operate.Process.
func (a *surroundings) Archived(ctx context.Context, r *idem.Record, to idem.ExecutionID) (idem.StoredRequest,
	*idem.ParkedEntry, error) {
	if a.s.o.Archived == nil {
		return idem.StoredRequest{}, nil, idem.ErrNoRequest
	}
	return a.s.o.Archived(ctx, r, to)
}

// Erase implements operate.Process.
func (a *surroundings) Erase(ctx context.Context, id idem.ExecutionID, value []byte) error {
	if a.s.o.Erase == nil {
		return nil
	}
	return a.s.o.Erase(ctx, id, value)
}
