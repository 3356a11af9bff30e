package etcdlock

import (
	"context"
	"errors"
	"strings"

	"hooklock/etcdlock/protocol"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// watch follows the sessions, the forgets, the own cancels and the ends of holds from after revision, until ctx ends. One key for each
// process is all that it sees in quiet times, so this costs the same however many deliveries there are.
func (k *keeper) watch(ctx context.Context, s *session, revision int64) {
	for ctx.Err() == nil {
		if err := k.follow(ctx, s, revision); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
			_ = sleep(ctx, brokenPause) // refused, and the next one would be refused at once, too
		}
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

// follow returns when the watch breaks: compacted, without a leader, or at a member that has stopped to answer. The error is etcd's.
func (k *keeper) follow(ctx context.Context, s *session, revision int64) error {
	client, at, err := k.pool.current()
	if err != nil {
		k.pool.failover(at)
		return err
	}
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	// A watch at a member that hangs does not even begin: it has to be broken off from outside.
	left := k.pool.left(at)
	k.wg.Go(func() {
		select {
		case <-left:
			cancel()
		case <-ctx.Done():
		}
	})
	sessions := client.Watch(ctx, k.layout.Sessions(), clientv3.WithPrefix(), clientv3.WithRev(revision+1))
	forgets := client.Watch(ctx, k.layout.Forgets(), clientv3.WithPrefix(), clientv3.WithRev(revision+1), clientv3.WithFilterDelete())
	cancels := client.Watch(ctx, k.layout.Cancels(s.name), clientv3.WithPrefix(), clientv3.WithRev(revision+1), clientv3.WithFilterDelete())
	holds := client.Watch(ctx, k.layout.Root+protocol.KindHolds, clientv3.WithPrefix(), clientv3.WithRev(revision+1), clientv3.WithFilterPut())
	for {
		select {
		case news, ok := <-sessions:
			if !ok || news.Err() != nil {
				return news.Err()
			}
			for _, e := range news.Events {
				k.sessionChanged(s, e)
			}
		case news, ok := <-forgets:
			if !ok || news.Err() != nil {
				return news.Err()
			}
			for _, e := range news.Events {
				k.forgot(strings.TrimPrefix(string(e.Kv.Key), k.layout.Forgets()))
			}
		case news, ok := <-cancels:
			if !ok || news.Err() != nil {
				return news.Err()
			}
			for _, e := range news.Events {
				k.asked(strings.TrimPrefix(string(e.Kv.Key), k.layout.Cancels(s.name)))
			}
		case news, ok := <-holds:
			if !ok || news.Err() != nil {
				return news.Err()
			}
			for _, e := range news.Events {
				k.unheld(strings.TrimPrefix(string(e.Kv.Key), k.layout.Root+protocol.KindHolds))
			}
		case <-ctx.Done():
			return nil
		}
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

// list asks until it gets an answer: who is there, and what this process was asked to look at. The error is the context's.
func (k *keeper) list(ctx context.Context, s *session) (map[string]struct{}, int64, error) {
	for pause := newBackoff(); ; {
		var response *clientv3.TxnResponse
		err := k.pool.try(ctx, attemptTimeout, func(ctx context.Context, c *clientv3.Client) (err error) {
			response, err = c.Txn(ctx).Then(
				clientv3.OpGet(k.layout.Sessions(), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
				clientv3.OpGet(k.layout.Cancels(s.name), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
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
			return names, response.Header.Revision, nil
		}
		if err := pause.wait(ctx); err != nil {
			return nil, 0, err
		}
	}
}
