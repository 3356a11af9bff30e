package operate

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// eraseTwins deletes what names an event of that key: first what lets others become one with it, so
// that none does after the others were read, then what its twins are called. It returns the keys
// that are to go with the record, by which it is found until then.
func (t *trail) eraseTwins(ctx context.Context, event idem.Key) (keys []string, err error) {
	alias := t.options.Layout.Alias(event)
	joined := t.options.Layout.Joined(event)
	kvs, _, err := t.options.Pool.Keys(ctx, alias)
	if err != nil || len(kvs) == 0 {
		return nil, err
	}
	if own, err := protocol.DecodeTwin(kvs[0]); err == nil && own.First != "" {
		if err := t.dropFirst(ctx, t.options.Layout.FirstTwin(own.First), event); err != nil {
			return nil, err
		}
	}
	answers, _, err := t.options.Pool.Read(ctx, clientv3.OpGet(joined, clientv3.WithPrefix(), clientv3.WithKeysOnly()))
	if err != nil {
		return nil, err
	}
	for _, kv := range answers[0].GetResponseRange().Kvs {
		twin := t.options.Layout.Alias(protocol.JoinedAt(kv.Key))
		answer := t.options.Sender.Do(ctx, commit.NewRequest(twin, protocol.DropNote(twin), 0))
		if answer.Err != nil {
			return nil, answer.Err
		}
	}
	return []string{alias, joined}, nil
}

// dropFirst deletes the key that names the first event of a body, if it names that event.
func (t *trail) dropFirst(ctx context.Context, key string, event idem.Key) error {
	kvs, _, err := t.options.Pool.Keys(ctx, key)
	if err != nil || len(kvs) == 0 {
		return err
	}
	first, err := protocol.DecodeTwin(kvs[0])
	if err != nil || first.Key != event {
		return err
	}
	answer := t.options.Sender.Do(ctx, commit.NewRequest(key, protocol.DropFirst(key, kvs[0].ModRevision), 0))
	return answer.Err
}
