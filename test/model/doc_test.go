package model

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const (
	page       = "scenarios.txt"
	tableBegin = "<!-- generated: scenarios -->\n"
	tableEnd   = "<!-- end -->\n"
)

// holdThePage compares the table in scenarios.txt with what was found; -update writes it.
func holdThePage(t *testing.T, found string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	old, after, closed := strings.Cut(rest, tableEnd)
	switch {
	case !ok || !closed:
		t.Fatalf("%s has no place for the scenarios: give it the lines %q and %q", page, tableBegin, tableEnd)
	case old == found:
	case *update:
		if err := os.WriteFile(page, []byte(before+tableBegin+found+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s says otherwise: go test ./test/model -run Scenario -update writes the table anew", page)
	}
}

// heading says what a line has: the scenario, its deliveries, what may happen, and how many states
// were seen.
const heading = "- *scenario*: its deliveries; what may happen, at any step; states\n"

func (sc *scenario) line(states int) string {
	return fmt.Sprintf("- %s: %s; %s; %d\n", sc.name, sc.deliveries(), sc.mayHappen(), states)
}

// deliveries says what each asks for: "A waits, B" are two events of which the first waits.
func (sc *scenario) deliveries() string {
	var all []string
	for d := range sc.deliveryCount {
		s := string(rune('A' + sc.events[d]))
		for _, w := range []struct {
			is   bool
			word string
		}{{sc.waits[d] && !sc.latest[d], " waits"}, {sc.latest[d], " waits as the latest"}, {sc.attach[d],
			" attaches"}, {sc.holds[d], " may be held"}, {sc.byAPI[d], " by the lock API"},
			{sc.none[d], " under strategy none"}, {sc.parkWaits[d], " may be parked there"},
			{sc.parkAtOnce[d] && !sc.parkAlways, " parked at once"},
			{sc.parkAtOnce[d] && sc.parkAlways, " parked always"}, {sc.parkRuns[d], " may be parked"}} {
			if w.is {
				s += w.word
			}
		}
		all = append(all, s)
	}
	s := strings.Join(all, ", ")
	if sc.lockOf[1] != 0 {
		s += "; a lock for each event"
	}
	return s
}

func (sc *scenario) mayHappen() string {
	b := &sc.budget
	var all []string
	for _, w := range []struct {
		times uint8
		word  string
	}{
		{b.ambiguous, "lost answer"}, {b.crash, "crash"}, {b.expire, "session's end"}, {b.unheard, "session given up"},
		{b.hangUp, "sender hangs up"},
		{b.cancel, "cancel"}, {b.force, "force release"}, {b.forget, "forget"}, {b.ask, "the service is asked"},
		{b.guard, "guard"}, {b.beat, "heartbeat"}, {b.age, "`max_duration`"}, {b.old, "`max_age`"},
		{b.answer, "the time of a kept answer is over"},
		{b.run, "run or rerun"}, {b.again, "run again"}, {b.down, "given to the others"},
		{b.pause, "pause"}, {b.resume, "resume"},
	} {
		if w.times > 0 {
			all = append(all, strings.TrimPrefix(fmt.Sprintf("%d× %s", w.times, w.word), "1× "))
		}
	}
	for _, w := range []struct {
		is   bool
		word string
	}{
		{sc.cuts, "cut answers"}, {sc.fails, "500"}, {sc.unreachable, "upstream away"}, {sc.challenges, "challenges"},
		{sc.final, "cancels are final"}, {sc.apart, "kept answers apart from their records"},
		{sc.block, "`on_unknown: block`"}, {sc.once, "`idempotency.attempts: 1`"}, {sc.releaseDelay, "`release_delay`"},
		{sc.limited() && sc.limits[0] == sc.limits[1], "a limit of 1 over all"},
		{sc.limited() && sc.limits[0] != sc.limits[1], "a limit of 1 here and of 2 there"},
		{sc.rests, "nothing is claimed before it has waited"}, {sc.letters, "dead letters"},
		{sc.skips, "cancels are skips"}, {sc.unrouted != [maxProcesses]bool{}, "a process without the route"},
		{sc.order != [maxEvents]uint8{}, "A is newer than B"}, {sc.skipStale, "what is older does not run"},
		{sc.together, "places of one request"},
	} {
		if w.is {
			all = append(all, w.word)
		}
	}
	return strings.Join(all, ", ")
}
