package worker

import (
	"slices"
	"time"
)

// routeLine is what waits of one route, and what is known of it.
type routeLine struct {
	// workflows are those that wait, in the order in which they are served: each is served once,
	// and then goes to the end. waits has the line of each.
	workflows []string
	waits     map[string][]*trySlot
	underWay  int           // tries that have begun and not ended
	used      time.Duration // slot time so far
	usual     time.Duration // how long its calls take, those that hang as far as their slot counted
	pace      pace
}

const (
	// firstUsual is how long a call is taken to last of a route of which no call has ended.
	firstUsual = 250 * time.Millisecond
	// hangsAfter is how many times longer than usual a call may take before it counts as one that
	// hangs.
	hangsAfter = 4
	// leastPatience and mostPatience bound how long the slot of a call counts.
	leastPatience = time.Second
	mostPatience  = 10 * time.Second
)

// slotPatience returns how long the slot of a call of r counts against the limit of all routes.
func (r *routeLine) slotPatience() time.Duration {
	return min(max(hangsAfter*r.usual, leastPatience), mostPatience)
}

// noteCall records how long a call took. One that hung counts as its patience, so that few of them
// do not make the others wait longer.
func (r *routeLine) noteCall(took time.Duration) {
	r.usual += (min(took, r.slotPatience()) - r.usual) / 8
}

func (r *routeLine) isActive() bool { return r.underWay > 0 || len(r.workflows) > 0 }

// isBefore reports whether r is served before other.
func (r *routeLine) isBefore(other *routeLine) bool {
	if r.underWay != other.underWay {
		return r.underWay < other.underWay
	}
	return r.used < other.used
}

// addWaiter adds a place to the line of its workflow.
func (r *routeLine) addWaiter(t *trySlot) {
	if r.waits == nil {
		r.waits = map[string][]*trySlot{}
	}
	if len(r.waits[t.workflow]) == 0 {
		r.workflows = append(r.workflows, t.workflow)
	}
	r.waits[t.workflow] = append(r.waits[t.workflow], t)
}

// takeNext returns the place that is next, and removes it.
func (r *routeLine) takeNext() *trySlot {
	workflow := r.workflows[0]
	r.workflows = r.workflows[1:]
	line := r.waits[workflow]
	t := line[0]
	line[0] = nil
	if line = line[1:]; len(line) == 0 {
		delete(r.waits, workflow)
		return t
	}
	r.waits[workflow] = line
	r.workflows = append(r.workflows, workflow)
	return t
}

// removeWaiter removes a place that waits.
func (r *routeLine) removeWaiter(t *trySlot) {
	line := slices.DeleteFunc(r.waits[t.workflow], func(o *trySlot) bool { return o == t })
	if len(line) > 0 {
		r.waits[t.workflow] = line
		return
	}
	delete(r.waits, t.workflow)
	r.workflows = slices.DeleteFunc(r.workflows, func(w string) bool { return w == t.workflow })
}
