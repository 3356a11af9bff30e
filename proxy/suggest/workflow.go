package suggest

import (
	"slices"
	"strings"
	"time"
)

// scope is a workflow that was found.
type scope struct {
	member   *member
	values   int     // how many there are
	each     float64 // events of one value
	overlaps int     // pairs of events of one value that ran at the same time
	partly   bool    // some deliveries lack it
}

// findWorkflow returns what the events are about, nil if that is not known, and the other members
// that might be it. hints are those of them that fit as well.
func (v *view) findWorkflow(event *candidate) (found *scope, others []*member, hints []string) {
	events := v.firsts(event)
	var all []*scope
	for i := range v.members {
		m := &v.members[i]
		if m.isArray || thingRank(m.path) < 0 || m.most(kindBool) || m.most(kindTime, kindNow) || ofAttempt(m.path) ||
			v.inBatch(m.path) || ofRequest(m.path) || m.present*5 < len(v.rows)*4 ||
			event != nil && slices.Contains(event.ignore, m) {
			continue
		}
		s := &scope{member: m, partly: m.present < len(v.rows)}
		of := map[uint64][]int{}
		for _, row := range events {
			if sum := m.values[row]; sum != 0 {
				of[sum] = append(of[sum], row)
			}
		}
		s.values = len(of)
		if s.values < 2 || len(events) < s.values*3/2 {
			continue
		}
		s.each = float64(len(events)) / float64(s.values)
		for _, rows := range of {
			s.overlaps += v.overlaps(rows)
		}
		all = append(all, s)
	}
	found, hints = choose(v, all)
	for _, s := range all {
		if s != found {
			others = append(others, s.member)
		}
	}
	return found, others, hints
}

// firsts returns the first delivery of each event.
func (v *view) firsts(event *candidate) (rows []int) {
	if event == nil {
		event = &candidate{key: v.wholes()}
	}
	seen := map[uint64]bool{}
	for i, sum := range event.key {
		if sum == 0 || !seen[sum] {
			rows = append(rows, i)
		}
		seen[sum] = true
	}
	return rows
}

func (v *view) overlaps(rows []int) (n int) {
	for i, a := range rows {
		for _, b := range rows[i+1:] {
			if v.rows[b].at.Before(v.rows[a].end()) && !v.rows[a].end().Equal(v.rows[a].at) {
				n++
			}
		}
	}
	return n
}

// stopped counts the events that came while another one of their workflow ran, as of names it; nil
// is one workflow for all.
func (v *view) stopped(events []int, of *member) (n int) {
	free := map[uint64]time.Time{} // when the last event of each workflow was over
	for _, row := range events {
		var workflow uint64
		if of != nil {
			workflow = of.values[row]
		}
		r := &v.rows[row]
		if r.at.Before(free[workflow]) {
			n++
		}
		if free[workflow].Before(r.end()) {
			free[workflow] = r.end()
		}
	}
	return n
}

// choose returns the narrowest scope that has two events of a value on average, if the others are
// wider ones of it. If they are not, what comes first in things decides.
func choose(v *view, all []*scope) (found *scope, hints []string) {
	if len(all) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(all, func(a, b *scope) int {
		if a.values != b.values {
			return b.values - a.values
		}
		return strings.Count(a.member.path, ".") - strings.Count(b.member.path, ".")
	})
	enough := slices.DeleteFunc(slices.Clone(all), func(s *scope) bool { return s.each < 2 })
	if len(enough) == 0 {
		enough = all
	}
	best := enough[0]
	for _, s := range enough[1:] {
		if determines(v.keyOf(best.member), v.keyOf(s.member)) {
			continue // it is wider
		}
		switch a, b := thingRank(best.member.path), thingRank(s.member.path); {
		case b < a:
			best = s
		case a == b:
			hints = append(hints, best.member.path, s.member.path)
		}
	}
	if slices.Contains(hints, best.member.path) {
		return nil, hints
	}
	return best, nil
}
