package idem

import (
	"encoding/binary"
	"encoding/hex"
	"sync"
	"time"
)

// Cache remembers records that stay as they are until somebody forgets them, so that a duplicate needs no call to the store. It is only
// ever as good as the session that filled it: whoever loses the session, or the watch that tells of forgotten records, must Reset
// it. Safe for concurrent use.
type Cache struct {
	mu     sync.Mutex
	max    int // bytes
	bytes  int
	byHalf map[uint64]*remembered // by a part of the key's long half; the whole key is compared before use. Its short half is the event ID's alone
	events map[uint64]*remembered // by what an execution ID says of workflow and event
	recent remembered             // ring: next is the one used last, prev the one to go
	// generation counts what was dropped. A record that was read before a drop must not come in after it.
	generation uint64
	began      time.Time // when the first record was asked for: times are kept as what has passed since
}

// moment is when the store was asked.
type moment struct {
	generation uint64
	at         time.Time
}

// remembered is what Decide and an answer need of a record, and no more: it is what a hundred thousand of cost memory.
type remembered struct {
	next, prev  *remembered
	key         [24]byte
	execution   [20]byte
	trace       TraceContext // in half of what its text takes
	credentials string
	answer      *Answer
	fingerprint Fingerprint
	parts       Parts
	expires     time.Duration // since the cache began
	attempt     int32
	unknown     bool // else executed
}

// rememberedSize is what one of them weighs without its answer, the map's share included. BenchmarkCacheMemory measures it.
const rememberedSize = 300

// NewCache makes an empty cache that holds about maxBytes; zero means 64 MiB.
func NewCache(maxBytes int) *Cache {
	if maxBytes == 0 {
		maxBytes = 64 << 20
	}
	c := &Cache{max: maxBytes, byHalf: map[uint64]*remembered{}, events: map[uint64]*remembered{}}
	c.recent.next, c.recent.prev = &c.recent, &c.recent
	return c
}

// get returns what is known of the record of key, or nil. Its memory is shared and must not be changed.
func (c *Cache) get(key Key, now time.Time) *Record {
	whole, ok := key.binary()
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.byHalf[binary.BigEndian.Uint64(whole[16:])]
	if !ok || r == nil || r.key != whole {
		return nil
	}
	if now.Sub(c.began) >= r.expires {
		c.drop(r)
		return nil
	}
	r.unlink()
	r.linkAfter(&c.recent)
	rec := &Record{
		Entry: Entry{
			Execution: executionID(r.execution), Scope: Scope{Key: key}, Fingerprint: r.fingerprint, Parts: r.parts,
			Credentials: r.credentials, Attempt: int(r.attempt), TraceParent: r.trace.String(),
		},
		End: End{Outcome: Executed, Kept: !r.unknown, Answer: r.answer},
	}
	if r.unknown {
		rec.Outcome = Unknown
	}
	return rec
}

// seenAt is what add wants: take it before the store is asked.
func (c *Cache) seenAt(now time.Time) moment {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began.IsZero() {
		c.began = now
	}
	return moment{c.generation, now}
}

// add remembers rec, which is settled or of unknown outcome, for life after seenAt, unless something was dropped since then.
func (c *Cache) add(rec *Record, seenAt moment, life time.Duration) {
	whole, ok := rec.Scope.Key.binary()
	half := binary.BigEndian.Uint64(whole[16:])
	execution, err := rec.Execution.binary()
	r := &remembered{
		key: whole, execution: execution, credentials: rec.Credentials, answer: rec.Answer, fingerprint: rec.Fingerprint, parts: rec.Parts,
		expires: seenAt.at.Sub(c.began) + life, attempt: int32(rec.Attempt), unknown: rec.Outcome == Unknown, //nolint:gosec // attempts are few
	}
	r.trace = ParseTrace(rec.TraceParent)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !ok || err != nil || seenAt.generation != c.generation || r.weight() > c.max {
		return
	}
	if old := c.byHalf[half]; old != nil {
		c.drop(old)
	}
	c.byHalf[half], c.events[eventOf(r.execution)] = r, r
	r.linkAfter(&c.recent)
	for c.bytes += r.weight(); c.bytes > c.max; {
		c.drop(c.recent.prev)
	}
}

// eventOf is what all executions of an event have in their IDs.
func eventOf(execution [20]byte) uint64 {
	return binary.BigEndian.Uint64(execution[:])*0x9e3779b97f4a7c15 ^ binary.BigEndian.Uint64(execution[8:])
}

// Forget drops the record of an execution: one that is here, and one that is on its way here.
func (c *Cache) Forget(id ExecutionID) {
	whole, err := id.binary()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	if r := c.events[eventOf(whole)]; err == nil && r != nil && r.execution == whole {
		c.drop(r)
	}
}

// Reset drops everything.
func (c *Cache) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	c.bytes = 0
	clear(c.byHalf)
	clear(c.events)
	c.recent.next, c.recent.prev = &c.recent, &c.recent
}

func (c *Cache) drop(r *remembered) {
	r.unlink()
	c.bytes -= r.weight()
	delete(c.byHalf, binary.BigEndian.Uint64(r.key[16:]))
	if c.events[eventOf(r.execution)] == r {
		delete(c.events, eventOf(r.execution))
	}
}

func (r *remembered) linkAfter(at *remembered) {
	r.prev, r.next = at, at.next
	at.next.prev, at.next = r, r
}

func (r *remembered) unlink() { r.prev.next, r.next.prev = r.next, r.prev }

func (r *remembered) weight() int {
	n := rememberedSize
	if r.answer != nil {
		n += len(r.answer.Body)
		for _, f := range r.answer.Header {
			n += len(f.Name) + len(f.Value) + 32
		}
	}
	return n
}

// binary is the key without its spelling; ok is false for what is not a key.
func (k Key) binary() (whole [24]byte, ok bool) {
	if len(k) != 49 || k[16] != '-' {
		return whole, false
	}
	_, first := hex.Decode(whole[:8], []byte(k[:16]))
	_, second := hex.Decode(whole[8:], []byte(k[17:]))
	return whole, first == nil && second == nil
}
