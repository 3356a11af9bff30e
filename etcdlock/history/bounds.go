package history

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
)

// Bounds are how many keys of a kind are kept whose keys end in what protocol.GroupOf returns.
type Bounds struct {
	Most      int // of each group; the oldest go
	MostOfAll int // of all groups together; the oldest go

	left int // how many there were when they were counted last
}

// deleteExcess deletes what is beyond the bounds, once a twentieth more than the last time may be.
func (b *Bounds) deleteExcess(ctx context.Context, o *Options, kind string) error {
	prefix := o.Layout.All(kind)
	n, err := o.Pool.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	b.left = min(b.left, int(n.Count))
	if int(n.Count) <= b.left+b.Most/20 {
		return nil
	}
	keys := link.Below(prefix, MaxPage)
	keys.KeysOnly = true
	kept, of := 0, map[string]int{}
	var excess protocol.Writes
	for kv, err := range o.Pool.All(ctx, keys) {
		if err != nil {
			return err
		}
		group := protocol.GroupOf(string(kv.Key))
		if of[group] == b.Most || kept == b.MostOfAll {
			excess = append(excess, protocol.DropNote(string(kv.Key)))
			continue
		}
		of[group]++
		kept++
	}
	for len(excess) > 0 && err == nil {
		batch := excess[:min(NoteBatch, len(excess))]
		excess = excess[len(batch):]
		err = o.Pool.CommitParts(ctx, batch)
	}
	if err == nil {
		b.left = kept
	}
	return err
}
