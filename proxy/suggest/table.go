package suggest

import (
	"hash/maphash"
	"slices"
	"time"

	"hooklock/idem/naming"
)

// Bounds of what is kept of one path.
const (
	MaxDeliveries = 2000 // the newest
	maxNames      = 512  // members that are told apart; further ones count for the whole body alone
	maxMembers    = 256  // of one delivery
)

// Delivery is one delivery to learn from. The table keeps nothing of its bytes.
type Delivery struct {
	At      time.Time     // when it came
	Took    time.Duration // until its answer; 0 if that is not known
	Status  int           // of the answer; 0 if that is not known, or if there was none
	Message *naming.Message
}

// failed reports whether the sender has a reason to send the event again.
func (r *row) failed() bool { return r.status >= 300 || r.status > 0 && r.took > 10*time.Second }

// Table is what is known of the deliveries of one path. It is not safe for concurrent use.
type Table struct {
	path  string
	seed  maphash.Seed
	names []string
	ids   map[string]int
	kinds [][kindCount]int32 // of each name: how many values were of each kind
	rows  []row              // the oldest first
	long  int                // bodies of which only the whole was read
}

// row is one delivery.
type row struct {
	at, end time.Time
	took    time.Duration
	status  int
	whole   uint64 // hash of body and query
	cells   []cell // sorted by member
	partial bool   // the body has other members, too
}

// cell is the hash of the value of one member.
type cell struct {
	member uint16
	sum    uint64 // never 0
}

// NewTable returns a table for the deliveries of a path, as a route would spell it. Its hashes have a key of their own, which dies with it.
func NewTable(path string) *Table {
	return &Table{path: path, seed: maphash.MakeSeed(), ids: map[string]int{}}
}

// Add notes a delivery, and forgets the oldest one if there are MaxDeliveries.
func (t *Table) Add(d *Delivery) {
	r := row{at: d.At, end: d.At.Add(d.Took), took: d.Took, status: d.Status}
	var h maphash.Hash
	h.SetSeed(t.seed)
	_, _ = h.Write(d.Message.Query)
	_ = h.WriteByte(0)
	_, _ = h.Write(d.Message.Body)
	r.whole = h.Sum64() | 1
	whole := naming.VisitMembers(d.Message, maxMembers, func(path string, value []byte) {
		if i, ok := t.member(path); ok {
			t.kinds[i][kindOf(value, d.At)]++
			r.cells = append(r.cells, cell{uint16(i), maphash.Bytes(t.seed, value) | 1}) //nolint:gosec // below maxNames
		}
	})
	if r.partial = !whole; r.partial {
		t.long++
	}
	slices.SortStableFunc(r.cells, func(a, b cell) int { return int(a.member) - int(b.member) })
	r.cells = slices.CompactFunc(r.cells, func(a, b cell) bool { return a.member == b.member })
	if len(t.rows) == MaxDeliveries {
		t.rows = slices.Delete(t.rows, 0, 1)
	}
	t.rows = append(t.rows, r)
}

func (t *Table) member(path string) (int, bool) {
	if i, ok := t.ids[path]; ok {
		return i, true
	}
	if len(t.names) == maxNames {
		return 0, false
	}
	t.ids[path] = len(t.names)
	t.names, t.kinds = append(t.names, path), append(t.kinds, [kindCount]int32{})
	return len(t.names) - 1, true
}
