package etcdlock

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

// letterRound is how often this process looks whether the records of dead letters are still there. A record goes with its lease, or because
// somebody forgets it; what was kept with it is dropped then.
const letterRound = 10 * time.Minute

func (p *lines) sweepRound(ctx context.Context) {
	for link.Sleep(ctx, letterRound) == nil {
		_ = p.sweepLetters(ctx) // the next round does what is left
	}
}

// sweepLetters drops the requests whose records are gone, or are another execution's. The transaction that wrote the record wrote the index entry,
// too, and nothing changes either: so they have one revision as long as they belong together.
func (p *lines) sweepLetters(ctx context.Context) error {
	s := p.store
	for some := range slices.Chunk(p.deadLetters(), link.MaxReads) {
		ops := make([]clientv3.Op, len(some))
		for i, e := range some {
			ops[i] = clientv3.OpGet(s.layout.Record(e.Scope), clientv3.WithKeysOnly())
		}
		answers, _, err := s.pool.ReadEach(ctx, ops)
		if err != nil {
			return err
		}
		for i, e := range some {
			at := protocol.Seen{}
			if kv := protocol.First(answers[i]); kv != nil {
				at.Prev = kv.ModRevision
			}
			if at.Prev == e.revision {
				continue
			}
			k := s.layout.Keys(&idem.Lock{Entry: idem.Entry{Execution: e.Execution, Scope: e.Scope}})
			if !s.tasks.Enter() { // the sender is about to close, and takes nothing then
				return commit.ErrClosed
			}
			answer := s.sender.Do(ctx, commit.NewRequest(k.L, protocol.SweepLetter(k, at), 0))
			s.tasks.Leave()
			if answer.Err != nil {
				return answer.Err
			}
		}
	}
	return nil
}

func (p *lines) deadLetters() (all []entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.entries {
		if e.State == idem.ParkDeadLetter {
			all = append(all, *e)
		}
	}
	return all
}
