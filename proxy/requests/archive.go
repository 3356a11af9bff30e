package requests

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"hooklock/idem"
	"hooklock/proxy/kept"
)

// Place is what tells where the Archive has the request of an execution: its record has both.
type Place struct {
	Execution idem.ExecutionID
	// StartedAt is ExecutionFacts.StartedAt of its lock or its record. The two may differ by the
	// clocks of two processes, at most a minute.
	StartedAt time.Time
}

// PlaceOf returns the place of the execution of e.
func PlaceOf(e *idem.ExecutionFacts) Place { return Place{e.Execution, e.StartedAt} }

// Bounds of what waits in memory to be written.
const (
	maxUnwritten      = 4096
	maxUnwrittenBytes = 32 << 20
	unwrittenTimeout  = 10 * time.Second // of a batch
)

// Requests are gathered for so long before they are written, and written so many at a time.
const (
	gatherFor     = 200 * time.Millisecond
	maxBatch      = 256
	maxBatchBytes = 1 << 20 // more if one is larger
)

// ArchiveOptions are what an Archive works with.
type ArchiveOptions struct {
	// Limits returns how many requests are kept, and how many bytes of them, over all processes.
	Limits func() (events int, bytes int64)
	// OnError is called with what could not be written or deleted. It must not block.
	OnError func(error)
	// Forgotten returns the executions whose records were removed within the last minute, by any
	// process. Run asks for them at its end. nil: none were.
	Forgotten func(context.Context) ([]idem.ExecutionID, error)
	// Now returns the time by which requests become old; nil means time.Now.
	Now func() time.Time
}

// ArchiveCounts are what an Archive of this process has done, and what there is over all processes,
// as far as this one knows.
type ArchiveCounts struct {
	Written, Dropped int64 // of this process; dropped are those that found the queue full, or could not be written
	Removed          int64 // by this process because of the limits, before their time
	Events, Bytes    int64
}

// Archive keeps the requests of executions whether or not they have ended, for a while. They are
// written behind, some at a time: no delivery waits, and what a process that dies has not written,
// a fifth of a second's, is not there. It is safe for concurrent use.
//
// A request is on the shelf of the minute in which its execution began, and of the time for which
// it is kept: a folder. So an execution says where its request is, and what is old goes with its
// whole folder. The names in the folder `counts` say how much each process has put where: nothing
// is opened to be counted.
type Archive struct {
	keeper *Keeper
	area   area
	o      ArchiveOptions
	name   string        // of this process, in the names of counts
	come   chan struct{} // has room for one: something is to be written

	mu      sync.Mutex
	queue   []*unwritten
	pending map[idem.ExecutionID]*unwritten // those of the queue, and those that are being written
	waiting int64                           // their bytes
	dropped []Place                         // to be deleted
	newest  []Place                         // the last maxUnwritten that Put was given, in a ring
	at      int                             // the oldest of them, once the ring is full
	counts  ArchiveCounts
	since   tally           // what this process has written since the last look at all
	own     map[shelf]tally // what it has written
	said    map[shelf]tally // what the store says that it has written
	full    chan struct{}   // has room for one: the limits are passed
}

// unwritten is a request that is not written yet.
type unwritten struct {
	at    Place
	shelf shelf
	plain []byte
	taken bool          // it is being written
	gone  bool          // it is not to be
	done  chan struct{} // closed when it is written, or will not be

	frame []byte // for the area
	err   error  // why the area does not have it
}

// NewArchive returns an archive in the store of k. It returns nil if there is none. Call Run.
func NewArchive(k *Keeper, o ArchiveOptions) *Archive {
	a := &Archive{
		keeper: k, o: o, name: processName(),
		come: make(chan struct{}, 1), pending: map[idem.ExecutionID]*unwritten{},
		own: map[shelf]tally{}, said: map[shelf]tally{}, full: make(chan struct{}, 1),
	}
	switch store := k.store.(type) {
	case *Dir:
		a.area = newDirArea(store, a.name)
	case *S3:
		a.area = s3Area{store}
	default:
		return nil
	}
	if a.o.Now == nil {
		a.o.Now = time.Now
	}
	return a
}

// Put has the request of an execution written, to be kept for so long. It copies r, and never
// blocks: if too much waits to be written, r is dropped.
func (a *Archive) Put(at Place, keep time.Duration, r *kept.Request) {
	plain, err := r.Marshal()
	if err != nil {
		a.countDropped(err)
		return
	}
	u := &unwritten{at: at, shelf: shelfOf(keep, at.StartedAt), plain: plain, done: make(chan struct{})}
	if !a.enqueue(u) {
		a.countDropped(errBehind)
	}
}

// Forget is called when the record of an execution was removed, at whichever process. What removed
// it then deletes its request, but not one that this process has not written yet.
func (a *Archive) Forget(id idem.ExecutionID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.IndexFunc(a.newest, func(at Place) bool { return at.Execution == id }); i >= 0 {
		a.dropLocked(a.newest[i])
	}
}

// Drop has the request of an execution deleted, as Put has one written. If too many wait to be
// deleted, it goes when it is old.
func (a *Archive) Drop(at Place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dropLocked(at)
}

func (a *Archive) dropLocked(at Place) {
	if len(a.dropped) < maxUnwritten {
		a.dropped = append(a.dropped, at)
		sendSignal(a.come)
	}
}

// noteNewestLocked remembers that a request is to be written here.
func (a *Archive) noteNewestLocked(at Place) {
	if len(a.newest) < maxUnwritten {
		a.newest = append(a.newest, at)
		return
	}
	a.newest[a.at] = at
	a.at = (a.at + 1) % maxUnwritten
}

// dropForgotten drops those of the newest requests whose execution was forgotten. It asks after the
// last write: what is forgotten later is deleted by that which forgets it.
func (a *Archive) dropForgotten(ctx context.Context) {
	a.mu.Lock()
	none := len(a.newest) == 0
	a.mu.Unlock()
	if none || a.o.Forgotten == nil {
		return
	}
	ids, err := a.o.Forgotten(ctx)
	if err != nil {
		a.o.OnError(err)
	}
	for _, id := range ids {
		a.Forget(id)
	}
}

// deleteDropped deletes what Drop was given.
func (a *Archive) deleteDropped(ctx context.Context) {
	a.mu.Lock()
	dropped := a.dropped
	a.dropped = nil
	a.mu.Unlock()
	ctx, done := context.WithTimeout(ctx, unwrittenTimeout)
	defer done()
	for _, at := range dropped {
		if err := a.Delete(ctx, at); err != nil {
			a.o.OnError(err)
		}
	}
}

// errBehind is told where the store does not take requests as fast as they come, or the limits are
// passed faster than old ones go.
var errBehind = errors.New("requests come faster than the store takes them, " +
	"or than the oldest of them can be deleted: the newest are not kept")

func (a *Archive) countDropped(err error) {
	a.mu.Lock()
	a.counts.Dropped++
	a.mu.Unlock()
	a.o.OnError(err)
}

func (a *Archive) enqueue(u *unwritten) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	size := int64(len(u.plain))
	if len(a.pending) >= maxUnwritten || a.waiting > 0 && a.waiting+size > maxUnwrittenBytes || a.overLocked(size) {
		return false
	}
	a.queue = append(a.queue, u)
	a.waiting += size
	a.pending[u.at.Execution] = u
	a.noteNewestLocked(u.at)
	sendSignal(a.come)
	return true
}

// sendSignal puts one element into a channel that has room for one.
func sendSignal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// overLocked reports whether there is no room for so many bytes. A quarter more than the limits may
// be there for a moment, while the oldest requests go.
func (a *Archive) overLocked(size int64) bool {
	events, most := a.o.Limits()
	n, b := a.counts.Events+a.since.events+int64(len(a.pending))+1, a.counts.Bytes+a.since.bytes+a.waiting+size
	if n > int64(events) || b > most {
		sendSignal(a.full)
	}
	return n > int64(events)+int64(events)/4+1 || b > most+most/4
}

// Run writes what Put is given, and deletes what is old, until ctx ends. Then it writes what is
// still waiting, deletes what Forget would still be called with, until rest ends, and returns.
func (a *Archive) Run(ctx, rest context.Context) {
	var tending sync.WaitGroup
	tending.Go(func() { a.tendRegularly(ctx) })
	for ended := false; !ended; {
		select {
		case <-a.come:
			gathered := time.NewTimer(gatherFor)
			select {
			case <-gathered.C:
			case <-ctx.Done():
			}
			gathered.Stop()
		case <-ctx.Done():
		}
		ended = ctx.Err() != nil
		for batch := a.takeBatch(); len(batch) > 0; batch = a.takeBatch() {
			a.writeBatch(rest, batch)
		}
		if ended {
			a.dropForgotten(rest)
		}
		a.deleteDropped(rest)
	}
	tending.Wait()
	if err := a.sayCounts(rest); err != nil {
		a.o.OnError(err)
	}
}

// takeBatch returns what is to be written next, of one shelf.
func (a *Archive) takeBatch() (batch []*unwritten) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var others []*unwritten
	size := 0
	for i, u := range a.queue {
		switch {
		case u.gone:
			a.finishLocked(u)
		case len(batch) == maxBatch || len(batch) > 0 && size+len(u.plain) > maxBatchBytes:
			others = append(others, a.queue[i:]...)
			a.queue = others
			return batch
		case len(batch) > 0 && u.shelf != batch[0].shelf:
			others = append(others, u)
		default:
			u.taken = true
			batch, size = append(batch, u), size+len(u.plain)
		}
	}
	a.queue = others
	return batch
}

// finishLocked ends the life of u in memory.
func (a *Archive) finishLocked(u *unwritten) {
	a.waiting -= int64(len(u.plain))
	if a.pending[u.at.Execution] == u {
		delete(a.pending, u.at.Execution)
	}
	close(u.done)
}

func (a *Archive) writeBatch(ctx context.Context, batch []*unwritten) {
	for _, u := range batch {
		u.frame = encodeFrame(u.at.Execution, a.keeper.keys.Load().Seal(u.at.Execution, u.plain))
	}
	shelf := batch[0].shelf
	ctx, done := context.WithTimeout(ctx, unwrittenTimeout)
	defer done()
	a.area.writeFrames(ctx, shelf, batch)
	var n tally
	var failed []error
	a.mu.Lock()
	for _, u := range batch {
		if u.err != nil {
			a.counts.Dropped++
			failed = append(failed, u.err)
		} else {
			n.add(tally{1, int64(len(u.frame))})
		}
		a.finishLocked(u)
	}
	a.counts.Written += n.events
	a.since.add(n)
	of := a.own[shelf]
	of.add(n)
	a.own[shelf] = of
	a.mu.Unlock()
	for _, err := range failed {
		a.o.OnError(err)
	}
}

// Fetch returns the request of an execution, also one that is not written yet. It returns
// ErrNotKept, ErrTampered, ErrFormat, or why it cannot be read now.
func (a *Archive) Fetch(ctx context.Context, at Place) (*kept.Request, error) {
	if plain := a.unwrittenRequest(at.Execution); plain != nil {
		return kept.Unmarshal(bytes.Clone(plain))
	}
	var sealed []byte
	err := a.searchShelves(ctx, at, func(s shelf) (found bool, err error) {
		sealed, err = a.area.readFrame(ctx, s, at.Execution)
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	plain, err := a.keeper.keys.Load().Open(at.Execution, sealed)
	if err != nil {
		return nil, err
	}
	return kept.Unmarshal(plain)
}

// unwrittenRequest returns the request of an execution that is not written yet; nil = there is
// none.
func (a *Archive) unwrittenRequest(id idem.ExecutionID) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if u := a.pending[id]; u != nil && !u.gone {
		return u.plain
	}
	return nil
}

// Has reports whether the request of an execution is there. It does not read it.
func (a *Archive) Has(ctx context.Context, at Place) (bool, error) {
	if a.unwrittenRequest(at.Execution) != nil {
		return true, nil
	}
	err := a.searchShelves(ctx, at, func(s shelf) (bool, error) {
		err := a.area.hasFrame(ctx, s, at.Execution)
		return err == nil, err
	})
	if errors.Is(err, ErrNotKept) {
		return false, nil
	}
	return err == nil, err
}

// Delete deletes the request of an execution. It returns nil if there is none.
func (a *Archive) Delete(ctx context.Context, at Place) error {
	a.mu.Lock()
	u := a.pending[at.Execution]
	if u != nil {
		u.gone = true
	}
	taken := u != nil && u.taken
	a.mu.Unlock()
	if taken {
		select {
		case <-u.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	err := a.searchShelves(ctx, at, func(s shelf) (bool, error) {
		return false,
			a.area.eraseFrame(ctx, s, at.Execution)
	})
	if errors.Is(err, ErrNotKept) {
		return nil
	}
	return err
}

// Rekeep returns the request of one execution, and the ledger's value of it for another one, as
// Keeper.Keep does. That of the first one stays. It returns ErrNotKept, or an error of Fetch or of
// Keeper.Keep.
func (a *Archive) Rekeep(ctx context.Context, from Place, to idem.ExecutionID) (*kept.Request, []byte, error) {
	r, err := a.Fetch(ctx, from)
	if err != nil {
		return nil, nil, err
	}
	value, err := a.keeper.Keep(ctx, to, r)
	return r, value, err
}

// searchShelves calls try with each shelf that the request of an execution may be on, until it has
// found it. The clock of another process may have said another minute.
func (a *Archive) searchShelves(ctx context.Context, at Place, try func(shelf) (found bool, err error)) error {
	if _, err := storeName(at.Execution); err != nil {
		return err
	}
	times, err := a.retentionTimes(ctx)
	if err != nil {
		return err
	}
	for _, by := range []time.Duration{0, -time.Minute, time.Minute} {
		for _, keep := range times {
			found, err := try(shelfOf(keep, at.StartedAt.Add(by)))
			if found || err != nil && !errors.Is(err, ErrNotKept) {
				return err
			}
		}
	}
	return ErrNotKept
}

// retentionTimes returns for how long requests are kept that are there.
func (a *Archive) retentionTimes(ctx context.Context) (all []time.Duration, err error) {
	names, err := a.area.listNames(ctx, archiveFolder)
	for _, name := range names {
		if keep, ok := keepIn(name); ok {
			all = append(all, keep)
		}
	}
	return all, err
}

// shelf is one folder of requests.
type shelf struct {
	keep   time.Duration
	minute int64 // since 1970
}

const (
	archiveFolder = "kept"
	countsFolder  = archiveFolder + "/counts"
	minuteFormat  = "200601021504"
)

func shelfOf(keep time.Duration, at time.Time) shelf {
	return shelf{keep.Truncate(time.Second), at.Unix() / 60}
}

func (s shelf) minuteName() string { return time.Unix(s.minute*60, 0).UTC().Format(minuteFormat) }

func (s shelf) keepName() string { return strconv.FormatInt(int64(s.keep/time.Second), 10) }

func (s shelf) folderPath() string { return archiveFolder + "/" + s.keepName() + "/" + s.minuteName() }

// isOld reports whether all that it has is to go.
func (s shelf) isOld(now time.Time) bool {
	return !now.Before(time.Unix((s.minute+1)*60, 0).Add(s.keep))
}

// keepIn returns the time that keepName wrote.
func keepIn(name string) (time.Duration, bool) {
	n, err := strconv.ParseInt(name, 10, 64)
	ok := err == nil && n > 0 && n <= int64(maxKeep/time.Second) && strconv.FormatInt(n, 10) == name
	return time.Duration(n) * time.Second, ok
}

// maxKeep bounds the time for which a request is kept.
const maxKeep = 366 * 24 * time.Hour

// minuteIn returns the minute that minuteName wrote.
func minuteIn(name string) (int64, bool) {
	t, err := time.Parse(minuteFormat, name)
	return t.Unix() / 60, err == nil
}
