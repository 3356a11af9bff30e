package etcdlock

import (
	"cmp"
	"context"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Paused implements idem.Ledger.
func (s *core) Paused(route, workflow string) *idem.Pause { return s.pauses.Of(route, workflow) }

// pauseChanged is told of each change by the watch, in order.
func (s *core) pauseChanged(begun, over []*idem.Pause) {
	s.parked.PausesChanged()
	s.slots.PausesChanged()
	if s.o.OnPause == nil {
		return
	}
	for _, p := range over {
		s.o.OnPause(*p, true)
	}
	for _, p := range begun {
		s.o.OnPause(*p, false)
	}
}

// PausedHere are the pauses that are in force in this process, in the order in which they began, with how many parked executions wait for each over all
// processes. It asks nobody.
func (s *Store) PausedHere() []idem.PauseState {
	pauses := s.pauses.List()
	if len(pauses) == 0 {
		return nil
	}
	states := make([]idem.PauseState, len(pauses))
	for i, p := range pauses {
		states[i].Pause = *p
	}
	s.parked.CountPaused(states)
	return states
}

// Pause holds back what begins in p.Scope, until Resume or for as long as p.For says. A pause of the same scope is replaced: before is that, or nil.
// The error is idem.ErrStoreUnavailable.
func (s *Control) Pause(ctx context.Context, p idem.Pause) (before *idem.Pause, err error) {
	key := s.layout.Pause(p.Scope)
	value, err := protocol.EncodePause(&p)
	if err != nil {
		return nil, unavailable(err)
	}
	answers, _, err := s.pool.Read(ctx, clientv3.OpGet(key))
	if err != nil {
		return nil, unavailable(err)
	}
	if kv := protocol.First(answers[0]); kv != nil {
		if before, err = s.layout.PauseAt(kv); err != nil {
			return nil, unavailable(err)
		}
	}
	lease := clientv3.LeaseID(0)
	if p.For > 0 {
		if lease, err = s.pool.NewLease(ctx, p.For); err != nil {
			return nil, unavailable(err)
		}
	}
	r := commit.NewRequest(key, protocol.Note(key, protocol.Leased{Value: value, Lease: lease}), len(value))
	r.Unbatched = lease != 0
	if _, applied, err := s.change(ctx, r); err != nil || !applied {
		return nil, unavailable(err)
	}
	return before, nil
}

// Resume ends a pause, and returns it. The error is idem.ErrNoPause or idem.ErrStoreUnavailable.
func (s *Control) Resume(ctx context.Context, scope idem.PauseScope) (*idem.Pause, error) {
	key := s.layout.Pause(scope)
	answer, _, err := s.change(ctx, commit.NewRequest(key, protocol.Resume(key), 0))
	if err != nil {
		return nil, unavailable(err)
	}
	kvs := answer.Responses[0].GetResponseDeleteRange().PrevKvs
	if len(kvs) == 0 {
		return nil, idem.ErrNoPause
	}
	p, err := s.layout.PauseAt(kvs[0])
	if err != nil {
		return nil, unavailable(err)
	}
	return p, nil
}

// pauseBatch locks or queue entries are read at a time.
const pauseBatch = 100

// maxPauseLooks is how many locks, and how many places, are looked at for how far pauses have come.
const maxPauseLooks = 20_000

// Pauses are all pauses, in the order in which they began, with how far each has come: all of it at one revision. The error is
// idem.ErrStoreUnavailable.
func (s *Control) Pauses(ctx context.Context) ([]idem.PauseState, error) {
	answers, revision, err := s.pool.Read(ctx,
		clientv3.OpGet(s.layout.Pauses(), clientv3.WithPrefix()), clientv3.OpGet(s.layout.Sessions(), clientv3.WithPrefix()))
	if err != nil {
		return nil, unavailable(err)
	}
	var states []idem.PauseState
	for _, kv := range answers[0].GetResponseRange().Kvs {
		p, err := s.layout.PauseAt(kv)
		if err != nil {
			continue // no process reads it as a pause
		}
		states = append(states, idem.PauseState{Pause: *p})
	}
	if len(states) == 0 {
		return nil, nil
	}
	slices.SortFunc(states, func(a, b idem.PauseState) int { return cmp.Compare(a.Revision, b.Revision) })
	for _, kv := range answers[1].GetResponseRange().Kvs {
		heard, holder := protocol.HeardOf(kv)
		for i := range states {
			if heard < states[i].Revision {
				states[i].Unheard = append(states[i].Unheard, cmp.Or(holder, strings.TrimPrefix(string(kv.Key), s.layout.Sessions())))
			}
		}
	}
	for _, prefix := range []string{s.layout.Locks(), s.layout.Queues()} {
		if err := s.countFor(ctx, states, prefix, revision); err != nil {
			return nil, unavailable(err)
		}
	}
	return states, nil
}

// countFor counts locks or queue entries for each of the pauses.
func (s *Control) countFor(ctx context.Context, states []idem.PauseState, prefix string, revision int64) error {
	keys := link.Below(prefix, pauseBatch)
	keys.Revision = revision
	looked := 0
	for kv, err := range s.pool.All(ctx, keys) {
		if err != nil {
			return err
		}
		l, unread := protocol.LockAt(kv)
		looked++
		for i := range states {
			switch {
			case looked > maxPauseLooks, unread != nil: // there are more than are looked at, or it is of a newer release
				states[i].More = true
			case l.Route != "" && states[i].Scope.Covers(l.Route, l.Scope.Workflow):
				countOne(&states[i], l, prefix == s.layout.Queues())
			}
		}
		if looked > maxPauseLooks {
			return nil
		}
	}
	return nil
}

func countOne(p *idem.PauseState, l *idem.Lock, waits bool) {
	switch {
	case l.IsParked() && (waits || !l.Parked.Trying):
		p.Parked++
	case waits:
		p.Waiting++
	default:
		p.Running++
	}
}
