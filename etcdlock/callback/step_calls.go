package callback

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

const (
	// maxSteps bounds the steps of one execution, those of its plan included.
	maxSteps = 1000
	// roomToEnd is how many bytes steps leave free in a lock: for a cancel, and for the next
	// session's name.
	roomToEnd = 16 << 10
)

// Guard says whether an execution may go on with its next step, and proves its token current. step,
// where it is not "", is the one that begins now: the one before is done. plan, where it is not
// nil, is what is meant to follow. It takes one round trip where this process has seen the
// execution before: a read, or with a step a transaction. The error is idem.ErrCancelled or
// idem.ErrFinished, with the execution; idem.ErrStaleToken, idem.ErrLockExpired, idem.ErrLockLost,
// idem.ErrCallbackKey, idem.ErrTooManySteps, idem.ErrNoExecution or idem.ErrStoreUnavailable.
func (s *Callbacks) Guard(ctx context.Context, cb idem.Callback, step string, plan []string) (found *idem.Found,
	err error) {
	l := s.lastSeenOf(cb.Execution)
	if l != nil && (l.Cancel != nil || checkCallback(&cb, &l.ExecutionFacts) != nil) {
		l = nil // only etcd may refuse
	}
	err = s.options.Tasks.Repeat(ctx, func(ctx context.Context) (bool, error) {
		if l == nil {
			_, found, err = s.readCurrentLock(ctx, &cb)
			if err != nil {
				return !errors.Is(err, idem.ErrStoreUnavailable), err
			}
			l = found.Lock
		}
		next, err := s.recordStep(ctx, l, step, plan)
		if next == nil {
			s.guarded.drop(cb.Execution)
			l = nil
			return errors.Is(err, idem.ErrTooManySteps), err
		}
		found = &idem.Found{Lock: next, Revision: next.Revision}
		if s.rememberLock(next); next.Cancel != nil { // it came between
			return true, idem.ErrCancelled
		}
		return true, nil
	})
	return found, err
}

// recordStep puts the step into the lock, and returns that; nil: l is out of date, or etcd gave no
// answer.
func (s *Callbacks) recordStep(ctx context.Context, l *idem.Lock, step string, plan []string) (*idem.Lock, error) {
	next := l.BeginStep(step, plan, s.options.Clock.Now().UTC().Round(time.Millisecond))
	if slices.Equal(next.Steps, l.Steps) && slices.Equal(next.Plan, l.Plan) {
		return s.stillRuns(ctx, l)
	}
	value, err := protocol.EncodeLock(next)
	switch {
	case len(value) > protocol.MaxLockBytes-roomToEnd, len(next.Steps)+len(next.Plan) > maxSteps,
		errors.Is(err, protocol.ErrTooLarge):
		return nil, idem.ErrTooManySteps
	case err != nil:
		return nil, err
	}
	k := s.options.Layout.Keys(l)
	r := commit.NewRequest(k.Lock, protocol.Guard(k, protocol.Revisions{LockCreated: l.Created, Lock: l.Revision},
		protocol.Leased{Value: value}), len(value))
	answer := s.options.Sender.Do(ctx, r)
	if answer.Err != nil || !answer.Succeeded {
		return nil, answer.Err
	}
	next.Revision = answer.Revision
	return next, nil
}

// stillRuns reads the lock and what proves its owner alive.
func (s *Callbacks) stillRuns(ctx context.Context, l *idem.Lock) (*idem.Lock, error) {
	k := s.options.Layout.Keys(l)
	answers, _, err := s.options.Pool.Read(ctx, clientv3.OpGet(k.Lock),
		clientv3.OpGet(k.Alive, clientv3.WithKeysOnly()))
	if err != nil {
		return nil, err
	}
	kv := protocol.First(answers[0])
	if kv == nil || kv.CreateRevision != l.Created || protocol.First(answers[1]) == nil {
		return nil, nil
	}
	if kv.ModRevision == l.Revision {
		return l, nil
	}
	return sameLock(kv, l)
}

// sameLock reads a lock that has changed; nil where it is not that of l any more, or has another
// alive key.
func sameLock(kv *mvccpb.KeyValue, l *idem.Lock) (*idem.Lock, error) {
	now, err := protocol.LockAt(kv)
	if err != nil || now.Execution != l.Execution || now.Cooling || now.Alive != l.Alive {
		return nil, err
	}
	return now, nil
}

// lastSeenOf is the lock of an execution as this process has seen it last; nil = never, or too long
// ago.
func (s *Callbacks) lastSeenOf(id idem.ExecutionID) *idem.Lock {
	if h := s.options.Own.Of(id); h != nil {
		return h.Lock()
	}
	return s.guarded.get(id)
}

// rememberLock keeps a lock for the next guard.
func (s *Callbacks) rememberLock(l *idem.Lock) {
	if h := s.options.Own.Of(l.Execution); h != nil {
		h.See(l)
		return
	}
	s.guarded.put(l)
}

// maxLastSeen is how many locks of others are remembered, where they have few steps: it bounds what
// lockWeight counts.
const maxLastSeen = 4096

// lockWeight is how much room a lock takes, in locks without steps: one with a thousand steps takes
// a hundred times as much.
func lockWeight(l *idem.Lock) int { return 1 + (len(l.Steps)+len(l.Plan))/8 }

// lastSeen are locks as this process has seen them, of executions that others run or that are held.
// They spare a read: what is sent because of one compares its revision.
type lastSeen struct {
	mu     sync.Mutex
	locks  map[idem.ExecutionID]*idem.Lock
	weight int // of all of them
}

func (c *lastSeen) get(id idem.ExecutionID) *idem.Lock {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.locks[id]
}

// put drops others, any of them, when they take too much room.
func (c *lastSeen) put(l *idem.Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.locks == nil {
		c.locks = map[idem.ExecutionID]*idem.Lock{}
	}
	c.removeLocked(l.Execution)
	c.locks[l.Execution] = l
	c.weight += lockWeight(l)
	for id := range c.locks {
		if c.weight <= maxLastSeen {
			return
		}
		if id != l.Execution {
			c.removeLocked(id)
		}
	}
}

func (c *lastSeen) drop(id idem.ExecutionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(id)
}

func (c *lastSeen) removeLocked(id idem.ExecutionID) {
	if l := c.locks[id]; l != nil {
		c.weight -= lockWeight(l)
		delete(c.locks, id)
	}
}
