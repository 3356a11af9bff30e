package suggest

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// maxRetry is how long after its end a failed delivery may come again to count as a retry of it.
const maxRetry = 24 * time.Hour

// candidate is a way to name events, and what speaks for it.
type candidate struct {
	members []*member
	key     key
	good    int           // repeats that it explains
	failed  int           // of these, repeats of a delivery that had failed
	exact   int           // of these, with the same body
	longest time.Duration // between two of them; of payloads alone
	ignore  []*member
}

func (c *candidate) templateText() string {
	if len(c.members) == 0 {
		return "{fingerprint}"
	}
	var text []string
	for _, m := range c.members {
		text = append(text, "{"+spelledSource(m.path)+"}")
	}
	return strings.Join(text, "/")
}

// spelledSource spells a header as senders write it.
func spelledSource(path string) string {
	name, found := strings.CutPrefix(path, "header.")
	if !found {
		return path
	}
	words := strings.Split(name, "-")
	for i, w := range words {
		if w != "" {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return "header." + strings.Join(words, "-")
}

// findEvent returns what names the events. nil: that is not known, and hint may say what might.
func (v *view) findEvent() (found *candidate, hints []string) {
	ids := v.idMembers()
	best := []*candidate{}
	for _, m := range ids {
		if m.distinct*5 < len(v.rows) {
			continue
		}
		c := v.judgeMembers(m)
		if c != nil {
			best = append(best, c)
		}
	}
	if found = v.chooseCandidate(best); found != nil {
		return found, nil
	}
	if found = v.findPair(ids); found != nil && len(best) == 0 {
		return found, nil
	}
	for _, m := range ids {
		if m.distinct == len(v.rows) && !isRequestID(m.path) && idRank(m.path) < 3 {
			hints = append(hints, "{"+spelledSource(m.path)+"}")
		}
	}
	if len(best) == 0 || !slices.ContainsFunc(best, func(c *candidate) bool { return !isThing(c.members[0]) }) {
		if c := v.judgePayload(); c != nil {
			return c, nil
		}
	}
	for _, c := range best {
		hints = append(hints, c.templateText())
	}
	return nil, hints
}

// idMembers are the members that could be part of an event's ID.
func (v *view) idMembers() (ids []*member) {
	for i := range v.members {
		m := &v.members[i]
		switch {
		case m.isArray, m.distinct < 2, !v.isEverywhere(m), ofRequest(m.path) && !isRequestID(m.path),
			ofAttempt(m.path) && idRank(m.path) < 0, m.isMostly(kindBool), m.isMostly(kindTime, kindNow),
			v.inBatch(m.path),
			strings.HasPrefix(m.path, "path."), idRank(m.path) < 0:
		default:
			ids = append(ids, m)
		}
	}
	return ids
}

// judgeMembers returns members as the name of events with what speaks for it; nil if nothing does,
// or if something speaks against it.
func (v *view) judgeMembers(members ...*member) *candidate {
	c := &candidate{members: members, key: v.keyOf(members...)}
	changed := map[int]bool{}
	for _, p := range c.key.repeatPairs() {
		if !v.addRepeat(c, p, changed) {
			return nil
		}
	}
	if c.good == 0 || !v.isProven(c) || v.missesRetries(c) {
		return nil
	}
	for i := range v.members {
		if changed[i] && !v.members[i].isArray {
			c.ignore = append(c.ignore, &v.members[i])
		}
	}
	return c
}

// addRepeat counts two deliveries of one name, and what changed between them. It returns false if
// they are two events.
func (v *view) addRepeat(c *candidate, p pair, changed map[int]bool) bool {
	failed, differ := v.rows[p.first].hasFailed(), v.differingMembers(p)
	for _, i := range differ {
		switch v.changeOf(&v.members[i]) {
		case changeOfContent:
			if !failed || !isNamedEvent(c.members) {
				return false
			}
		case changeUnclear:
			if !failed {
				return false
			}
		}
		changed[i] = true
	}
	c.good++
	if failed {
		c.failed++
	}
	if len(differ) > 0 {
		return true
	}
	c.exact++
	return v.rows[p.first].whole == v.rows[p.next].whole // else they differ in what no template reads
}

// isNamedEvent reports whether the names of members leave no doubt that they name events.
func isNamedEvent(members []*member) bool {
	return len(members) == 1 && idRank(members[0].path) <= 1
}

// isWhole reports whether a body has members, and all of them were told apart.
func (v *view) isWhole(r *row) bool {
	return !r.partial && slices.ContainsFunc(r.cells, func(c cell) bool { return v.members[c.memberIndex()].body })
}

type change uint8

const (
	changeOfContent change = iota
	changeOfAttempt
	changeUnclear
)

// changeOf says what it means that a member differs in two deliveries.
func (v *view) changeOf(m *member) change {
	switch {
	case ofAttempt(m.path):
		return changeOfAttempt
	case m.isArray, ofEvent(m.path):
		return changeOfContent
	case m.isMostly(kindNow) && !m.isMostly(kindNumber):
		return changeOfAttempt
	case m.distinct*10 >= m.present*9 && !m.isMostly(kindNumber, kindBool):
		return changeUnclear // such as an ID of the attempt
	}
	return changeOfContent
}

// isProven reports whether the repeats of c prove anything: equal members would also be equal in
// two notices of one thing.
func (v *view) isProven(c *candidate) bool {
	if c.failed*2 >= c.good {
		return true
	}
	for _, m := range c.members {
		if idRank(m.path) <= 1 && strings.HasPrefix(m.path, "header.") || idRank(m.path) == 0 {
			return true
		}
	}
	return slices.ContainsFunc(v.members, func(m member) bool {
		return m.body && !m.isArray && !slices.ContainsFunc(c.members, func(o *member) bool {
			return o.path == m.path
		}) && m.distinct*5 > len(v.rows) &&
			!ofAttempt(m.path) && (m.isMostly(kindTime, kindNow) ||
			m.distinct > 3 && len(c.members) == 1 && idRank(c.members[0].path) == 2)
	})
}

// missesRetries reports whether deliveries that failed come again under another name, and not under
// their own: then c names attempts.
func (v *view) missesRetries(c *candidate) bool {
	repeated := map[int]bool{}
	for _, p := range c.key.repeatPairs() {
		repeated[p.first] = true
	}
	missed := 0
	for _, p := range v.bodyKey().repeatPairs() {
		if v.rows[p.first].hasFailed() && !repeated[p.first] && c.key[p.first] != c.key[p.next] &&
			v.rows[p.next].at.Sub(v.rows[p.first].endTime()) < maxRetry {
			missed++
		}
	}
	return missed*5 > c.good+missed
}

// bodyKey names deliveries by body and query.
func (v *view) bodyKey() key {
	k := make(key, len(v.rows))
	for i := range k {
		k[i] = v.rows[i].whole
	}
	return k
}

// chooseCandidate returns the best of candidates that all fit; nil if they cannot be told apart.
func (v *view) chooseCandidate(all []*candidate) *candidate {
	all = slices.DeleteFunc(slices.Clone(all), func(c *candidate) bool { // a later event of the thing would be refused
		return isThing(c.members[0])
	})
	if len(all) == 0 {
		return nil
	}
	rank := func(c *candidate) int {
		r := idRank(c.members[0].path) * 10
		return r + min(9, strings.Count(c.members[0].path, "."))
	}
	slices.SortStableFunc(all, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(len(a.ignore), len(b.ignore)), cmp.Compare(rank(a), rank(b)))
	})
	if len(all) > 1 && len(all[0].ignore) == len(all[1].ignore) &&
		idRank(all[0].members[0].path) == idRank(all[1].members[0].path) &&
		(idRank(all[0].members[0].path) == 3 || rank(all[0]) == rank(all[1])) && !isSameKey(all[0].key, all[1].key) {
		return nil
	}
	if idRank(all[0].members[0].path) == 3 && all[0].failed == 0 && all[0].exact == 0 {
		return nil
	}
	return all[0]
}

// isThing reports whether a member names what an event is about, and not the event.
func isThing(m *member) bool {
	return idRank(m.path) == 3 && thingRank(m.path) >= 0 && thingRank(m.path) < len(things)
}

// isSameKey reports whether two keys name the same events.
func isSameKey(a, b key) bool { return isDeterminedBy(a, b) && isDeterminedBy(b, a) }

// isDeterminedBy reports whether deliveries that a gives one name have one name in b, too.
func isDeterminedBy(a, b key) bool {
	of := map[uint64]uint64{}
	for i := range a {
		if before, ok := of[a[i]]; ok && before != b[i] {
			return false
		}
		of[a[i]] = b[i]
	}
	return true
}

// findPair returns two members that name events together: an ID that names a thing or comes again
// each day, with what tells its events apart.
func (v *view) findPair(ids []*member) *candidate {
	var all []*candidate
	for _, m := range ids[:min(len(ids), 16)] {
		if isThing(m) {
			continue
		}
		for i := range v.members {
			x := &v.members[i]
			if x == m || x.isArray || !v.isEverywhere(x) || x.distinct < 2 || ofAttempt(x.path) || ofRequest(x.path) ||
				v.inBatch(x.path) || pairRank(x) < 0 {
				continue
			}
			c := v.judgeMembers(m, x)
			if c == nil || c.key.distinctCount()*5 < len(v.rows) || c.failed*2 < c.good && pairRank(x) > 1 {
				continue
			}
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(len(a.ignore), len(b.ignore)),
			cmp.Compare(pairRank(a.members[1]), pairRank(b.members[1])),
			cmp.Compare(idRank(a.members[0].path), idRank(b.members[0].path)))
	})
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// pairRank says how well a member tells the events of one thing apart; -1: not at all.
func pairRank(m *member) int {
	words := wordsOf(m.path, 1)
	switch {
	case m.isMostly(kindTime, kindNow):
		return 0
	case anyOf(words, "date", "day", "version", "revision", "sequence", "seq", "datum"):
		return 1
	case anyOf(words, "type", "event", "action", "status", "state", "topic"):
		return 2
	}
	return -1
}

// judgePayload returns the payload as the name of events, if deliveries that had failed came again;
// nil otherwise.
func (v *view) judgePayload() *candidate {
	c := &candidate{}
	for i := range v.members {
		if m := &v.members[i]; m.body && !m.isArray && v.changeOf(m) == changeOfAttempt && m.distinct > 1 {
			c.ignore = append(c.ignore, m)
		}
	}
	c.key = v.payloadKey(c.ignore)
	dated := slices.ContainsFunc(v.members, func(m member) bool {
		return m.body && m.isMostly(kindTime, kindNow) && m.distinct*5 > len(v.rows) &&
			!slices.ContainsFunc(c.ignore, func(o *member) bool {
				return o.path == m.path
			})
	})
	for _, p := range c.key.repeatPairs() {
		c.good++
		if v.rows[p.first].hasFailed() || dated {
			c.failed++
		}
		if v.rows[p.first].whole == v.rows[p.next].whole {
			c.exact++
		}
		c.longest = max(c.longest, v.rows[p.next].at.Sub(v.rows[p.first].endTime()))
	}
	if c.good == 0 || c.failed*20 < c.good*19 { // some came again after a success: they may be events of their own
		return nil
	}
	if v.payloadKey(nil).distinctCount() == c.key.distinctCount() {
		c.ignore = nil
	}
	return c
}

// payloadKey names deliveries by body and query without what is ignored.
func (v *view) payloadKey(ignored []*member) key {
	k := make(key, len(v.rows))
	for i := range v.rows {
		if len(ignored) == 0 || !v.isWhole(&v.rows[i]) {
			k[i] = v.rows[i].whole
			continue
		}
		sum := uint64(1469598103934665603)
		for j := range v.members {
			m := &v.members[j]
			if m.body && !slices.Contains(ignored, m) {
				sum = (sum ^ m.values[i]) * 1099511628211
			}
		}
		k[i] = sum | 1
	}
	return k
}
