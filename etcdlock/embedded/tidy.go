package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"hooklock/etcdlock/link"
)

// Space is how full the database is.
type Space struct {
	Size int64 // of its file, bytes; etcd compares this with the quota
	// bytes of the file that hold something; the rest is used again, and only a defragmentation
	// gives it back
	InUse int64
	Quota int64 // bytes
	// Growth is by how many bytes an hour what is in use grew in the last day, or since the start;
	// GrowthKnown is false in the first 20 minutes.
	Growth      float64
	GrowthKnown bool
	// Full says that etcd takes no more writes: its alarm NOSPACE is raised.
	Full bool
	// Deleted says that its files were deleted or replaced: what is recorded, and what still will
	// be, is lost when this process ends.
	Deleted bool
}

// String is for operators.
func (s Space) String() string {
	database := link.Space{Size: s.Size, InUse: s.InUse, Quota: s.Quota, Full: s.Full}
	text := "the database has " + database.Text()
	if s.GrowthKnown {
		text += database.GrowthText(s.Growth)
	}
	if s.Full {
		text += "; it is full, and nothing new is taken until records have expired or etcd.embedded.quota is raised"
	}
	if s.Deleted {
		text += "; its files were deleted, and what is recorded is lost when this process ends: hooklock embedded " +
			"backup copies it now"
	}
	return text
}

// reclaimableBytes returns how many bytes a defragmentation would give back.
func (s Space) reclaimableBytes() int64 { return s.Size - s.InUse }

// isNearlyFull reports whether the file has so little room left that history has to go at once.
func (s Space) isNearlyFull() bool { return s.Size >= s.Quota/4*3 }

// shouldDefragment reports whether to defragment, during which etcd answers no request. Before the
// alarm it must be short, so little may be in use. Under the alarm nothing can get worse, but it
// must help for a while.
func (s Space) shouldDefragment() bool {
	return s.reclaimableBytes() >= s.Quota/2 || s.Full && s.reclaimableBytes() >= s.Quota/10
}

// hasRoom reports whether the alarm can be disarmed.
func (s Space) hasRoom() bool { return s.Size <= s.Quota/10*9 }

const (
	defaultTidyEvery = time.Second
	// tidyRest is the number of looks from one compaction to the next while there is room for
	// writes: if the records themselves fill the quota, each compaction reads all of them and frees
	// nothing.
	tidyRest = 30
	// maxHistory is the number of revisions after which history goes: for a read of a workflow's
	// queue, etcd looks at each entry that was removed since the last compaction, 0.1 µs each, and
	// a hot workflow leaves a thousand a second.
	maxHistory = 20_000
	// A compaction reads all that is in use, so a large database needs one revision for each
	// inUsePerRevision bytes first: with a million records a compaction takes seconds of CPU, and
	// those of etcd itself, every five minutes, have to do.
	inUsePerRevision = 8 << 10
	// recentLooks is for how many looks, at least, history is kept for watches that are behind: a
	// watch whose history is gone begins anew.
	recentLooks = 10
)

// tidier makes room in a database that only this process can reach: near the quota, and if history
// is long, it compacts what etcd's own compaction would keep for some minutes, defragments, and
// disarms the alarm when there is room again.
type tidier struct {
	server  *etcdserver.EtcdServer
	client  *clientv3.Client
	quota   int64
	history int64 // revisions, see maxHistory
	log     *slog.Logger
	files   files

	looks  int   // since recent was noted
	recent int64 // a revision that is recentLooks to twice as many looks old
	newest int64 // the one that comes after it

	rest      int   // looks until the next compaction
	compacted int64 // revision of the last one

	// copying is held for reading by snapshots: a defragmentation waits for them, and everything
	// else for the defragmentation.
	copying sync.RWMutex

	now func() time.Time

	mu     sync.Mutex
	last   Space
	growth link.Growth
}

// run looks at once, and at each tick until ctx ends.
func (t *tidier) run(ctx context.Context, tick <-chan time.Time) {
	for said := ""; ; {
		text := ""
		if err := t.tidyOnce(ctx); err != nil && ctx.Err() == nil {
			text = err.Error()
		}
		if text != "" && text != said {
			t.log.Warn("etcd.tidy", "error", text)
		}
		said = text
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
	}
}

// tidyOnce does what is needed now. A compaction frees pages in the background; the looks after it
// find them.
func (t *tidier) tidyOnce(ctx context.Context) error {
	if t.isDirLost() { // etcd would panic at the first file that it cannot create
		return nil
	}
	s := t.measureSpace()
	if !s.Full && !s.isNearlyFull() {
		t.rest = 0
		return t.compactHistory(ctx, s)
	}
	if t.rest--; t.rest < 0 || s.Full {
		if err := t.compactTo(ctx, t.server.KV().Rev()); err != nil {
			return err
		}
	}
	t.commitFreedPages()
	if s = t.measureSpace(); s.shouldDefragment() {
		if err := t.defragment(); err != nil {
			return err
		}
	}
	if s = t.measureSpace(); s.Full && s.hasRoom() {
		return t.disarmAlarms(ctx)
	}
	return nil
}

// isDirLost reports, and logs once, that the directory was deleted or replaced. The open files
// work, on the disk as well, for as long as this process lives, and no other process can ever read
// them.
func (t *tidier) isDirLost() bool {
	switch {
	case t.lastSpace().Deleted:
		return true
	case t.files.inPlace():
		return false
	}
	t.mu.Lock()
	t.last.Deleted = true
	t.mu.Unlock()
	t.log.Error("etcd.deleted", "advice", "its files were deleted or replaced under it: what is recorded is lost "+
		"when this process ends, which will be soon, "+
		"so nothing is parked any more; hooklock embedded backup copies it now, and hooklock embedded restore "+
		"brings it back; where admin.token was deleted, too, add a token with "+
		"the scopes read and write to admin.tokens, reload with SIGHUP, and name its file with --token-file")
	return true
}

// measureSpace reads how full the database is, and logs when it has become full.
func (t *tidier) measureSpace() Space {
	backend := t.server.Backend()
	s := Space{Size: backend.Size(), InUse: backend.SizeInUse(), Quota: t.quota, Full: len(t.spaceAlarms()) > 0}
	t.mu.Lock()
	before := t.last
	t.growth.Note(t.now(), s.InUse)
	s.Growth, s.GrowthKnown = t.growth.AnHour()
	t.last = s
	t.mu.Unlock()
	if s.Full && !before.Full {
		t.log.Error("etcd.full", "size", s.Size, "in_use", s.InUse, "quota", s.Quota)
	}
	return s
}

func (t *tidier) lastSpace() Space {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// spaceAlarms returns the alarms that stop writes. After a restore they are of the member that was
// backed up.
func (t *tidier) spaceAlarms() []*pb.AlarmMember {
	return slices.DeleteFunc(t.server.Alarms(), func(a *pb.AlarmMember) bool { return a.Alarm != pb.AlarmType_NOSPACE })
}

// compactHistory compacts history that has become long, up to some looks ago.
func (t *tidier) compactHistory(ctx context.Context, s Space) error {
	if t.looks++; t.looks > recentLooks {
		t.looks, t.recent, t.newest = 1, t.newest, t.server.KV().Rev()
	}
	if t.recent-t.server.KV().FirstRev() < max(t.history, s.InUse/inUsePerRevision) {
		return nil
	}
	return t.compactTo(ctx, t.recent)
}

func (t *tidier) compactTo(ctx context.Context, revision int64) error {
	if revision == t.compacted || t.isCompacting() {
		return nil
	}
	// by etcd itself
	if _, err := t.client.Compact(ctx, revision); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact: %w", err)
	}
	t.rest, t.compacted = tidyRest, revision
	return nil
}

// isCompacting reports whether the last compaction is still at work: another one would wait behind
// it, and read everything again.
func (t *tidier) isCompacting() bool {
	tx := t.server.Backend().ReadTx()
	tx.RLock()
	defer tx.RUnlock()
	scheduled, _ := mvcc.UnsafeReadScheduledCompact(tx)
	finished, _ := mvcc.UnsafeReadFinishedCompact(tx)
	return finished < scheduled
}

// commitFreedPages commits a change of nothing: a page that was freed is counted as free one commit
// later, and under the alarm there are no other writes.
func (t *tidier) commitFreedPages() {
	backend := t.server.Backend()
	tx := backend.BatchTx()
	tx.LockOutsideApply()
	if revision, found := mvcc.UnsafeReadScheduledCompact(tx); found {
		mvcc.UnsafeSetScheduledCompact(tx, revision)
	}
	tx.Unlock()
	backend.ForceCommit()
}

func (t *tidier) defragment() error {
	if !t.copying.TryLock() {
		return nil // the next look finds the same
	}
	defer t.copying.Unlock()
	before, began := t.lastSpace(), time.Now()
	if err := t.server.Defragment(); err != nil {
		return fmt.Errorf("defragment: %w; the disk needs as much free space as is in use, %d bytes", err, before.InUse)
	}
	t.files.noteCurrent()
	t.log.Info("etcd.defragmented", "before", before.Size, "after", t.measureSpace().Size, "quota", t.quota, "took_ms",
		time.Since(began).Milliseconds())
	return nil
}

func (t *tidier) disarmAlarms(ctx context.Context) error {
	for _, a := range t.spaceAlarms() {
		if _, err := t.client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(a)); err != nil {
			return fmt.Errorf("disarm the alarm NOSPACE: %w", err)
		}
	}
	s := t.measureSpace()
	t.log.Info("etcd.room", "size", s.Size, "in_use", s.InUse, "quota", s.Quota)
	return nil
}
