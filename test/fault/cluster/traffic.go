package cluster

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// Traffic is senders that behave as webhook senders do: each sends an event until it gets the
// upstream's answer, and then the next.
type Traffic struct {
	Senders   int
	Workflows int
	Route     string
	// Pause is how long a sender rests between two events, about.
	Pause time.Duration
	// Doors are where the replicas are now.
	Doors func() []string

	mu     sync.Mutex
	news   chan struct{}
	events []Event
	tries  int
	saw    map[string]int // answers by kind
}

// Event is one that got its answer.
type Event struct {
	Delivery
	Answer Answer
	Tries  int
}

// Start lets the senders work until ctx ends. Each still brings its last event to an end; the
// function returned waits for that.
func (t *Traffic) Start(ctx context.Context) (wait func()) {
	t.news, t.saw = make(chan struct{}), map[string]int{}
	var wg sync.WaitGroup
	for i := range t.Senders {
		wg.Go(func() {
			s := NewSender()
			for n := 0; ctx.Err() == nil; n++ {
				t.bring(s, Delivery{
					Route: t.Route, Event: fmt.Sprintf("%s-event-%d-%d", t.Route, i, n),
					Workflow: fmt.Sprintf("%s-%d", t.Route, rand.IntN(t.Workflows)),
				})
				if t.Pause > 0 {
					pause(ctx, t.Pause/2+rand.N(t.Pause))
				}
			}
		})
	}
	return wg.Wait
}

// bring sends an event until it is done. Now and then two copies are sent at once, and now and then
// one after its end.
func (t *Traffic) bring(s *Sender, d Delivery) {
	for tries := 1; ; tries++ {
		var copied <-chan Answer
		var b Answer
		if rand.IntN(8) == 0 {
			copied = s.Begin(context.Background(), t.door(), d)
		}
		a := s.Send(context.Background(), t.door(), d)
		t.count(a)
		if copied != nil {
			b = <-copied
			t.count(b)
			if b.Status == 200 && !b.Cut && (a.Status != 200 || a.Cut || b.Settled() && !a.Settled()) {
				a = b
			}
		}
		if copied != nil && a.Status != 200 && b.Parked() {
			a = b
		}
		if a.Status == 200 && !a.Cut || a.Parked() {
			t.done(Event{d, a, tries})
			return
		}
		pause(context.Background(), time.Duration(20+rand.IntN(80))*time.Millisecond)
	}
}

func (t *Traffic) door() string {
	doors := t.Doors()
	return doors[rand.IntN(len(doors))]
}

func (t *Traffic) count(a Answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tries++
	t.saw[a.String()]++
}

func (t *Traffic) done(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, e)
	close(t.news)
	t.news = make(chan struct{})
}

// Events are those that are done.
func (t *Traffic) Events() []Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Event(nil), t.events...)
}

// Saw counts the deliveries, and the answers by kind.
func (t *Traffic) Saw() (deliveries int, answers map[string]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	answers = map[string]int{}
	maps.Copy(answers, t.saw)
	return t.tries, answers
}

// AwaitMore waits until n more events are done.
func (t *Traffic) AwaitMore(tb testing.TB, n int) {
	tb.Helper()
	late := time.NewTimer(Patience)
	defer late.Stop()
	want := len(t.Events()) + n
	for {
		t.mu.Lock()
		news, enough := t.news, len(t.events) >= want
		t.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-news:
		case <-late.C:
			tb.Fatalf("no %d events got done within %v", n, Patience)
		}
	}
}

// Gap is the longest time after from in which no event got done.
func (t *Traffic) Gap(from time.Time) (longest time.Duration) {
	last := from
	for _, e := range t.Events() {
		if e.Answer.At.After(last) {
			longest = max(longest, e.Answer.At.Sub(last))
			last = e.Answer.At
		}
	}
	return max(longest, time.Since(last))
}

// Result counts events by what became of them.
type Result struct {
	Settled    int // their senders had the answer, and it was recorded
	Parked     int // were accepted, and took effect later
	Unrecorded int // their senders had the answer before it was recorded
	Repeated   int // took effect more than once, because nobody knew whether the first attempt had
	Reran      int // ran again after they were settled: that must not happen
}

// Check asserts what was promised to the senders. The traffic has ended.
func (t *Traffic) Check(tb testing.TB, u *Upstream) (r Result) {
	tb.Helper()
	effects, times := map[string]Effect{}, map[string]int{}
	for _, e := range u.Effects() {
		effects[e.Execution] = e
		times[e.Event]++
	}
	for _, e := range t.Events() {
		if times[e.Event] > 1 {
			r.Repeated++
		}
		if e.Answer.Parked() {
			r.Parked++
			if times[e.Event] == 0 {
				tb.Errorf("%s was accepted as %s, and never took effect", e.Event, e.Answer.Execution)
			}
			continue
		}
		if !e.Answer.Settled() {
			r.Unrecorded++
			continue
		}
		r.Settled++
		if _, ok := effects[e.Answer.Execution]; !ok {
			tb.Errorf("%s was answered for %s, which never took effect", e.Event, e.Answer.Execution)
		}
		if want := fmt.Sprintf("%s was done by %s", e.Event, e.Answer.Execution); e.Answer.Body != want {
			tb.Errorf("the answer for %s is %q, not %q", e.Event, e.Answer.Body, want)
		}
		for _, x := range u.Of(e.Event) {
			if x.Arrived.After(e.Answer.At) {
				r.Reran++
				tb.Errorf("%s ran again (%s, attempt %d), %v after its sender had the settled answer of %s",
					e.Event, x.Execution, x.Attempt, x.Arrived.Sub(e.Answer.At), e.Answer.Execution)
			}
		}
	}
	u.CheckFence()
	t.checkOrder(tb, u)
	return r
}

// checkOrder asserts that events of one sender and workflow took effect for the first time in the
// order in which it sent them: it sends the next one when it has an answer to the one before.
func (t *Traffic) checkOrder(tb testing.TB, u *Upstream) {
	tb.Helper()
	first := map[string]int{}
	for i, e := range u.Effects() {
		if _, again := first[e.Event]; !again {
			first[e.Event] = i
		}
	}
	last := map[string]Event{}
	for _, e := range t.Events() {
		i := strings.LastIndexByte(e.Event, '-')
		line := e.Event[:i] + " in " + e.Workflow
		if before, ok := last[line]; ok && first[before.Event] > first[e.Event] {
			tb.Errorf("%s took effect before %s, which its sender had been told of before", e.Event, before.Event)
		}
		last[line] = e
	}
}

// AwaitParked waits until every event that was accepted took effect, for as long as some do.
func (t *Traffic) AwaitParked(tb testing.TB, u *Upstream) {
	tb.Helper()
	for left := t.unrun(u); left > 0; {
		testkit.Until(tb, fmt.Sprintf("one of %d accepted events to take effect", left), func() bool {
			return t.unrun(u) < left
		})
		left = t.unrun(u)
	}
}

// unrun is how many accepted events have not taken effect.
func (t *Traffic) unrun(u *Upstream) (n int) {
	done := map[string]bool{}
	for _, e := range u.Effects() {
		done[e.Event] = true
	}
	for _, e := range t.Events() {
		if e.Answer.Parked() && !done[e.Event] {
			n++
		}
	}
	return n
}
