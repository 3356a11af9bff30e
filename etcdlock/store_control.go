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

// Control finds executions and locks of all processes, and ends them. The methods of packages
// history and operate are for operators: the caller checks their rights. The methods of package
// callback are for services and clients of the lock API: they check the callback key of the
// execution.
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

// FollowRefused has this process follow the refused events of processes that have ended. Call it
// when Options.Follow knows the routes.
func (s *Store) FollowRefused() { s.duplicates.FollowOrphans() }

// ShedArrivals returns how many arrivals this process has not stored because too many came.
func (s *Store) ShedArrivals() int64 { return s.duplicates.Shed() }

// AuditRefusal stores that something was refused to the owner of a token. (A change stores its
// audit in its own transaction.) It never blocks. Other processes can read the audit within a
// second while etcd answers, for idem.AuditRetention. It is lost if this process is killed before,
// or if 10,000 others wait to be written.
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

// ShedAudits returns how many audits this process has not stored because too many came.
func (s *Store) ShedAudits() int64 { return s.audits.Shed() }

// Counts returns what all processes have counted: this one until now, the others until a minute
// ago. It returns idem.ErrStoreUnavailable if etcd cannot be read.
func (s *Control) Counts(ctx context.Context, q idem.CountQuery) (idem.CountHistory, error) {
	return s.counts.Counts(ctx, q)
}

// Replicas returns what each process with this prefix says of itself, also those that ended in the
// last hour. It returns idem.ErrStoreUnavailable if etcd cannot be read.
func (s *Control) Replicas(ctx context.Context) ([]idem.ReplicaNote, error) {
	return s.replicas.Replicas(ctx)
}

// Space returns how full those members of etcd are that answer.
func (s *Control) Space(ctx context.Context) (all []idem.StoreSpace) {
	for _, m := range s.pool.Space(ctx, s.options.Endpoints) {
		all = append(all, idem.StoreSpace{Member: cmp.Or(m.Endpoint, "embedded"), Size: m.Size, InUse: m.InUse,
			Quota: m.Quota, Full: m.Full})
	}
	return all
}
