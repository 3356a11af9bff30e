package history

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// showFirstTwins adds the events that an event ID was taken for, because they came first with the
// same body: on the first page of a query for that ID, as far as the page has room.
func (p *executionPage) showFirstTwins(ctx context.Context) error {
	id := p.query.EventID
	if id == "" {
		id = p.query.SearchText
	}
	if id == "" || p.query.Cursor != "" || p.isFull() {
		return nil
	}
	prefix := p.store.options.Layout.All(protocol.KindAliases) + protocol.Hex16(idem.HashEventID(id))
	answers, _, err := p.store.options.Pool.Read(ctx, clientv3.OpGet(prefix, clientv3.WithPrefix(),
		clientv3.WithLimit(FindValues)))
	if err != nil {
		return err
	}
	q := p.query
	for _, kv := range answers[0].GetResponseRange().Kvs {
		first, err := protocol.DecodeTwin(kv)
		if err != nil || string(kv.Key) == p.store.options.Layout.Alias(first.Key) {
			continue // it is its own event, or a newer release knows what it is
		}
		p.query.EventID, p.query.SearchText, p.query.Key = "", "", string(first.Key)
		var kinds []string
		kinds, p.refused = kindsOf(&p.query)
		for _, kind := range kinds {
			if err == nil {
				err = p.showKind(ctx, kind, beginning)
			}
		}
		if p.query = q; err != nil {
			return err
		}
	}
	return nil
}
