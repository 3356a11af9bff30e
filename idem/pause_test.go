package idem

import (
	"strings"
	"testing"
	"time"
)

// A sender that is refused comes again at the end of the pause, where that is near, and else often
// enough to be there soon after a person resumes it.
func TestASenderComesAgainAtTheEndOfAPauseOrInAMinute(t *testing.T) {
	since := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct{ lasts, passed, want time.Duration }{
		{0, 0, time.Minute},
		{0, time.Hour, time.Minute},
		{0, 365 * 24 * time.Hour, time.Minute},
		{time.Hour, 0, time.Minute},
		{time.Hour, 59 * time.Minute, time.Minute},
		{time.Hour, 59*time.Minute + time.Second, 59 * time.Second},
		{30 * time.Second, 10 * time.Second, 20 * time.Second},
		{30 * time.Second, 29*time.Second + 500*time.Millisecond, time.Second},
		{30 * time.Second, time.Hour, time.Second}, // the ledger is about to end it
	} {
		p := &Pause{Since: since, For: c.lasts}
		if got := p.RetryAfter(since.Add(c.passed)); got != c.want {
			t.Errorf("%v after the begin of a pause for %v: %v, want %v", c.passed, c.lasts, got, c.want)
		}
	}
}

func TestAPauseIsDueAtItsEndOrInAnHour(t *testing.T) {
	since := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	open, bounded := &Pause{Since: since}, &Pause{Since: since, For: 3 * time.Hour}
	if until := open.Until(); !until.IsZero() {
		t.Errorf("a pause without an end ends at %v", until)
	}
	if due := open.Due(); !due.Equal(since.Add(time.Hour)) {
		t.Errorf("a pause without an end is due at %v", due)
	}
	if until, due := bounded.Until(), bounded.Due(); !until.Equal(since.Add(3*time.Hour)) || !due.Equal(until) {
		t.Errorf("a pause for three hours ends at %v and is due at %v", until, due)
	}
}

func TestAPauseIsDrainedWhenNothingRunsAndNothingCanBegin(t *testing.T) {
	if s := (PauseState{Waiting: 3, Parked: 2}); !s.Drained() {
		t.Error("what waits was taken for work")
	}
	for name, s := range map[string]PauseState{"one runs": {Running: 1},
		"a process has not heard": {Unacknowledged: []string{"a"}}, "not all was counted": {More: true}} {
		if s.Drained() {
			t.Errorf("drained although %s", name)
		}
	}
}

func TestAPauseScopeIsARouteOrAPatternOfWorkflows(t *testing.T) {
	for text, want := range map[string]PauseScope{
		"route:stripe":         {Route: "stripe"},
		"route:workflow:x":     {Route: "workflow:x"},
		"workflow:stripe/*":    {Workflow: "stripe/*"},
		"workflow:route:x":     {Workflow: "route:x"},
		"workflow:*":           {Workflow: "*"},
		"workflow: a b 100% ä": {Workflow: " a b 100% ä"},
		pauseOfRoute + strings.Repeat("x",
			maxPauseScope-len(pauseOfRoute)): {Route: strings.Repeat("x", maxPauseScope-len(pauseOfRoute))},
	} {
		got, err := ParsePauseScope(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%.40q: %+v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "stripe", "route:", "workflow:", "Route:x", "route:\xff",
		pauseOfRoute + strings.Repeat("x", maxPauseScope+1-len(pauseOfRoute))} {
		if got, err := ParsePauseScope(text); err == nil || !strings.Contains(err.Error(), "give route:NAME") ||
			len(err.Error()) > 300 || got != (PauseScope{}) {
			t.Errorf("%.40q: %+v %v", text, got, err)
		}
	}
}

func TestAPauseCoversItsRouteOrTheWorkflowsOfItsPattern(t *testing.T) {
	route, workflow := PauseScope{Route: "stripe"}, PauseScope{Workflow: "stripe/*"}
	for _, c := range []struct {
		scope           PauseScope
		route, workflow string
		want            bool
	}{
		{route, "stripe", "x", true},
		{route, "other", "stripe", false},
		{route, "", "", false},
		{workflow, "x", "stripe/1", true},
		{workflow, "stripe/1", "x", false},
		{workflow, "stripe/*", "", false},
	} {
		if got := c.scope.Covers(c.route, c.workflow); got != c.want {
			t.Errorf("%s covers route %q, workflow %q: %v", c.scope, c.route, c.workflow, got)
		}
	}
}

func TestAStarStandsForAnyCharacters(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false},
		{"a", "a", true}, {"a", "ab", false}, {"a", "ba", false},
		{"*", "", true}, {"*", "a/b", true},
		{"a*", "a", true}, {"a*", "ab", true}, {"a*", "ba", false},
		{"*a", "a", true}, {"*a", "ba", true}, {"*a", "ab", false},
		{"a*a", "a", false}, {"a*a", "aa", true}, {"a*a", "aba", true}, {"a*a", "abab", false},
		{"a*b*c", "abc", true}, {"a*b*c", "axbxbxc", true}, {"a*b*c", "acb", false}, {"a*b*c", "abcb", false},
		{"a*b*c", "axc", false},
		{"a**c", "ac", true}, {"*ab*ab", "ab", false}, {"*ab*ab", "abab", true},
	} {
		if got := MatchPattern(c.pattern, c.text); got != c.want {
			t.Errorf("%q matches %q: %v", c.pattern, c.text, got)
		}
	}
}
