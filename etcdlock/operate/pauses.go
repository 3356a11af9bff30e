package operate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Pause holds back what begins in the scope of want, until Resume or for as long as want.For says.
// A pause of the same scope is replaced: before is that, or nil. It returns
// idem.ErrStoreUnavailable.
func (op *Operator) Pause(ctx context.Context, want idem.Pause, audit *idem.Audit) (before *idem.Pause, err error) {
	t := op.newTrail(audit)
	t.audit.Workflow = want.Scope.String()
	value, err := protocol.EncodePause(&want)
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	lease := clientv3.LeaseID(0)
	if want.For > 0 {
		if lease, err = op.options.Pool.NewLease(ctx, want.For); err != nil {
			return nil, commit.Unavailable(err)
		}
	}
	key := op.options.Layout.Pause(want.Scope)
	err = t.changeKey(ctx, key, func(kv *mvccpb.KeyValue) (*commit.Request, error) {
		before, t.audit.Before, t.audit.After = nil, "not paused", string(idem.DecisionPaused)
		if kv != nil {
			if before, err = op.options.Layout.PauseAt(kv); err != nil {
				return nil, err
			}
			t.audit.Before = "paused by " + before.By
		}
		if want.For > 0 {
			t.audit.After += " for " + idem.DurationText(want.For)
		}
		r := commit.NewRequest(key, protocol.Declare(key, kv.GetModRevision(),
			protocol.Leased{Value: value, Lease: lease}), len(value))
		r.Unbatched = lease != 0
		return r, nil
	})
	return before, err
}

// Resume ends a pause, and returns it. It returns idem.ErrNoPause or idem.ErrStoreUnavailable.
func (op *Operator) Resume(ctx context.Context, scope idem.PauseScope, audit *idem.Audit) (over *idem.Pause,
	err error) {
	t := op.newTrail(audit)
	t.audit.Workflow = scope.String()
	key := op.options.Layout.Pause(scope)
	err = t.changeKey(ctx, key, func(kv *mvccpb.KeyValue) (*commit.Request, error) {
		if kv == nil {
			return nil, idem.ErrNoPause
		}
		if over, err = op.options.Layout.PauseAt(kv); err != nil {
			return nil, err
		}
		t.audit.Before, t.audit.After = "paused by "+over.By, "resumed"
		return commit.NewRequest(key, protocol.Resume(key, kv.ModRevision), 0), nil
	})
	if err != nil {
		return nil, err
	}
	return over, nil
}

// changeKey changes key, which deliveries do not compare: it reads it, and sends what change makes
// of it, until that is not refused. What is there is nil if the key is absent. It returns
// idem.ErrNoPause, idem.ErrNotAcknowledged or idem.ErrStoreUnavailable.
func (t *trail) changeKey(ctx context.Context, key string,
	change func(*mvccpb.KeyValue) (*commit.Request, error)) error {
	t.audit.Result = idem.AuditDone
	err := t.options.Tasks.Repeat(ctx, func(ctx context.Context) (bool, error) {
		kvs, _, err := t.options.Pool.Keys(ctx, key)
		if err != nil {
			return true, commit.Unavailable(err)
		}
		var kv *mvccpb.KeyValue
		if len(kvs) > 0 {
			kv = kvs[0]
		}
		r, err := change(kv)
		switch {
		case errors.Is(err, idem.ErrNoPause), errors.Is(err, idem.ErrNotAcknowledged):
			return true, err
		case err != nil:
			return true, commit.Unavailable(err)
		}
		_, applied, err := t.sendWithAudit(ctx, r)
		if err != nil { // it may be applied, and would not be taken for its own
			return true, commit.Unavailable(err)
		}
		return applied, nil
	})
	return t.finishAction(ctx, err)
}

// pauseBatch locks or queue entries are read at a time.
const pauseBatch = 100

// maxPauseLooks is how many locks, and how many queue entries, are looked at for how far pauses
// have come.
const maxPauseLooks = 20_000

// Pauses returns all pauses, in the order in which they began, with how far each has come: all of
// it at one revision. It returns idem.ErrStoreUnavailable.
func (op *Operator) Pauses(ctx context.Context) ([]idem.PauseState, error) {
	answers, revision, err := op.options.Pool.Read(ctx,
		clientv3.OpGet(op.options.Layout.All(protocol.KindPauses), clientv3.WithPrefix()),
		clientv3.OpGet(op.options.Layout.All(protocol.KindSessions), clientv3.WithPrefix()))
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	var states []idem.PauseState
	for _, kv := range answers[0].GetResponseRange().Kvs {
		pause, err := op.options.Layout.PauseAt(kv)
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
				states[i].Unacknowledged = append(states[i].Unacknowledged,
					cmp.Or(holder, strings.TrimPrefix(string(kv.Key), op.options.Layout.All(protocol.KindSessions))))
			}
		}
	}
	for _, prefix := range []string{op.options.Layout.All(protocol.KindLocks),
		op.options.Layout.All(protocol.KindQueue)} {
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
	for kv, err := range op.options.Pool.All(ctx, keys) {
		if err != nil {
			return err
		}
		l, unread := protocol.LockAt(kv)
		looked++
		for i := range states {
			switch {
			case looked > maxPauseLooks, unread != nil:
				// there are more than are looked at, or it is of a newer release
				states[i].More = true
			case l.Route != "" && states[i].Scope.Covers(l.Route, l.Scope.Workflow):
				countOne(&states[i], l, prefix == op.options.Layout.All(protocol.KindQueue))
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
