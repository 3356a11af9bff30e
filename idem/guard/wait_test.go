package guard

import (
	"testing"
	"time"
)

func TestTheWaiterLimitKnowsSinceWhenTheOldestWaits(t *testing.T) {
	var w waiterLimit
	check := func(want int, since time.Time) {
		t.Helper()
		if n, got := w.countWaiters(); n != want || !got.Equal(since) {
			t.Errorf("%d wait since %v, want %d since %v", n, got, want, since)
		}
	}
	check(0, time.Time{})
	first := w.addWaiter("a", 2, 3, noon)
	second := w.addWaiter("b", 2, 3, noon.Add(time.Second))
	third := w.addWaiter("a", 2, 3, noon.Add(2*time.Second))
	check(3, noon)
	if w.addWaiter("c", 2, 3, noon) != nil {
		t.Error("more came in than may wait")
	}
	w.removeWaiter("b", second)
	check(2, noon)
	if w.addWaiter("a", 2, 3, noon) != nil {
		t.Error("more came in than may wait in one workflow")
	}
	w.removeWaiter("a", first)
	check(1, noon.Add(2*time.Second))
	w.removeWaiter("a", third)
	check(0, time.Time{})
	if len(w.byWorkflow) != 0 {
		t.Errorf("%v", w.byWorkflow)
	}
}
