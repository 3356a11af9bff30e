package guard

import (
	"strconv"
	"testing"

	"hooklock/idem"
)

func TestAnEventIsOvertakenWhereAnotherExecutionIsInItsWay(t *testing.T) {
	var r refusals
	for _, step := range []struct {
		event  idem.Key
		holder idem.ExecutionID
		want   int
	}{
		{"a", "1", 0}, {"a", "1", 0}, {"b", "2", 0}, {"a", "2", 1}, {"a", "2", 0}, {"a", "1", 2}, {"b", "1", 1},
	} {
		if got := r.noteRefusal(step.holder, step.event); got != step.want {
			t.Errorf("%+v: %d", step, got)
		}
	}
}

func TestRefusalsAreRememberedUpToABound(t *testing.T) {
	var r refusals
	r.noteRefusal("1", "first")
	for i := range refusalsKept {
		r.noteRefusal("1", idem.Key(strconv.Itoa(i)))
	}
	if r.noteRefusal("2", "first") == 0 {
		t.Error("it was forgotten early")
	}
	for i := range 3 * refusalsKept {
		r.noteRefusal("3", idem.Key(strconv.Itoa(i)))
	}
	if n := len(r.now) + len(r.before); n > 2*refusalsKept {
		t.Errorf("%d are remembered", n)
	}
	if r.noteRefusal("4", "first") > 0 {
		t.Error("it was not forgotten")
	}
}
