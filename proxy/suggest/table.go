package suggest

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"
	"unsafe"

	"hooklock/idem/naming"
)

// Bounds of what is kept of one path.
const (
	MaxDeliveries = 2000 // the newest
	maxNames      = 512  // members that are told apart; further ones count for the whole body alone
	maxMembers    = 256  // of one delivery
)

// Delivery is one delivery to learn from. Nothing of its bytes is kept.
type Delivery struct {
	Route   string        // that took it; empty: none did
	Path    string        // that of its route, with variables; empty: it is that of Message
	At      time.Time     // when it came
	Took    time.Duration // until its answer; 0 if that is not known
	Status  int           // of the answer; 0 if that is not known, or if there was none
	Left    bool          // the sender had gone before the answer came
	Message *naming.Message
	// Long: the body is longer than naming.MaxVisited, and not in Message. Sum is its hash, by
	// Set.Hash.
	Long bool
	Sum  uint64
}

// hasFailed reports whether the sender has a reason to send the event again.
func (r *row) hasFailed() bool {
	return r.left || r.status >= 300 || r.status > 0 && r.took > 10*time.Second
}

// table is what is known of the deliveries of one path.
type table struct {
	route, path string
	names       []string
	ids         map[string]int
	kinds       [][kindCount]int32 // of each name: how many values were of each kind
	hidden      []bool             // of each name: that it is there is kept, and nothing of its value
	// subscriptions has, for each name that names subscriptions, their names by hash; nil: it does
	// not, or there were too many.
	subscriptions []map[uint64]string
	rows          []row // the oldest first
	long          int   // bodies of which only the whole was read
	bytes         int   // what all of that takes
}

// row is one delivery.
type row struct {
	at      time.Time
	took    time.Duration
	whole   uint64 // hash of body and query
	cells   []cell // sorted by member
	status  int16
	partial bool // the body has other members, too
	left    bool // the sender had gone before the answer came
}

func (r *row) endTime() time.Time { return r.at.Add(r.took) }

// cell is the hash of the value of one member, behind the number of the member.
type cell uint64

// hashBits are those of a hash in a cell. Among 2000 values two are taken for one with a chance of
// one in 10^10.
const hashBits = 64 - 9

func newCell(member int, sum uint64) cell { return cell(member)<<hashBits | cell(sum>>9) | 1 } //nolint:gosec // below maxNames

func (c cell) memberIndex() int { return int(c >> hashBits) } //nolint:gosec // below maxNames

// valueSum returns the hash of the value, which is never 0.
func (c cell) valueSum() uint64 { return uint64(c << 9) }

// What rows and names take, beside their cells and bytes: lists and maps have room for more.
const (
	rowBytes  = int(unsafe.Sizeof(row{})) * 2
	cellBytes = int(unsafe.Sizeof(cell(0)))
	nameBytes = 3 * (2*int(unsafe.Sizeof("")) + int(unsafe.Sizeof([kindCount]int32{})) + 1 + 8)
)

func (r *row) byteSize() int { return rowBytes + cap(r.cells)*cellBytes }

// addDelivery notes a delivery, and forgets the oldest one if there are MaxDeliveries.
func (t *table) addDelivery(s *Set, d *Delivery) {
	r := row{at: d.At, took: d.Took, status: int16(min(max(d.Status, 0), 999)), whole: d.Sum | 1, //nolint:gosec // three digits
		left: d.Left}
	s.cells = s.cells[:0]
	whole := s.visitor.Visit(d.Message, maxMembers, func(path, value []byte) {
		i, known := t.addMember(path)
		switch {
		case !known:
		case t.hidden[i]:
			s.cells = append(s.cells, newCell(i, 1<<hashBits))
		default:
			t.kinds[i][kindOf(value, d.At)]++
			c := newCell(i, maphash.Bytes(s.key, value))
			t.keepSubscription(i, c.valueSum(), value)
			s.cells = append(s.cells, c)
		}
	})
	if r.partial = !whole || d.Long; r.partial {
		t.long++
	}
	slices.SortStableFunc(s.cells, func(a, b cell) int { return a.memberIndex() - b.memberIndex() })
	s.cells = slices.CompactFunc(s.cells, func(a, b cell) bool { return a.memberIndex() == b.memberIndex() })
	r.cells = slices.Clone(s.cells)
	if len(t.rows) == MaxDeliveries {
		t.forgetOldest()
	}
	at := len(t.rows) // they are noted when they end, and one that takes long ends behind its retry
	for at > 0 && t.rows[at-1].at.After(r.at) {
		at--
	}
	t.rows = slices.Insert(t.rows, at, r)
	t.bytes += r.byteSize()
}

// forgetOldest drops the oldest row.
func (t *table) forgetOldest() {
	t.bytes -= t.rows[0].byteSize()
	t.rows[0] = row{}
	t.rows = t.rows[1:]
}

func (t *table) addMember(path []byte) (int, bool) {
	if i, ok := t.ids[string(path)]; ok {
		return i, true
	}
	if len(t.names) == maxNames {
		return 0, false
	}
	name := string(path)
	if t.ids == nil {
		t.ids = map[string]int{}
	}
	t.ids[name] = len(t.names)
	t.names, t.kinds, t.hidden = append(t.names, name), append(t.kinds, [kindCount]int32{}),
		append(t.hidden, isSecret(name))
	t.bytes += nameBytes + len(name)
	var subscriptions map[uint64]string
	if namesSubscription(name) {
		subscriptions = map[uint64]string{}
		t.bytes += maxSubscriptions * (maxSubscription + nameBytes/3)
	}
	t.subscriptions = append(t.subscriptions, subscriptions)
	return len(t.names) - 1, true
}

// isSecret reports whether a header proves where a delivery comes from, so that nothing of its
// value is kept.
func isSecret(path string) bool {
	if !strings.HasPrefix(path, "header.") {
		return false
	}
	words := wordsOf(path, 1)
	return anyOf(words, "signature", "signature256", "signatures", "sig", "hmac", "authorization", "authentication",
		"cookie", "cookies", "secret", "password", "sha1", "sha256", "sha512", "apikey", "auth", "jwt",
		"certificate", "cert") ||
		anyOf(words, "token") && !anyOf(words, "idempotency") || anyOf(words, "key") && anyOf(words, "api", "access")
}

// snapshot returns what t has now, for use beside further deliveries.
func (t *table) snapshot() *table {
	c := *t
	c.ids, c.rows, c.kinds = nil, slices.Clone(t.rows), slices.Clone(t.kinds)
	c.subscriptions = slices.Clone(t.subscriptions)
	for i, known := range c.subscriptions {
		c.subscriptions[i] = maps.Clone(known)
	}
	return &c
}
