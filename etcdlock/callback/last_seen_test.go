package callback

import (
	"fmt"
	"testing"

	"hooklock/idem"
)

func TestWhatIsRememberedOfOthersLocksIsBounded(t *testing.T) {
	for _, steps := range []int{0, 7, maxSteps} {
		var c lastSeen
		room := maxLastSeen / (1 + steps/8)
		for i := range room + 100 {
			l := idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: idem.ExecutionID(fmt.Sprint(i)),
				Steps: make([]idem.Step, steps)}}
			c.put(&l)
			if c.put(&l); c.get(l.Execution) != &l {
				t.Fatal("the newest one was dropped")
			}
			if i%2 == 1 && i < 10 {
				c.drop(l.Execution)
			}
		}
		weight := 0
		for _, l := range c.locks {
			weight += lockWeight(l)
		}
		if len(c.locks) != room || c.weight != weight {
			t.Errorf("%d steps: %d locks, and not %d; they weigh %d, and not %d", steps, len(c.locks), room, weight,
				c.weight)
		}
	}
}
