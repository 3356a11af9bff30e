package guard

import (
	"encoding/binary"
	"sync"
	"time"

	"hooklock/idem"
)

// Cache remembers records that do not change until they are forgotten, so that a duplicate needs no
// call to the store. Its owner calls Reset if the session is lost that filled it, or the watch for
// forgotten records. It is safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	max   int // bytes
	bytes int
	// its record 0 is the head of a ring of those in use: next is the most recently used, prev the
	// next to go
	arena arena
	// by a part of the key's long half, because the short half is the event ID's alone; the whole
	// key is compared before use
	byHalf map[uint64]uint32
	events map[uint64]uint32 // by what an execution ID says of workflow and event
	// generation counts drops. A record that was read before a drop must not be added after it.
	generation uint64
	began      time.Time // when the first record was asked for; times are kept as durations since then
}

// moment is when the store was asked.
type moment struct {
	generation uint64
	at         time.Time
}

// remembered is what Decide and an answer need of a record, and no more, because a cache holds
// about a hundred thousand.
type remembered struct {
	next, prev  uint32 // index in the arena
	key         [idem.KeyBytes]byte
	execution   [idem.ExecutionIDBytes]byte
	trace       idem.TraceContext // takes half the memory of its text
	fingerprint idem.Fingerprint
	parts       idem.Parts
	expires     time.Duration // since the cache began
	attempt     int32
	text, size  uint32 // first block and number of bytes of credentials and answer
	unknown     bool   // else executed
	settled     bool   // else attempt is how many attempts of its event count
}

// rememberedSize is the memory of one record without its text, its share of the maps included.
// BenchmarkCacheMemory measures it.
const rememberedSize = 224

// NewCache makes an empty cache that holds about maxBytes; zero means 64 MiB.
func NewCache(maxBytes int) *Cache {
	if maxBytes == 0 {
		maxBytes = 64 << 20
	}
	return &Cache{max: maxBytes, arena: newArena(), byHalf: map[uint64]uint32{}, events: map[uint64]uint32{}}
}

// get returns the cached record of key, or nil.
func (c *Cache) get(key idem.Key, now time.Time) *idem.Record {
	whole, ok := key.Binary()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.byHalf[binary.BigEndian.Uint64(whole[16:])]
	r := c.arena.recordAt(n)
	if !ok || n == 0 || r.key != whole {
		return nil
	}
	if now.Sub(c.began) >= r.expires {
		c.dropRecord(n)
		return nil
	}
	c.unlinkRecord(r)
	c.linkFirst(n, r)
	credentials, answer := decodeAnswer(c.arena.readText(r.text, int(r.size)))
	rec := &idem.Record{
		ExecutionFacts: idem.ExecutionFacts{
			Execution: idem.ExecutionIDOf(r.execution), Scope: idem.Scope{Key: key}, Fingerprint: r.fingerprint,
			Parts:       r.parts,
			Credentials: credentials, Attempt: int(r.attempt), TraceParent: r.trace.String(),
		},
		End: idem.End{Outcome: idem.Executed, Remembered: r.settled, Answer: answer},
	}
	if r.unknown && !r.settled { // else its answer is that of an attempt before
		rec.Outcome = idem.Unknown
	}
	return rec
}

// beginRead returns the moment for add. Call it before the store is asked.
func (c *Cache) beginRead(now time.Time) moment {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began.IsZero() {
		c.began = now
	}
	return moment{c.generation, now}
}

// addIfLasting caches a record that does not change until it is forgotten: one that settles its
// event, and one after which the policy lets no duplicate run. Final records are not cached, nor
// those whose event a person may run again here. The record is right for life after seenAt.
func (c *Cache) addIfLasting(p *idem.Policy, rec *idem.Record, seenAt moment, life time.Duration) {
	if rec.Credentials != "" && len(rec.Earlier) > 0 && rec.ParkedOn != "" {
		return // the credentials may be digested with an attempt before, which the cache does not know
	}
	if rec.Settled() || !rec.RequestKept && (p.Exhausted(rec) || p.BlocksUnknown(rec)) {
		c.add(rec, seenAt, life)
	}
}

// add remembers rec, after which no duplicate runs, for life after seenAt, unless something was
// dropped since then.
func (c *Cache) add(rec *idem.Record, seenAt moment, life time.Duration) {
	whole, ok := rec.Scope.Key.Binary()
	half := binary.BigEndian.Uint64(whole[16:])
	execution, err := rec.Execution.Binary()
	text := encodeAnswer(rec.Credentials, rec.Answer)
	attempt := rec.Attempt
	if !rec.Settled() {
		attempt = rec.FailedAttempts()
	}
	r := remembered{
		key: whole, execution: execution, trace: idem.ParseTrace(rec.TraceParent), fingerprint: rec.Fingerprint, parts: rec.Parts, size: uint32(len(text)), //nolint:gosec // weighed below
		expires: seenAt.at.Sub(c.began) + life, attempt: int32(attempt), unknown: rec.Outcome == idem.Unknown, settled: rec.Settled(), //nolint:gosec // attempts are few
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !ok || err != nil || seenAt.generation != c.generation || rememberedSize+inBlocks(len(text)) > min(c.max, most) {
		return
	}
	if old := c.byHalf[half]; old != 0 {
		c.dropRecord(old)
	}
	for c.bytes += r.memorySize(); c.bytes > c.max; {
		c.dropRecord(c.arena.recordAt(0).prev)
	}
	r.text = c.arena.writeText(text)
	n := c.arena.takeRecord()
	kept := c.arena.recordAt(n)
	*kept = r
	c.byHalf[half], c.events[eventOf(r.execution)] = n, n
	c.linkFirst(n, kept)
}

// eventOf returns the part that the IDs of all executions of an event share.
func eventOf(execution [idem.ExecutionIDBytes]byte) uint64 {
	return binary.BigEndian.Uint64(execution[:])*0x9e3779b97f4a7c15 ^ binary.BigEndian.Uint64(execution[8:])
}

// Forget drops the record of an execution, also one that is being added now.
func (c *Cache) Forget(id idem.ExecutionID) {
	whole, err := id.Binary()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	if n := c.events[eventOf(whole)]; err == nil && n != 0 && c.arena.recordAt(n).execution == whole {
		c.dropRecord(n)
	}
}

// Reset drops everything.
func (c *Cache) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	c.bytes, c.arena = 0, newArena()
	clear(c.byHalf)
	clear(c.events)
}

func (c *Cache) dropRecord(n uint32) {
	r := c.arena.recordAt(n)
	c.unlinkRecord(r)
	c.bytes -= r.memorySize()
	delete(c.byHalf, binary.BigEndian.Uint64(r.key[16:]))
	if c.events[eventOf(r.execution)] == n {
		delete(c.events, eventOf(r.execution))
	}
	c.arena.freeRecord(n)
}

// linkFirst makes r, which is the record n, the most recently used.
func (c *Cache) linkFirst(n uint32, r *remembered) {
	ring := c.arena.recordAt(0)
	r.prev, r.next = 0, ring.next
	c.arena.recordAt(ring.next).prev, ring.next = n, n
}

func (c *Cache) unlinkRecord(r *remembered) {
	c.arena.recordAt(r.prev).next, c.arena.recordAt(r.next).prev = r.next, r.prev
}

func (r *remembered) memorySize() int { return rememberedSize + inBlocks(int(r.size)) }
