package guard

import (
	"testing"
	"time"
)

func TestTheWaiterLimitKnowsSinceWhenTheOldestWaits(t *testing.T) {
	var w waiterLimit
	check := func(want int, since time.Time) {
		t.Helper()
		if n, got := w.waiting(); n != want || !got.Equal(since) {
			t.Errorf("%d wait since %v, want %d since %v", n, got, want, since)
		}
	}
	check(0, time.Time{})
	first := w.enter("a", 2, 3, noon)
	second := w.enter("b", 2, 3, noon.Add(time.Second))
	third := w.enter("a", 2, 3, noon.Add(2*time.Second))
	check(3, noon)
	if w.enter("c", 2, 3, noon) != nil {
		t.Error("more came in than may wait")
	}
	w.leave("b", second)
	check(2, noon)
	if w.enter("a", 2, 3, noon) != nil {
		t.Error("more came in than may wait in one workflow")
	}
	w.leave("a", first)
	check(1, noon.Add(2*time.Second))
	w.leave("a", third)
	check(0, time.Time{})
	if len(w.byWorkflow) != 0 {
		t.Errorf("%v", w.byWorkflow)
	}
}
