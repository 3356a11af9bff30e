package queue

import (
	"context"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Drop is that of idem.Ledger.
func (s *Entries) Drop(r *idem.Record) {
	k, at := s.o.Layout.Keys(&idem.Lock{Entry: r.Entry}), protocol.Revisions{Record: r.Revision}
	s.o.Tasks.Help(func(life context.Context) {
		for pause := link.NewBackoff(); at.Record != 0; {
			news, err := s.o.Leases.Notice(life, commit.NoticeLife)
			if err == nil {
				dropping := commit.NewRequest(k.Lock, protocol.Forget(k, at, news, nil, false), len(news.Value))
				dropping.SharedLease = news.Lease
				err = s.o.Sender.Do(life, dropping).Err
				s.o.Leases.DropIfGone(news.Lease, err)
			}
			if err == nil || pause.Wait(life) != nil {
				return
			}
		}
	})
}
