package park

import (
	"context"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

const indexPage = 1000

// follower keeps an Index as etcd has it.
type follower struct {
	link.Needed
	index *Index
}

func (f *follower) run(ctx context.Context) {
	(&link.Reflector{Pool: f.index.options.Pool, On: link.OfWaits, Source: f}).Run(ctx, 0)
}

// List reads the whole index. It returns the error of ctx.
func (f *follower) List(ctx context.Context) (int64, error) {
	seen := map[idem.ExecutionID]*entry{}
	young := map[idem.ExecutionID]bool{}
	index := link.Below(f.index.options.Layout.All(protocol.KindParked), indexPage)
	ages := link.Below(f.index.options.Layout.All(protocol.KindAges), indexPage)
	err := f.forEachKey(ctx, index, func(id idem.ExecutionID, kv *mvccpb.KeyValue) {
		if e := f.decodeEntry(id, kv); e != nil {
			seen[id] = e
		}
	})
	if ages.Revision = index.Revision; err == nil {
		err = f.forEachKey(ctx, ages, func(id idem.ExecutionID, _ *mvccpb.KeyValue) { young[id] = true })
	}
	switch {
	case ctx.Err() != nil:
		return 0, err
	case err != nil: // the revision is compacted
		return f.List(ctx)
	}
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	for id := range f.index.known.entries {
		if seen[id] == nil {
			f.index.known.drop(id)
		}
	}
	for id, e := range seen {
		if e.old = !young[id]; f.index.known.entries[id] != nil {
			e.spared = f.index.known.entries[id].spared
		}
		f.index.known.markSpared(e)
		f.putLocked(e)
	}
	f.index.makeAllReadyLocked()
	return index.Revision, nil
}

// forEachKey calls f for the keys of a scan, which end with the ID of an execution.
func (f *follower) forEachKey(ctx context.Context, keys *link.Scan,
	call func(idem.ExecutionID, *mvccpb.KeyValue)) error {
	prefix := keys.From
	for kv, err := range f.index.options.Pool.All(ctx, keys) {
		if err != nil {
			return err
		}
		call(idem.ExecutionID(strings.TrimPrefix(string(kv.Key), prefix)), kv)
	}
	return nil
}

// decodeEntry returns nil for a value of a newer release.
func (f *follower) decodeEntry(id idem.ExecutionID, kv *mvccpb.KeyValue) *entry {
	v, err := protocol.DecodeIndex(kv.Value)
	if err != nil {
		return nil
	}
	v.Execution = id
	return &entry{ParkedEntry: *v, lock: f.index.options.Layout.Lock(v.Scope), revision: kv.ModRevision}
}

// Watches implements link.Source.
func (f *follower) Watches(from int64) []link.Watch {
	watch := func(prefix string, changed func(id idem.ExecutionID, e *clientv3.Event)) link.Watch {
		return link.Watch{Key: prefix, Opts: []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithRev(from)},
			News: func(e *clientv3.Event) {
				changed(idem.ExecutionID(strings.TrimPrefix(string(e.Kv.Key), prefix)), e)
			}}
	}
	return []link.Watch{watch(f.index.options.Layout.All(protocol.KindParked), f.applyEntry),
		watch(f.index.options.Layout.All(protocol.KindAges), f.applyAge)}
}

func (f *follower) applyEntry(id idem.ExecutionID, e *clientv3.Event) {
	f.index.mu.Lock()
	if e.Type == clientv3.EventTypeDelete {
		f.index.known.drop(id)
	} else if in := f.decodeEntry(id, e.Kv); in != nil {
		if before := f.index.known.entries[id]; before != nil {
			in.old, in.spared = before.old, before.spared // until its age is put again
		}
		f.putLocked(in)
		f.index.ready.addQueue(f.index.known.queues[in.lock])
	}
	f.index.mu.Unlock()
	f.index.options.OnParkedChange(id)
}

// applyAge is called with a change of an age key: if that is gone while the entry is there, the
// execution is too old.
func (f *follower) applyAge(id idem.ExecutionID, e *clientv3.Event) {
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	in := f.index.known.entries[id]
	if in == nil {
		return
	}
	if in.old, in.spared = e.Type == clientv3.EventTypeDelete, false; in.old {
		f.index.known.markSpared(in)
		f.index.ready.addQueue(f.index.known.queues[in.lock])
	}
}

func (f *follower) putLocked(e *entry) {
	if f.index.known.put(e) {
		f.index.options.OnFirstParked()
	}
}
