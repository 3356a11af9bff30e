package suggest

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"hooklock/idem/naming"
)

// maxPaths bounds the paths that are told apart.
const maxPaths = 100

// Set is what is known of deliveries, by path. Make one with NewSet. It is not safe for concurrent
// use.
type Set struct {
	limit  int // bytes
	key    maphash.Seed
	tables []*table
	bytes  int // of all tables
	missed int // deliveries of paths that were forgotten again, or had no room

	visitor naming.MemberVisitor
	cells   []cell
}

// NewSet returns an empty set that takes at most so many bytes; 0: any number. Its hashes have a
// key of their own, which dies with it.
func NewSet(limit int) *Set { return &Set{limit: limit, key: maphash.MakeSeed()} }

// Hash returns the hash of a query and a body, which tells deliveries apart.
func (s *Set) Hash(m *naming.Message) uint64 {
	h := s.Hasher(m.Query)
	m.HashBody(&h)
	return h.Sum64()
}

// Hasher returns the hash of a query, for a body that is written to it piece by piece.
func (s *Set) Hasher(query []byte) (h maphash.Hash) {
	h.SetSeed(s.key)
	_, _ = h.Write(query)
	_ = h.WriteByte(0)
	return h
}

// Add notes a delivery under its path. Segments that look like an ID become variables of one path,
// if no route has said it.
func (s *Set) Add(d *Delivery) {
	path := d.Path
	if path == "" {
		path, d.Message.Vars = generalPath(d.Message.Path)
	}
	t := s.tableOf(d.Route, path)
	if t == nil {
		s.missed++
		return
	}
	if !d.Long {
		d.Sum = s.Hash(d.Message)
	}
	before := t.bytes
	t.addDelivery(s, d)
	for s.bytes += t.bytes - before; s.limit > 0 && s.bytes > s.limit; {
		s.forgetOldest()
	}
}

// tableOf returns the table of a path, a new one for a new path; nil without room for it.
func (s *Set) tableOf(route, path string) *table {
	i := slices.IndexFunc(s.tables, func(t *table) bool { return t.path == path && t.route == route })
	if i >= 0 {
		return s.tables[i]
	}
	if len(s.tables) == maxPaths && !s.makeRoom() {
		return nil
	}
	t := &table{route: route, path: path}
	s.tables = append(s.tables, t)
	return t
}

// makeRoom forgets the path of no route that has the fewest deliveries, the longest ago. It returns
// false if all have a route.
func (s *Set) makeRoom() bool {
	least := -1
	for i, t := range s.tables {
		if t.route != "" {
			continue
		}
		if least < 0 || cmp.Or(cmp.Compare(len(t.rows), len(s.tables[least].rows)),
			t.newestAt().Compare(s.tables[least].newestAt())) < 0 {
			least = i
		}
	}
	if least >= 0 {
		s.missed += len(s.tables[least].rows)
		s.dropTable(least)
	}
	return least >= 0
}

// forgetOldest forgets the oldest delivery of the path that takes the most memory.
func (s *Set) forgetOldest() {
	most := 0
	for i, t := range s.tables {
		if t.bytes > s.tables[most].bytes {
			most = i
		}
	}
	t := s.tables[most]
	if len(t.rows) <= 1 { // its names take more
		s.missed += len(t.rows)
		s.dropTable(most)
		return
	}
	s.bytes -= t.rows[0].byteSize()
	t.forgetOldest()
}

func (s *Set) dropTable(i int) {
	s.bytes -= s.tables[i].bytes
	s.tables = slices.Delete(s.tables, i, i+1)
}

// newestAt returns when the newest delivery came.
func (t *table) newestAt() time.Time {
	if len(t.rows) == 0 {
		return time.Time{}
	}
	return t.rows[len(t.rows)-1].at
}

// Suggest returns a suggestion for each path that a delivery came to since then, in their order,
// each with a name of its own. The zero time: all that are known.
func (s *Set) Suggest(since time.Time) (all []*Suggestion) {
	for _, found := range s.snapshot() {
		all = append(all, found.newSuggestion(since))
	}
	return slices.DeleteFunc(all, func(s *Suggestion) bool { return s == nil })
}

// Missed returns how many deliveries of further paths were not looked at.
func (s *Set) Missed() int { return s.missed }

// named is a table with the name of its route.
type named struct {
	*table
	name string
}

func (n named) newSuggestion(since time.Time) *Suggestion {
	return n.table.newSuggestion(n.name, since)
}

// snapshot returns the tables as they are now, by their paths. It may be used beside s.
func (s *Set) snapshot() (all []named) {
	names := map[string]int{}
	for _, t := range s.tables {
		names[t.route]++
	}
	tables := slices.SortedFunc(slices.Values(s.tables), func(a, b *table) int {
		return strings.Compare(a.path, b.path)
	})
	for _, t := range tables {
		name := t.route
		if name == "" {
			name = routeName(t.path)
			if names[name]++; names[name] > 1 {
				name = fmt.Sprintf("%s-%d", name, names[name])
			}
		}
		all = append(all, named{t.snapshot(), name})
	}
	return all
}

// generalPath returns a raw path with variables for the segments that look like an ID, and for
// those that a route cannot name, such as caf%C3%A9.
func generalPath(raw []byte) (path string, vars []naming.PathVar) {
	segments := bytes.Split(raw, []byte{'/'})
	for i, s := range segments {
		if !isIDSegment(string(s)) && naming.IsLiteral(string(s)) {
			continue
		}
		name := fmt.Sprintf("id%d", len(vars)+1)
		vars = append(vars, naming.PathVar{Name: name, Raw: s})
		segments[i] = []byte("{" + name + "}")
	}
	return string(bytes.Join(segments, []byte{'/'})), vars
}

func isIDSegment(s string) bool {
	digits := 0
	for _, r := range s {
		if r >= '0' && r <= '9' {
			digits++
		}
	}
	mixed := len(s) >= 16 && strings.ToLower(s) != s && strings.ToUpper(s) != s && digits > 0
	return s != "" && (digits == len(s) || digits >= 3 && len(s) >= 8 || mixed || len(s) > 64)
}

// routeName returns a name for the route of a path: its last segment that is no variable.
func routeName(path string) string {
	segments := strings.Split(path, "/")
	for _, s := range slices.Backward(segments) {
		name := strings.Trim(strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
				return r
			case r >= 'A' && r <= 'Z':
				return r + 'a' - 'A'
			}
			return '-'
		}, s), "-")
		if name != "" && !strings.HasPrefix(s, "{") {
			return name[:min(len(name), 40)]
		}
	}
	return "all"
}
