package etcdlock

import (
	"cmp"
	"context"

	"hooklock/etcdlock/callback"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/operate"
	"hooklock/etcdlock/reap"
	"hooklock/idem"
)

// Control is for operators and upstreams, at any process: it finds executions and locks in all
// processes, and ends them. The methods for operators are in packages history and operate, whose
// caller has to know that it may; those for upstreams and clients of the lock API, in package
// callback, ask for the callback key of an execution.
type Control struct {
	*core
	*history.Reader
	*operate.Finder
	*operate.Operator
	*callback.Callbacks
	holdings *reap.Holdings
}

// PausedHere returns the pauses that are in force in this process, in the order in which they
// began, with how many parked executions wait for each over all processes. It does not read etcd.
func (s *Store) PausedHere() []idem.PauseState {
	pauses := s.view.Pauses.List()
	if len(pauses) == 0 {
		return nil
	}
	states := make([]idem.PauseState, len(pauses))
	for i, p := range pauses {
		states[i].Pause = *p
	}
	s.view.Parked.CountPaused(states)
	return states
}

// Questions returns what the service is to be asked about events of unknown outcome.
func (s *Store) Questions() *operate.Questions { return s.questions }

// FollowRefused has this process follow the events that ended processes have refused and that have
// not come again. Call it when Options.Follow knows the routes.
func (s *Store) FollowRefused() { s.duplicates.FollowOrphans() }

// ShedArrivals returns how many arrivals this process has not kept.
func (s *Store) ShedArrivals() int64 { return s.duplicates.Shed() }

// AuditRefusal notes what was refused to the owner of a token; what was done has its audit in the
// transaction that did it. It never blocks. Other processes can read it within a second, as long as
// etcd takes it, and for idem.AuditRetention. If the process is killed before that, it is lost;
// while 10,000 wait to be written, further ones are shed.
func (s *Control) AuditRefusal(a idem.Audit) { s.audits.Add(a) }

// Audits returns a page of what was asked for with tokens. It returns idem.ErrCursor or
// idem.ErrStoreUnavailable.
func (s *Control) Audits(ctx context.Context, q idem.AuditQuery) (idem.AuditPage, error) {
	return s.audits.List(ctx, q)
}

// BadSignatures returns a page of deliveries whose signature was not valid. It returns
// idem.ErrCursor or idem.ErrStoreUnavailable.
func (s *Control) BadSignatures(ctx context.Context, q idem.BadSignatureQuery) (idem.BadSignaturePage, error) {
	return s.signatures.List(ctx, q)
}

// ShedAudits returns how many audits this process has not kept.
func (s *Store) ShedAudits() int64 { return s.audits.Shed() }

// Counts returns what all processes have counted: of this one up to now, of others up to a minute
// ago. It returns idem.ErrStoreUnavailable if etcd cannot be read.
func (s *Control) Counts(ctx context.Context, q idem.CountQuery) (idem.CountHistory, error) {
	return s.counts.Counts(ctx, q)
}

// Replicas returns what each process with this prefix says of itself, those that ended in the last
// hour included. It returns idem.ErrStoreUnavailable if etcd cannot be read.
func (s *Control) Replicas(ctx context.Context) ([]idem.ReplicaNote, error) {
	return s.replicas.Replicas(ctx)
}

// Space returns how full the members of etcd are that answer.
func (s *Control) Space(ctx context.Context) (all []idem.StoreSpace) {
	for _, m := range s.pool.Space(ctx, s.options.Endpoints) {
		all = append(all, idem.StoreSpace{Member: cmp.Or(m.Endpoint, "embedded"), Size: m.Size, InUse: m.InUse,
			Quota: m.Quota, Full: m.Full})
	}
	return all
}
