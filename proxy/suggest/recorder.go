package suggest

import (
	"context"
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"hooklock/idem/naming"
)

const (
	// batchEvery is how long deliveries lie until they are looked at, all at once: so none pays for
	// a goroutine that wakes.
	batchEvery = 200 * time.Millisecond
	// perBatch deliveries are looked at, 200 in a second. Of more traffic the newest 2000 would be
	// some seconds, and hold no retry: see thin.
	perBatch = 40
	// queueShare of the memory is for those that lie.
	queueShare = 8
)

// Recorder learns from deliveries, beside them. It is safe for concurrent use. A nil *Recorder
// learns nothing.
type Recorder struct {
	set    *Set
	filled sync.Mutex // held while set is read or changed
	asked  sync.Mutex // held while a suggestion is made: one takes far more memory than what it is made from

	wake chan struct{} // has room for one token
	// thin is the number of bits that must be 0 in the hash of an event's name: above perBatch,
	// some events are followed with all their deliveries, rather than some deliveries of all of
	// them.
	thin   atomic.Uint32
	passed atomic.Int64 // deliveries that were not looked at

	mu    sync.Mutex
	queue []*queued
	free  []*queued
	bytes int // of queue and free
	limit int
	kept  bool // Learn keeps what it is given; false once Run has ended
}

// queued is a copy of a delivery.
type queued struct {
	Delivery
	message naming.Message
	text    []byte // behind all slices of message
}

// NewRecorder returns a recorder that takes at most so many bytes, without a suggestion that is
// being made. It returns nil for 0.
func NewRecorder(limit int) *Recorder {
	if limit <= 0 {
		return nil
	}
	return &Recorder{set: NewSet(limit - limit/queueShare), limit: limit / queueShare, wake: make(chan struct{}, 1),
		kept: true}
}

// Hasher returns the hash that Delivery.Sum is of, for a body that comes piece by piece.
func (r *Recorder) Hasher(query []byte) maphash.Hash { return r.set.Hasher(query) }

// Learn notes a delivery and returns; nothing of it is in use afterwards. Without Long its Sum is
// not needed. event is what its event is called; empty: that is not known.
func (r *Recorder) Learn(d *Delivery, event string) {
	if !d.Long {
		d.Sum = r.set.Hash(d.Message)
	}
	name := d.Sum
	if event != "" {
		name = maphash.String(r.set.key, event)
	}
	if bits.TrailingZeros64(name) < int(r.thin.Load()) || !r.enqueue(d) {
		r.passed.Add(1)
	}
}

// enqueue copies d. It returns false without room for it.
func (r *Recorder) enqueue(d *Delivery) bool {
	size := d.byteSize()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 4*perBatch || !r.kept {
		return false
	}
	var q *queued
	if last := len(r.free) - 1; last >= 0 {
		q, r.free = r.free[last], r.free[:last]
		r.bytes -= cap(q.text)
	} else {
		q = new(queued)
	}
	if r.bytes+max(size, cap(q.text)) > r.limit {
		return false
	}
	q.copyFrom(d, size)
	r.bytes += cap(q.text)
	r.queue = append(r.queue, q)
	if len(r.queue) == 1 {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// byteSize returns the bytes of all that is read of a delivery.
func (d *Delivery) byteSize() int {
	m := d.Message
	n := len(m.Method) + len(m.Path) + len(m.Query) + len(m.Body)
	for i := range m.Fields {
		n += len(m.Fields[i].Name) + len(m.Fields[i].Value)
	}
	for i := range m.Vars {
		n += len(m.Vars[i].Raw)
	}
	return n
}

func (q *queued) copyFrom(d *Delivery, size int) {
	if cap(q.text) < size {
		q.text = make([]byte, 0, size)
	}
	q.text = q.text[:0]
	from, to := d.Message, &q.message
	keep := func(part []byte) []byte {
		at := len(q.text)
		q.text = append(q.text, part...)
		return q.text[at:len(q.text):len(q.text)]
	}
	q.Delivery, q.Message = *d, to
	to.Reset()
	to.Method, to.Path, to.Query, to.Body = keep(from.Method), keep(from.Path), keep(from.Query), keep(from.Body)
	for _, f := range from.Fields {
		to.Fields = append(to.Fields, naming.Field{Name: keep(f.Name), Value: keep(f.Value)})
	}
	for _, v := range from.Vars {
		to.Vars = append(to.Vars, naming.PathVar{Name: v.Name, Raw: keep(v.Raw)})
	}
}

// Run looks at the deliveries until ctx ends.
func (r *Recorder) Run(ctx context.Context) {
	defer r.stop()
	rest := time.NewTimer(batchEvery)
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		rest.Reset(batchEvery)
		select {
		case <-ctx.Done():
			return
		case <-rest.C:
		}
		r.setThin(r.learnQueued())
	}
}

func (r *Recorder) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue, r.free, r.bytes, r.kept = nil, nil, 0, false
}

// setThin sets which events are followed from now on, when so many deliveries were looked at.
func (r *Recorder) setThin(n int) {
	switch thin := r.thin.Load(); {
	case n > perBatch && thin < 32:
		r.thin.Store(thin + 1)
	case n < perBatch/4 && thin > 0:
		r.thin.Store(thin - 1)
	}
}

// learnQueued learns from the deliveries that lie, and returns how many these were.
func (r *Recorder) learnQueued() int {
	r.filled.Lock()
	defer r.filled.Unlock()
	r.mu.Lock()
	queue := r.queue
	r.queue = nil
	r.mu.Unlock()
	for _, q := range queue {
		r.set.Add(&q.Delivery)
		q.message.Reset()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range queue {
		if cap(q.text) > naming.MaxVisited/8 || len(r.free) == perBatch || !r.kept {
			r.bytes -= cap(q.text)
			continue
		}
		r.free = append(r.free, q)
	}
	r.bytes = max(r.bytes, 0)
	return len(queue)
}

// Found is what a Recorder suggests.
type Found struct {
	Suggestions []*Suggestion
	// Passed are deliveries that were not looked at, because too many came, and Missed those of
	// paths that were forgotten, or had no room.
	Passed, Missed int
}

// Suggest returns a suggestion for each path that a delivery came to since then; the zero time: all
// that are known.
func (r *Recorder) Suggest(since time.Time) Found {
	if r == nil {
		return Found{}
	}
	r.asked.Lock()
	defer r.asked.Unlock()
	r.learnQueued()
	r.filled.Lock()
	tables, found := r.set.snapshot(), Found{Passed: int(r.passed.Load()), Missed: r.set.missed}
	r.filled.Unlock()
	for _, t := range tables {
		if s := t.newSuggestion(since); s != nil {
			found.Suggestions = append(found.Suggestions, s)
		}
	}
	return found
}
