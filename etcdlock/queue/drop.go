package queue

import (
	"context"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// DropRecord is that of idem.Ledger.
func (s *Entries) DropRecord(r *idem.Record) {
	k, at := s.options.Layout.Keys(&idem.Lock{ExecutionFacts: r.ExecutionFacts}), protocol.Revisions{Record: r.Revision}
	s.options.Tasks.Help(func(life context.Context) {
		for pause := link.NewBackoff(); at.Record != 0; {
			news, err := s.options.Leases.Notice(life, commit.NoticeLife)
			if err == nil {
				dropping := commit.NewRequest(k.Lock, protocol.Forget(k, at, news, nil, false), len(news.Value))
				dropping.SharedLease = news.Lease
				err = s.options.Sender.Do(life, dropping).Err
				s.options.Leases.DropIfGone(news.Lease, err)
			}
			if err == nil || pause.Wait(life) != nil {
				return
			}
		}
	})
}
