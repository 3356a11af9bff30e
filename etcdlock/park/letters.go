package park

import (
	"context"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// letterRound is how often this process looks whether the records of dead letters are still there.
// A record goes with its lease, or when it is forgotten; the request of the dead letter is dropped
// then.
const letterRound = 10 * time.Minute

func (x *Index) sweepRound(ctx context.Context) {
	for link.Sleep(ctx, letterRound) == nil {
		_ = x.SweepDeadLetters(ctx) // the next round does what is left
	}
}

// SweepDeadLetters drops the requests whose records are gone, or are another execution's. The
// transaction that wrote the record wrote the index entry, too, and nothing changes either: so they
// have one revision as long as they belong together. It returns commit.ErrClosed after the tasks
// have ended.
func (x *Index) SweepDeadLetters(ctx context.Context) error {
	for some := range slices.Chunk(x.deadLetters(), link.MaxReads) {
		ops := make([]clientv3.Op, len(some))
		for i, e := range some {
			ops[i] = clientv3.OpGet(x.options.Layout.Record(e.Scope), clientv3.WithKeysOnly())
		}
		answers, _, err := x.options.Pool.ReadEach(ctx, ops)
		if err != nil {
			return err
		}
		for i, e := range some {
			at := protocol.Revisions{}
			if kv := protocol.First(answers[i]); kv != nil {
				at.Record = kv.ModRevision
			}
			if at.Record == e.revision {
				continue
			}
			k := x.options.Layout.Keys(&idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: e.Execution,
				Scope: e.Scope}})
			if !x.options.Tasks.Enter() { // the sender is about to close, and takes nothing then
				return commit.ErrClosed
			}
			answer := x.options.Sender.Do(ctx, commit.NewRequest(k.Lock, protocol.SweepLetter(k, at), 0))
			x.options.Tasks.Leave()
			if answer.Err != nil {
				return answer.Err
			}
		}
	}
	return nil
}

func (x *Index) deadLetters() (all []entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.known.entries {
		if e.State == idem.ParkDeadLetter {
			all = append(all, *e)
		}
	}
	return all
}
