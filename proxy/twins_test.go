package proxy

import (
	"fmt"
	"testing"
	"time"

	"hooklock/idem"
)

// A twin is another event with the same body, of the same route and workflow, within the window of
// the first. It is found once, whatever comes again.
func TestATwinIsFoundOnceAndWithinTheWindow(t *testing.T) {
	t.Parallel()
	table, now := newTwins(), time.Unix(1000, 0)
	const window = 10 * time.Minute
	for i, c := range []struct {
		route, workflow string
		body            byte
		key             string
		after           time.Duration
		of              string
	}{
		{"r", "w", 1, "a", 0, ""},
		{"r", "w", 1, "a", time.Second, ""}, // a duplicate
		{"r", "w", 1, "b", 0, "a"},
		{"r", "w", 1, "b", time.Second, ""}, // was found
		{"r", "w", 1, "c", 0, "a"},
		{"r", "w", 1, "b", 0, ""},
		{"r", "w", 2, "d", 0, ""},
		{"r", "v", 1, "e", 0, ""},
		{"q", "w", 1, "f", 0, ""},
		{"r", "w", 1, "g", window - 2*time.Second, "a"},
		{"r", "w", 1, "h", time.Nanosecond, ""}, // begins another window
		{"r", "w", 1, "a", window, "h"},
	} {
		now = now.Add(c.after)
		if of := table.findFirst(&twinScope{c.route, c.workflow, idem.Fingerprint{c.body}}, c.key, now,
			window); of != c.of {
			t.Errorf("%d: %s is a twin of %q, not of %q", i, c.key, of, c.of)
		}
	}
}

func TestTheTableOfTwinsIsBounded(t *testing.T) {
	t.Parallel()
	table, now := newTwins(), time.Unix(1000, 0)
	find := func(body int, key string) string {
		return table.findFirst(&twinScope{"r", fmt.Sprint(body), idem.Fingerprint{}}, key, now, time.Minute)
	}
	for i := range maxBodies + 1 {
		find(i, "first")
	}
	if len(table.bodies) != maxBodies || len(table.order) != maxBodies {
		t.Errorf("%d bodies, %d in order", len(table.bodies), len(table.order))
	}
	if of := find(0, "second"); of != "" {
		t.Errorf("the oldest is remembered: %s", of)
	}
	if of := find(2, "second"); of != "first" {
		t.Errorf("a newer one is not: %q", of)
	}
	for i := range 3 * maxTwins {
		find(2, fmt.Sprint(i))
	}
	for _, body := range table.bodies {
		if len(body.later) > maxTwins {
			t.Errorf("%d twins of one body are remembered", len(body.later))
		}
	}
}
