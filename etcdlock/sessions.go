package etcdlock

import (
	"context"
	"strings"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// watch follows the sessions, the pauses, the forgets, the own cancels and the ends of holds from after revision, until ctx ends. One key for each
// process is all that it sees in quiet times, so this costs the same however many deliveries there are.
func (k *keeper) watch(ctx context.Context, s *session, revision int64) {
	for {
		_ = k.pool.Watch(ctx, link.OfSession, k.watches(s, revision)...) // whatever it was, what came meanwhile is read
		if ctx.Err() != nil {
			return
		}
		k.blind()
		names, at, err := k.list(ctx, s)
		if err != nil {
			return // ctx has ended
		}
		revision = at
		k.died(k.live.replace(names, at))
		if _, there := names[s.name]; !there {
			s.end(errSessionGone)
			return
		}
	}
}

func (k *keeper) watches(s *session, revision int64) []link.Watch {
	below := func(prefix string, news func(name string), but ...clientv3.OpOption) link.Watch {
		return link.Watch{Key: prefix, Opts: append(but, clientv3.WithPrefix(), clientv3.WithRev(revision+1)), News: func(e *clientv3.Event) {
			news(strings.TrimPrefix(string(e.Kv.Key), prefix))
		}}
	}
	sessions := below(k.layout.Sessions(), nil)
	sessions.News = func(e *clientv3.Event) { k.sessionChanged(s, e) }
	pauses := below(k.layout.Pauses(), nil)
	pauses.Batch = k.pauses.events
	return []link.Watch{
		sessions,
		pauses,
		below(k.layout.Forgets(), k.forgot, clientv3.WithFilterDelete()),
		below(k.layout.Cancels(s.name), k.asked, clientv3.WithFilterDelete()),
		below(k.layout.Root+protocol.KindHolds, k.unheld, clientv3.WithFilterPut()),
	}
}

func (k *keeper) sessionChanged(s *session, e *clientv3.Event) {
	name := strings.TrimPrefix(string(e.Kv.Key), k.layout.Sessions())
	switch {
	case e.Type != mvccpb.DELETE:
		k.live.appeared(name, e.Kv.ModRevision)
	case name == s.name:
		k.live.disappeared(name, e.Kv.ModRevision)
		s.end(errSessionGone)
	default:
		k.live.disappeared(name, e.Kv.ModRevision)
		k.died([]string{name})
	}
}

// list asks until it gets an answer: who is there, what is paused, and what this process was asked to look at. The error is the context's.
func (k *keeper) list(ctx context.Context, s *session) (map[string]struct{}, int64, error) {
	for pause := link.NewBackoff(); ; {
		var response *clientv3.TxnResponse
		err := k.pool.Try(ctx, link.AttemptTimeout, func(ctx context.Context, c *clientv3.Client) (err error) {
			response, err = c.Txn(ctx).Then(
				clientv3.OpGet(k.layout.Sessions(), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
				clientv3.OpGet(k.layout.Cancels(s.name), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
				clientv3.OpGet(k.layout.Pauses(), clientv3.WithPrefix()),
			).Commit()
			return err
		})
		if err == nil {
			names := map[string]struct{}{}
			for _, kv := range response.Responses[0].GetResponseRange().Kvs {
				names[strings.TrimPrefix(string(kv.Key), k.layout.Sessions())] = struct{}{}
			}
			for _, kv := range response.Responses[1].GetResponseRange().Kvs {
				k.asked(strings.TrimPrefix(string(kv.Key), k.layout.Cancels(s.name)))
			}
			k.pauses.replace(response.Responses[2].GetResponseRange().Kvs, response.Header.Revision)
			return names, response.Header.Revision, nil
		}
		if err := pause.Wait(ctx); err != nil {
			return nil, 0, err
		}
	}
}
