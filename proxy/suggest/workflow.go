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
	events := v.firstDeliveries(event)
	var all []*scope
	for i := range v.members {
		m := &v.members[i]
		if m.isArray || thingRank(m.path) < 0 || m.isMostly(kindBool) || m.isMostly(kindTime, kindNow) ||
			ofAttempt(m.path) ||
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
			s.overlaps += v.overlapCount(rows)
		}
		all = append(all, s)
	}
	found, hints = chooseScope(v, all)
	for _, s := range all {
		if s != found {
			others = append(others, s.member)
		}
	}
	return found, others, hints
}

// firstDeliveries returns the first delivery of each event.
func (v *view) firstDeliveries(event *candidate) (rows []int) {
	if event == nil {
		event = &candidate{key: v.bodyKey()}
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

func (v *view) overlapCount(rows []int) (n int) {
	for i, a := range rows {
		for _, b := range rows[i+1:] {
			if v.rows[b].at.Before(v.rows[a].endTime()) && !v.rows[a].endTime().Equal(v.rows[a].at) {
				n++
			}
		}
	}
	return n
}

// stoppedCount counts the events that came while another one of their workflow ran, as of names it;
// nil is one workflow for all.
func (v *view) stoppedCount(events []int, of *member) (n int) {
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
		if free[workflow].Before(r.endTime()) {
			free[workflow] = r.endTime()
		}
	}
	return n
}

// chooseScope returns the narrowest scope that has two events of a value on average, if the others
// are wider ones of it. If they are not, what comes first in things decides.
func chooseScope(v *view, all []*scope) (found *scope, hints []string) {
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
		if isDeterminedBy(v.keyOf(best.member), v.keyOf(s.member)) {
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
