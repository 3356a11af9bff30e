package guard

import (
	"sync"
	"time"

	"hooklock/idem"
)

// Strategy fail_fast refuses an event at once and does not enqueue it. That alone would be unfair:
// a client whose event has just ended is there with the next one before those that were told to
// come later, and a workflow that is always busy would refuse some of them for ever. So an event
// that was refused because of one execution, and that meets another one when it comes again, has
// been overtaken. It is enqueued for a moment, and events that come meanwhile are behind it. While
// the same execution stands in the way, each refusal is at once.

// refusalsKept bounds the refusals that are remembered: at least the newest refusalsKept, and at
// most twice as many.
const refusalsKept = 4096

// refusals remembers which executions stood in the way of which events, in this process.
type refusals struct {
	mu          sync.Mutex
	now, before map[idem.Key]refusal
}

type refusal struct {
	holder    idem.ExecutionID
	overtaken int // times
}

// noteRefusal records that holder stands in the way of an event now, and returns how often the
// holder has changed since the first refusal; 0: it is the same one as before, or this is the first
// refusal.
func (r *refusals) noteRefusal(holder idem.ExecutionID, event idem.Key) (overtaken int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.now[event]
	if !known {
		last = r.before[event]
	}
	if last.holder == holder {
		return 0
	}
	if last.holder != "" {
		overtaken = last.overtaken + 1
	}
	if r.now == nil || len(r.now) >= refusalsKept {
		r.now, r.before = make(map[idem.Key]refusal), r.now
	}
	r.now[event] = refusal{holder, overtaken}
	return overtaken
}

// overtakenWait returns how long a refused event waits: the longer, the more often it was
// overtaken, so that it comes before those that were not. 0: it does not wait.
func (g *Guard) overtakenWait(r *idem.Request, v *idem.Verdict) time.Duration {
	p := r.Policy
	if v.Decision != idem.DecisionLocked || p.Strategy != idem.FailFast || p.Observe || !p.Idempotency ||
		v.Holder == "" || !v.ClosedUntil.IsZero() || g.MayPark(r, idem.ParkLocked) {
		return 0
	}
	return min(time.Duration(g.refusals.noteRefusal(v.Holder, r.Scope.Key))*g.options.OvertakenWait, p.WaitTimeout)
}
