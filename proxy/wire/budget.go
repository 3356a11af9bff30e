package wire

import (
	"errors"
	"sync/atomic"
)

// ErrMemory says that a Budget has no room for a body.
var ErrMemory = errors.New("the memory for bodies is used up")

// smallAccount is what an Account may hold and still take from the last quarter of its Budget, so
// that a flood of large bodies leaves room for small ones, as most deliveries are.
const smallAccount = 64 << 10

// Budget bounds the bytes that all bodies and answers of a process take in memory at one time. Safe
// for concurrent use; a nil Budget has no bound.
type Budget struct {
	limit   atomic.Int64
	used    atomic.Int64
	peak    atomic.Int64
	refused atomic.Int64
}

// NewBudget makes a Budget of limit bytes.
func NewBudget(limit int64) *Budget {
	b := &Budget{}
	b.SetLimit(limit)
	return b
}

// SetLimit changes the bound. What is held above it stays until it is given back.
func (b *Budget) SetLimit(limit int64) { b.limit.Store(limit) }

// Limit returns the bound in bytes.
func (b *Budget) Limit() int64 { return b.limit.Load() }

// Used returns how many bytes are held now.
func (b *Budget) Used() int64 { return b.used.Load() }

// Refused counts what found no room, since the Budget was made.
func (b *Budget) Refused() int64 { return b.refused.Load() }

// Peak returns the most that was held since the last call of Peak.
func (b *Budget) Peak() int64 { return b.peak.Swap(b.used.Load()) }

// takeBytes reserves n bytes for a body that then holds total.
func (b *Budget) takeBytes(n, total int64) bool {
	limit := b.limit.Load()
	if total > smallAccount {
		limit -= limit / 4
	}
	if b.addUsed(n) > limit {
		b.used.Add(-n)
		b.refused.Add(1)
		return false
	}
	return true
}

func (b *Budget) addUsed(n int64) int64 {
	used := b.used.Add(n)
	for {
		peak := b.peak.Load()
		if used <= peak || b.peak.CompareAndSwap(peak, used) {
			return used
		}
	}
}

// Account is what one delivery holds of a Budget. It counts the capacity of buffers, and not what
// is in them. The zero value has no bound. It has one user at a time.
type Account struct {
	budget *Budget
	held   int64
}

// Open begins an account at b, which may be nil.
func (b *Budget) Open() Account { return Account{budget: b} }

// Take asks for n bytes more. False: there is no room, and nothing changed.
func (a *Account) Take(n int) bool {
	if a == nil || a.budget == nil || n <= 0 {
		return true
	}
	if !a.budget.takeBytes(int64(n), a.held+int64(n)) {
		return false
	}
	a.held += int64(n)
	return true
}

// Hold counts n bytes that are there already, whether or not there is room for them.
func (a *Account) Hold(n int) {
	if a == nil || a.budget == nil {
		return
	}
	a.budget.addUsed(int64(n))
	a.held += int64(n)
}

// Give gives n bytes back.
func (a *Account) Give(n int) {
	if a == nil || a.budget == nil {
		return
	}
	a.budget.used.Add(-int64(n))
	a.held -= int64(n)
}

// Close gives everything back. Closing again is harmless.
func (a *Account) Close() {
	if a.budget != nil {
		a.budget.used.Add(-a.held)
		a.held = 0
	}
}

// growBuffer makes room in b for at least one byte, if there is any. Memory follows what arrived:
// it doubles, and the declared size (where not negative) or the bound only ever makes the step
// smaller.
func (a *Account) growBuffer(b []byte, declared, bound int64) ([]byte, error) {
	size := max(2*int64(cap(b)), firstGrowth)
	if declared > int64(len(b)) {
		size = min(size, declared)
	}
	if bound > int64(len(b)) {
		size = min(size, bound)
	}
	if !a.Take(int(size) - cap(b)) {
		return b, ErrMemory
	}
	grown := make([]byte, len(b), size)
	copy(grown, b)
	return grown, nil
}
