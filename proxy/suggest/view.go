package suggest

import (
	"slices"
	"strings"
)

// view is a table as columns: what every member was in every delivery.
type view struct {
	rows    []row
	members []member
}

// member is a member of the deliveries of a path.
type member struct {
	path     string
	values   []uint64 // by row; 0: the row has none
	present  int
	distinct int
	kinds    [kindCount]int32
	body     bool // it counts for the fingerprint
	isArray  bool // it is the length of an array

	subscriptions map[uint64]string // their names by hash, if it names some
}

// isMostly reports whether nine tenths of the values are of one of kinds.
func (m *member) isMostly(kinds ...kind) bool {
	var n, all int32
	for k, count := range m.kinds {
		all += count
		if slices.Contains(kinds, kind(k)) { //nolint:gosec // below kindCount
			n += count
		}
	}
	return n*10 >= all*9
}

// newView returns rows of a table as columns.
func newView(t *table, rows []row) *view {
	v := &view{rows: rows, members: make([]member, len(t.names))}
	for i, path := range t.names {
		v.members[i] = member{
			path: strings.TrimSuffix(path, "#"), values: make([]uint64, len(rows)), kinds: t.kinds[i],
			isArray:       strings.HasSuffix(path, "#"),
			subscriptions: t.subscriptions[i],
			body:          !strings.HasPrefix(path, "header.") && !strings.HasPrefix(path, "path."),
		}
	}
	for i := range rows {
		for _, c := range rows[i].cells {
			v.members[c.memberIndex()].values[i] = c.valueSum()
		}
	}
	for i := range v.members {
		m := &v.members[i]
		seen := map[uint64]bool{}
		for _, sum := range m.values {
			if sum != 0 {
				m.present++
				seen[sum] = true
			}
		}
		m.distinct = len(seen)
	}
	return v
}

// isEverywhere reports whether all deliveries but one in two hundred have m.
func (v *view) isEverywhere(m *member) bool { return (len(v.rows)-m.present)*200 <= len(v.rows) }

// inBatch reports whether a path leads into an array that has more than one element in some
// delivery, so that it is one of several of a batch.
func (v *view) inBatch(path string) bool {
	for i := range v.members {
		a := &v.members[i]
		if !a.isArray || !strings.HasPrefix(path, a.path+"[") {
			continue
		}
		first := slices.IndexFunc(a.values, func(sum uint64) bool { return sum != 0 })
		if a.distinct > 1 || v.hasSecond(a.path, first) {
			return true
		}
	}
	return false
}

// hasSecond reports whether the array at path has a second element in a row.
func (v *view) hasSecond(path string, row int) bool {
	return row >= 0 && slices.ContainsFunc(v.members, func(m member) bool {
		return strings.HasPrefix(m.path, path+"[1]") && m.values[row] != 0
	})
}

// key is a column that names events: the same value is the same event.
type key []uint64

// keyOf combines columns; a row that lacks one has none.
func (v *view) keyOf(members ...*member) key {
	k := make(key, len(v.rows))
	for i := range k {
		sum := uint64(1469598103934665603)
		for _, m := range members {
			if m.values[i] == 0 {
				sum = 0
				break
			}
			sum = (sum ^ m.values[i]) * 1099511628211
		}
		k[i] = sum
	}
	return k
}

// pair is two deliveries with one key, one after the other.
type pair struct{ first, next int }

// repeatPairs returns each delivery beside the one before it that has the same key.
func (k key) repeatPairs() (all []pair) {
	last := map[uint64]int{}
	for i, sum := range k {
		if sum == 0 {
			continue
		}
		if before, ok := last[sum]; ok {
			all = append(all, pair{before, i})
		}
		last[sum] = i
	}
	return all
}

func (k key) distinctCount() int {
	seen := map[uint64]bool{}
	for _, sum := range k {
		if sum != 0 {
			seen[sum] = true
		}
	}
	return len(seen)
}

// differingMembers returns the members of the body that differ in two deliveries.
func (v *view) differingMembers(p pair) (all []int) {
	for i := range v.members {
		m := &v.members[i]
		if m.body && m.values[p.first] != m.values[p.next] {
			all = append(all, i)
		}
	}
	return all
}
