package history

import (
	"context"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// State is the state around one execution, read at one revision.
type State struct {
	*protocol.State
	ID idem.ExecutionID // the execution that was asked about

	Scope idem.Scope // its workflow and event
	// with the slots of its lock; with A, if it runs: what proves its owner alive; and with C, if a
	// process runs it
	Keys       protocol.Keys
	Hold       int64            // the mod revision of its hold, 0 = it is not held, or dead
	HoldLease  clientv3.LeaseID // of that hold
	Duplicates int64
	// Orphaned: it is parked in its lock, and its process is gone, as far as this process knows.
	Orphaned bool
}

// State reads the state around an execution whose scope is known. The lock has whether it is dead,
// as far as this process knows, and until when it is held. It returns idem.ErrStoreUnavailable.
func (s *Reader) State(ctx context.Context, id idem.ExecutionID, scope idem.Scope) (*State, error) {
	k := s.options.Layout.Keys(&idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: id, Scope: scope}})
	answers, revision, err := s.options.Pool.ReadOps(ctx,
		append(protocol.LockRecordAndQueue(k), link.Read(clientv3.OpGet(k.Hold)), link.Read(s.ReadCounts(id))))
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	st, err := protocol.ReadState(answers, revision)
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	at := &State{State: st, ID: id, Scope: scope, Keys: k}
	at.Duplicates = s.counts.Count(id, answers[readCopies].GetResponseRange().Kvs)
	if st.Lock != nil {
		at.Keys.Slots, at.Keys.Alive = s.options.Layout.SlotsOf(st.Lock), s.options.Layout.Alive(st.Lock.Alive)
	}
	if !at.Runs(id) {
		return at, nil
	}
	at.Keys.Cancel = s.options.Layout.Cancel(st.Lock.Alive, id)
	gone := false
	switch hold := protocol.First(answers[readHold]); {
	case !protocol.IsHold(st.Lock.Alive):
		gone = !s.options.Sessions.Has(st.Lock.Alive)
	case hold == nil:
		gone = true
	default:
		at.Hold, at.HoldLease = hold.ModRevision, clientv3.LeaseID(hold.Lease)
		st.Lock.HoldUntil, _ = protocol.DecodeHold(hold.Value) // for operators only
	}
	// a parked execution that was put down has no owner, even if this process does not know yet
	if gone && (st.Lock.Alive == "" || !s.options.Holds(id)) {
		at.Orphaned, st.Lock.Dead = st.Lock.IsParked(), !st.Lock.IsParked()
	}
	return at, nil
}

// What State reads beyond protocol.LockRecordAndQueue.
const (
	readHold   = protocol.ReadCandidates + 1
	readCopies = protocol.ReadCandidates + 2
)

// Found returns what operators see of it. It returns idem.ErrNoExecution, or
// idem.ErrStoreUnavailable if a value cannot be read.
func (at *State) Found() (*idem.Found, error) {
	f := &idem.Found{Revision: at.Revision, Duplicates: at.Duplicates}
	switch {
	case at.Runs(at.ID):
		f.Lock = at.Lock
	case at.Waits(at.ID):
		f.Lock, f.InQueue = at.Copied, true
	case at.Ended(at.ID) != nil:
		f.Record = at.Record
	default:
		if f.Short, f.Later = at.earlierAttempt(); f.Short == nil && at.Unread != nil {
			return nil, commit.Unavailable(at.Unread)
		}
		if f.Short == nil {
			return nil, idem.ErrNoExecution
		}
		f.ShortOf = at.Scope
	}
	return f, nil
}

// earlierAttempt returns the execution in short, if its event has run again since, and the entry
// that has it.
func (at *State) earlierAttempt() (*idem.Attempt, *idem.ExecutionFacts) {
	for _, l := range []*idem.Lock{at.Lock, at.Copied, at.Other} {
		if l != nil {
			if a := findAttempt(l.Earlier, at.ID); a != nil {
				return a, &l.ExecutionFacts
			}
		}
	}
	if at.Record != nil {
		if a := findAttempt(at.Record.Earlier, at.ID); a != nil {
			return a, &at.Record.ExecutionFacts
		}
	}
	return nil, nil
}

// newestExecution returns the newest execution of an event: the one that runs, waits, or has ended.
// The zero value = there is none.
func newestExecution(st *protocol.State, event idem.Key) (f idem.Found) {
	switch runs := st.CopyRuns(event); {
	case runs != nil:
		f.Lock = runs
	case st.Copied != nil:
		f.Lock, f.InQueue = st.Copied, true
	case st.Record != nil:
		f.Record = st.Record
	}
	return f
}

// Attempts returns all executions of the event in short, the oldest first: the newest has those
// before it.
func (at *State) Attempts() []idem.Attempt {
	f := newestExecution(at.State, at.Scope.Key)
	switch l := f.Lock; {
	case l != nil:
		return append(slices.Clone(l.Earlier), idem.Attempt{
			Execution: l.Execution, Status: f.Status(), StartedAt: l.StartedAt, Abort: l.Cancel,
			TraceParent: l.TraceParent,
		})
	case f.Record != nil:
		return append(slices.Clone(f.Record.Earlier), f.Record.AsAttempt())
	}
	return nil
}
