package idem

import (
	"container/list"
	"sync"
	"time"
)

// Cache remembers settled records, so that a duplicate needs no call to the store. It is only ever as good as the session that
// filled it: whoever loses the session, or the watch that tells of forgotten records, must Reset it. Safe for concurrent use.
type Cache struct {
	mu     sync.Mutex
	max    int // bytes
	bytes  int
	byHalf map[uint64]*list.Element // by the XXH64 half of the key; a full key is compared before use
	recent *list.List               // of *Record, latest used first
	// generation counts what was dropped. A record that was read before a drop must not come in after it.
	generation uint64
}

// recordOverhead is what a cached record weighs beside its answer: the struct, its strings, the map and the list. Measured by
// BenchmarkCacheMemory.
const recordOverhead = 700

// NewCache makes an empty cache that holds about maxBytes; zero means 64 MiB.
func NewCache(maxBytes int) *Cache {
	if maxBytes == 0 {
		maxBytes = 64 << 20
	}
	return &Cache{max: maxBytes, byHalf: map[uint64]*list.Element{}, recent: list.New()}
}

// get returns the record of key, or nil.
func (c *Cache) get(key Key, now time.Time) *Record {
	half := key.half()
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.byHalf[half]
	if at == nil {
		return nil
	}
	rec := at.Value.(*Record)
	if rec.Scope.Key != key {
		return nil
	}
	if !now.Before(rec.ExpiresAt) {
		c.drop(at)
		return nil
	}
	c.recent.MoveToFront(at)
	return rec
}

// seenAt is what add wants: take it before the store is asked.
func (c *Cache) seenAt() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.generation
}

// add remembers rec, unless something was dropped since seenAt.
func (c *Cache) add(rec *Record, seenAt uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if seenAt != c.generation || weight(rec) > c.max {
		return
	}
	half := rec.Scope.Key.half()
	if at := c.byHalf[half]; at != nil {
		c.drop(at)
	}
	c.byHalf[half] = c.recent.PushFront(rec)
	for c.bytes += weight(rec); c.bytes > c.max; {
		c.drop(c.recent.Back())
	}
}

// Forget drops the record of an execution: one that is here, and one that is on its way here.
func (c *Cache) Forget(id ExecutionID) {
	_, half, err := id.Parse()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	if at := c.byHalf[half]; err == nil && at != nil && at.Value.(*Record).Execution == id {
		c.drop(at)
	}
}

// Reset drops everything.
func (c *Cache) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	c.bytes = 0
	clear(c.byHalf)
	c.recent.Init()
}

func (c *Cache) drop(at *list.Element) {
	rec := c.recent.Remove(at).(*Record)
	c.bytes -= weight(rec)
	delete(c.byHalf, rec.Scope.Key.half())
}

func weight(rec *Record) int {
	n := recordOverhead + len(rec.Earlier)*120
	if rec.Answer != nil {
		n += len(rec.Answer.Body)
		for _, f := range rec.Answer.Header {
			n += len(f.Name) + len(f.Value) + 32
		}
	}
	return n
}
