// Package callback answers what is asked with the key of an execution, at any process: its upstream
// goes on, renews or ends it, and a client of the lock API takes, renews and releases a lock.
package callback

import (
	"context"
	"crypto/subtle"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/claim"
	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/locker"
	"hooklock/etcdlock/owned"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/reap"
	"hooklock/idem"
)

// Options are what callbacks work with.
type Options struct {
	Claims   *claim.Claims    // take locks
	Locks    *locker.Locks    // take locks of the lock API
	Pool     *link.Pool       // reads and watches etcd
	Sender   *commit.Sender   // sends the transactions
	Tasks    *commit.Tasks    // run in the background; Store.Close waits for them
	Layout   protocol.Layout  // spells the keys
	Clock    link.Clock       // measures elapsed time
	Finisher *finish.Finisher // ends executions
	Reader   *history.Reader  // reads executions and locks
	Reaper   *reap.Reaper     // ends executions whose owner is dead
	Own      *owned.Locks     // the locks of this process
}

// Callbacks are what the upstream of an execution, or a client of the lock API, asks with its
// callback key, at any process. They are safe for concurrent use.
type Callbacks struct {
	options *Options
	guarded lastSeen
}

// New returns callbacks.
func New(o *Options) *Callbacks { return &Callbacks{options: o} }

// checkCallback says why cb may not speak for the execution of e, or nil. The upstream of a lock
// that covers one event alone is given no token, because that would fence nothing, and need show
// none.
func checkCallback(cb *idem.Callback, e *idem.ExecutionFacts) error {
	switch {
	case !cb.AnyKey && (e.CallbackHash == "" || subtle.ConstantTimeCompare([]byte(idem.HashCallbackKey(cb.Key)),
		[]byte(e.CallbackHash)) != 1):
		return idem.ErrCallbackKey
	case cb.Workflow != "" && cb.Workflow != e.Workflow:
		return idem.ErrNoExecution
	case e.PerEvent && cb.Token == 0:
		return nil
	case e.Token == 0 || cb.Token != e.Token:
		return idem.ErrStaleToken
	}
	return nil
}

// howItEnded is what a callback about an ended execution gets.
func howItEnded(r *idem.Record) error {
	switch {
	case r.Error != nil && r.Error.Code == finish.CodeHoldExpired:
		return idem.ErrLockExpired
	case r.Error != nil && r.Error.Code == finish.CodeLockLost, r.Abort != nil && r.Abort.Forced:
		return idem.ErrLockLost
	}
	return idem.ErrFinished
}

// readCurrentLock reads the lock that cb may speak for, alive as far as this process knows; with
// idem.ErrCancelled where it was asked to stop. Other errors are those of a callback; the execution
// comes with them where cb is its own.
func (s *Callbacks) readCurrentLock(ctx context.Context, cb *idem.Callback) (*history.State, *idem.Found, error) {
	scope, err := s.options.Reader.Scope(ctx, cb.Execution)
	if err != nil {
		return nil, nil, err
	}
	for {
		at, err := s.options.Reader.State(ctx, cb.Execution, scope)
		if err != nil {
			return nil, nil, err
		}
		found, err := at.Found()
		switch {
		case err != nil:
			return nil, nil, err
		case found.Short != nil: // its event has run again, and its key is not known any more
			return nil, nil, idem.ErrStaleToken
		}
		if err := checkCallback(cb, found.Facts()); err != nil {
			return nil, nil, err
		}
		switch l := found.Lock; {
		case found.Record != nil:
			return at, found, howItEnded(found.Record)
		case l.Dead:
			if err := s.options.Reaper.Reap(ctx, l); err != nil {
				return nil, nil, err
			}
		case l.Cancel != nil:
			return at, found, idem.ErrCancelled
		default:
			return at, found, nil
		}
	}
}

// Heartbeat says that the work of a held execution goes on: it is held for ttl from now; 0 = for as
// long as it was held at first. MaxDuration bounds it. Where a process still runs it there is
// nothing to extend. A callback that names its workflow is a client of the lock API, which renews
// its lock: it may not renew a delivery's (idem.ErrLockHeld), and what has ended is
// idem.ErrLockLost to it. The error is idem.ErrCancelled, with the execution, which is not extended
// then; idem.ErrFinished, with how it ended; idem.ErrStaleToken, idem.ErrLockExpired,
// idem.ErrLockLost, idem.ErrCallbackKey, idem.ErrNoExecution or idem.ErrStoreUnavailable.
func (s *Callbacks) Heartbeat(ctx context.Context, cb idem.Callback, ttl time.Duration) (found *idem.Found, err error) {
	err = s.options.Tasks.Repeat(ctx, func(ctx context.Context) (bool, error) {
		var at *history.State
		at, found, err = s.readCurrentLock(ctx, &cb)
		switch {
		case errors.Is(err, idem.ErrStoreUnavailable):
			return false, err
		case err != nil && cb.Workflow != "":
			return true, asClient(err)
		case err != nil:
			return true, err
		case cb.Workflow != "" && !ofLockAPI(at.Lock):
			return true, idem.ErrLockHeld
		case !at.Lock.Held:
			return true, nil
		}
		left, err := s.options.Finisher.TimeLeft(ctx, at.Lock)
		if left <= 0 { // it has reached its MaxDuration, and nothing extends it any more; or the time left is unknown
			return err == nil, err
		}
		found, err = s.renewHold(ctx, at, ttl, left)
		return found != nil, err
	})
	return found, err
}

// renewHold puts the hold of at on a new lease, for left at most. Without an answer, and after a
// refusal, found is nil.
func (s *Callbacks) renewHold(ctx context.Context, at *history.State, ttl, left time.Duration) (found *idem.Found,
	err error) {
	if ttl == 0 {
		ttl = at.Lock.HoldTTL
	}
	alive, until, err := s.options.Finisher.NewHold(ctx, at.Lock, min(ttl, left))
	if err != nil {
		return nil, err
	}
	r := commit.NewRequest(at.Keys.Lock,
		protocol.Heartbeat(at.Keys, protocol.Revisions{LockCreated: at.Lock.Created, Hold: at.Hold}, alive),
		len(alive.Value))
	r.OwnLeases, r.Unbatched = []clientv3.LeaseID{alive.Lease}, true
	answer := s.options.Sender.Do(ctx, r)
	if answer.Err != nil || !answer.Succeeded {
		return nil, answer.Err
	}
	// Nothing that is still on its way can use the lease before: it would compare the revision of
	// the hold that was on it.
	s.options.Sender.Drop(at.HoldLease)
	kv := protocol.First(answer.Responses[1]) // after the write
	if kv == nil {
		return nil, nil
	}
	l, err := protocol.LockAt(kv)
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	l.HoldUntil = until
	found = &idem.Found{Lock: l, Revision: answer.Revision, Duplicates: at.Duplicates}
	if l.Cancel != nil {
		return found, idem.ErrCancelled
	}
	return found, nil
}

// Complete ends an execution as its upstream says. One that still waits for the first answer may be
// completed, too. A cancel that was asked does not change what is known: the work was done. The
// error is idem.ErrFinished, with how it had ended; idem.ErrStaleToken, idem.ErrLockExpired,
// idem.ErrLockLost, idem.ErrCallbackKey, idem.ErrNoExecution or idem.ErrStoreUnavailable.
func (s *Callbacks) Complete(ctx context.Context, cb idem.Callback, final idem.Final) (found *idem.Found, err error) {
	err = s.options.Tasks.Repeat(ctx, func(ctx context.Context) (bool, error) {
		var at *history.State
		at, found, err = s.readCurrentLock(ctx, &cb)
		switch {
		case errors.Is(err, idem.ErrStoreUnavailable):
			return false, err
		case err != nil && !errors.Is(err, idem.ErrCancelled):
			return true, err
		}
		record, err := s.options.Own.OnBehalf(*at.Lock, at.Keys).Complete(ctx,
			endOf(at.Lock, final, s.options.Clock.Now()))
		switch {
		case errors.Is(err, idem.ErrLockLost) && record != nil:
			found, err = &idem.Found{Record: record, Revision: record.Revision, Duplicates: at.Duplicates},
				howItEnded(record)
		case err != nil:
			found = nil
		default:
			found = &idem.Found{Record: record, Revision: record.Revision, Duplicates: at.Duplicates}
			if at.Lock.Held { // otherwise the first answer is under way, and its delivery tells
				s.options.Own.OnEnded(record, true)
			}
		}
		return true, err
	})
	if errors.Is(err, idem.ErrNotRecorded) {
		return nil, commit.Unavailable(err)
	}
	return found, err
}

// endOf is the end of a held execution as its upstream tells it. Only SUCCESS settles the event.
func endOf(l *idem.Lock, f idem.Final, now time.Time) idem.End {
	end := idem.End{Status: f.Status, Outcome: idem.Executed, FinishedAt: now, Remembered: f.Status == idem.Success,
		Error: f.Error}
	if f.Answer != nil {
		a := *f.Answer
		a.Bytes, a.Whole = int64(len(a.Body)), end.Remembered && len(a.Body) <= l.ReplayBody
		if !a.Whole {
			a.Header, a.Body = nil, nil
		}
		end.Answer = &a
	}
	switch {
	case end.Remembered && end.Answer == nil:
		end.Answer = &idem.Answer{Status: 200, Whole: true}
	case !end.Remembered && end.Error == nil:
		end.Error = &idem.Failure{Code: string(idem.DecisionUpstreamFailed),
			Detail: "the upstream said that it failed, and gave no reason"}
	}
	if end.Remembered {
		end.Error = nil
	}
	return end
}
