package operate

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

// Pause holds back what begins in the scope of want, until Resume or for as long as want.For says. A pause of the same scope is replaced: before is that, or
// nil. It returns idem.ErrStoreUnavailable.
func (op *Operator) Pause(ctx context.Context, want idem.Pause) (before *idem.Pause, err error) {
	key := op.o.Layout.Pause(want.Scope)
	value, err := protocol.EncodePause(&want)
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	kvs, _, err := op.o.Pool.Keys(ctx, key)
	if err == nil && len(kvs) > 0 {
		before, err = op.o.Layout.PauseAt(kvs[0])
	}
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	lease := clientv3.LeaseID(0)
	if want.For > 0 {
		if lease, err = op.o.Pool.NewLease(ctx, want.For); err != nil {
			return nil, commit.Unavailable(err)
		}
	}
	r := commit.NewRequest(key, protocol.Note(key, protocol.Leased{Value: value, Lease: lease}), len(value))
	r.Unbatched = lease != 0
	if _, applied, err := op.change(ctx, r); err != nil || !applied {
		return nil, commit.Unavailable(err)
	}
	return before, nil
}

// Resume ends a pause, and returns it. It returns idem.ErrNoPause or idem.ErrStoreUnavailable.
func (op *Operator) Resume(ctx context.Context, scope idem.PauseScope) (*idem.Pause, error) {
	key := op.o.Layout.Pause(scope)
	answer, _, err := op.change(ctx, commit.NewRequest(key, protocol.Resume(key), 0))
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	kvs := answer.Responses[0].GetResponseDeleteRange().PrevKvs
	if len(kvs) == 0 {
		return nil, idem.ErrNoPause
	}
	over, err := op.o.Layout.PauseAt(kvs[0])
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	return over, nil
}

// pauseBatch locks or queue entries are read at a time.
const pauseBatch = 100

// maxPauseLooks is how many locks, and how many queue entries, are looked at for how far pauses have come.
const maxPauseLooks = 20_000

// Pauses returns all pauses, in the order in which they began, with how far each has come: all of it at one revision. It returns idem.ErrStoreUnavailable.
func (op *Operator) Pauses(ctx context.Context) ([]idem.PauseState, error) {
	answers, revision, err := op.o.Pool.Read(ctx,
		clientv3.OpGet(op.o.Layout.All(protocol.KindPauses), clientv3.WithPrefix()), clientv3.OpGet(op.o.Layout.All(protocol.KindSessions), clientv3.WithPrefix()))
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	var states []idem.PauseState
	for _, kv := range answers[0].GetResponseRange().Kvs {
		pause, err := op.o.Layout.PauseAt(kv)
		if err != nil {
			continue // no process reads it as a pause
		}
		states = append(states, idem.PauseState{Pause: *pause})
	}
	if len(states) == 0 {
		return nil, nil
	}
	slices.SortFunc(states, func(a, b idem.PauseState) int { return cmp.Compare(a.Revision, b.Revision) })
	for _, kv := range answers[1].GetResponseRange().Kvs {
		heard, holder := protocol.HeardOf(kv)
		for i := range states {
			if heard < states[i].Revision {
				states[i].Unheard = append(states[i].Unheard, cmp.Or(holder, strings.TrimPrefix(string(kv.Key), op.o.Layout.All(protocol.KindSessions))))
			}
		}
	}
	for _, prefix := range []string{op.o.Layout.All(protocol.KindLocks), op.o.Layout.All(protocol.KindQueue)} {
		if err := op.countFor(ctx, states, prefix, revision); err != nil {
			return nil, commit.Unavailable(err)
		}
	}
	return states, nil
}

// countFor counts locks or queue entries for each of the pauses.
func (op *Operator) countFor(ctx context.Context, states []idem.PauseState, prefix string, revision int64) error {
	keys := link.Below(prefix, pauseBatch)
	keys.Revision = revision
	looked := 0
	for kv, err := range op.o.Pool.All(ctx, keys) {
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
				countOne(&states[i], l, prefix == op.o.Layout.All(protocol.KindQueue))
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
