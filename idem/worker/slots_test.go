package worker

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// newSlots returns slots of a process to which no delivery comes.
func newSlots(running int) *slots {
	return &slots{running: func() int { return running }, busy: func() time.Duration { return 0 }}
}

// entered waits in the line, and returns its place when that has a slot.
func (s *slots) entered() *trySlot {
	given := make(chan struct{})
	t := s.joinQueue("", "w", func(*trySlot) { close(given) })
	<-given
	return t
}

// TestWhileTheUpstreamIsAwayOneTryAsks: then as many go on as may.
func TestWhileTheUpstreamIsAwayOneTryAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(4)
		for range away {
			slot := s.entered()
			s.noteOutcome(false)
			slot.giveUpSlot()
		}
		entered := make(chan *trySlot, 8)
		for range 8 {
			s.joinQueue("r", "w", func(t *trySlot) { entered <- t })
		}
		if len(entered) > 0 {
			t.Fatal("a try without a pause")
		}
		time.Sleep(mostSilence)
		synctest.Wait()
		if len(entered) != 1 {
			t.Fatalf("%d tries while one asks whether the upstream is back", len(entered))
		}
		if s.noteOutcome(true); len(entered) != 4 {
			t.Fatalf("%d tries go on, and four may", len(entered))
		}
		if (<-entered).giveUpSlot(); len(entered) != 4 {
			t.Fatalf("%d tries go on after one has ended, and four may", len(entered))
		}
	})
}

// TestATurnThatHasLeftTheLineIsSkipped, and gives nothing back twice.
func TestATurnThatHasLeftTheLineIsSkipped(t *testing.T) {
	s := newSlots(1)
	first := s.entered()
	gone := s.joinQueue("r", "w", func(*trySlot) { t.Error("it had left the line") })
	last := false
	s.joinQueue("r", "w", func(*trySlot) { last = true })
	gone.giveUpSlot()
	gone.giveUpSlot()
	if last {
		t.Fatal("two have the only slot")
	}
	if first.giveUpSlot(); !last {
		t.Fatal("the slot is free, and the next one does not get it")
	}
	first.giveUpSlot()
	s.joinQueue("r", "w", func(*trySlot) { t.Error("two have the only slot") })
	s.close()
}

// TestTheLineIsServedInItsOrder: an event that is tried again does not overtake a queue that was
// ready before it, nor the other way round.
func TestTheLineIsServedInItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1)
		var order []int
		for i := range 6 {
			s.joinQueue("r", "w", func(t *trySlot) {
				order = append(order, i)
				if len(order) == 1 { // it fails, and is tried again
					time.AfterFunc(time.Second, func() {
						t.giveUpSlot()
						s.joinQueue("r", "w", func(*trySlot) { order = append(order, 6) })
					})
					return
				}
				time.AfterFunc(time.Second, t.giveUpSlot)
			})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !slices.Equal(order, []int{0, 1, 2, 3, 4, 5, 6}) {
			t.Errorf("served in the order %v", order)
		}
	})
}

// TestMoreSlotsAreUsedAtOnce: the limit can be reloaded while all tries go on.
func TestMoreSlotsAreUsedAtOnce(t *testing.T) {
	running := 2
	s := newSlots(0)
	s.running = func() int { return running }
	entered := 0
	for range 8 {
		s.joinQueue("r", "w", func(*trySlot) { entered++ })
	}
	if entered != 2 {
		t.Fatalf("%d tries go on, and two may", entered)
	}
	running = 5
	if s.serveWaiters(); entered != 5 {
		t.Errorf("%d tries go on, and five may", entered)
	}
}

// TestDeliveriesHavePriority: while they come, few tries begin, and more the moment that they end.
func TestDeliveriesHavePriority(t *testing.T) {
	for _, c := range []struct {
		what  string
		takes time.Duration // of each try
		busy  time.Duration // deliveries come for so long
		after time.Duration
		want  int // tries that have begun after that
	}{
		{"each slot is empty for as long as it was taken", 20 * time.Millisecond, time.Hour, 399 * time.Millisecond,
			2 * 10},
		{"or for 100 ms", 300 * time.Millisecond, time.Hour, 1999 * time.Millisecond, 2 * 5},
		{"tries that hang do not count after a second", time.Minute, time.Hour, 3999 * time.Millisecond, 2 * 4},
		{"but all slots are taken in the end", time.Minute, time.Hour, 59 * time.Second, 16},
		{"when no delivery comes any more, all are taken", time.Minute, 500 * time.Millisecond, 500 * time.Millisecond,
			16},
		{"just before that they cannot", time.Minute, 500 * time.Millisecond, 499 * time.Millisecond, 2},
		{"deliveries do not come", time.Minute, 0, 0, 16},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, began, tries := newSlots(16), time.Now(), 0
			s.busy = func() time.Duration { return max(c.busy-time.Since(began), 0) }
			for range 100 {
				s.joinQueue("r", "w", func(t *trySlot) {
					tries++
					time.AfterFunc(c.takes, t.giveUpSlot)
				})
			}
			time.Sleep(c.after)
			synctest.Wait()
			if s.mu.Lock(); tries != c.want {
				t.Errorf("%s: %d tries have begun after %v, want %d", c.what, tries, c.after, c.want)
			}
			s.mu.Unlock()
			s.close()
		})
	}
}

// scheduler runs tries that take as long as their route says, and counts how many of each route and
// workflow have begun.
type scheduler struct {
	*slots
	begun map[string]int
	order []string
}

func newScheduler(running int) *scheduler {
	return &scheduler{slots: newSlots(running), begun: map[string]int{}}
}

// count returns how many tries of a route have begun.
func (s *scheduler) count(route string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun[route]
}

// line lets n tries of a workflow wait, each of which takes so long.
func (s *scheduler) line(route, workflow string, n int, takes time.Duration) {
	for range n {
		s.joinQueue(route, workflow, func(t *trySlot) {
			s.begun[route]++
			s.order = append(s.order, workflow)
			time.AfterFunc(takes, func() { s.noteAnswer(route, takes); t.giveUpSlot() })
		})
	}
}

// TestARouteWhoseCallsHangHoldsNoOtherUp for longer than its patience, which is a second where
// nothing is known of it, and never has more under way than there are slots.
func TestARouteWhoseCallsHangHoldsNoOtherUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(16)
		for i := range 100 {
			s.line("hangs", string(rune('a'+i)), 1, time.Hour)
		}
		s.line("healthy", "h", 3, 10*time.Millisecond)
		time.Sleep(leastPatience - 1)
		synctest.Wait()
		if s.count("healthy") != 0 || s.count("hangs") != 16 {
			t.Fatalf("before its patience is over: %d of the route that hangs", s.count("hangs"))
		}
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		if s.count("healthy") != 3 {
			t.Errorf("after that: %d", s.count("healthy"))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.count("hangs") != 16 {
			t.Errorf("%d of the route that hangs are under way", s.count("hangs"))
		}
		s.close()
		time.Sleep(2 * time.Hour)
	})
}

// TestNoSlotCountsForLongerThanTheMostPatience, whatever calls of its route usually take, and the
// patience follows them.
func TestNoSlotCountsForLongerThanTheMostPatience(t *testing.T) {
	for usual, want := range map[time.Duration]time.Duration{
		time.Millisecond: leastPatience, 500 * time.Millisecond: 2 * time.Second, time.Hour: mostPatience,
	} {
		r := routeLine{usual: firstUsual}
		for range 100 {
			r.noteCall(usual)
		}
		if got := r.slotPatience(); got < want*99/100 || got > want {
			t.Errorf("calls take %v: a slot counts for %v, want %v", usual, got, want)
		}
	}
}

// TestRoutesShareTheSlotsAndWorkflowsTheirRoutes: a route with a long line gets no more than one
// with a short line, and a workflow with many events no more than another one.
func TestRoutesShareTheSlotsAndWorkflowsTheirRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(4)
		s.line("long", "many", 40, 100*time.Millisecond)
		s.line("long", "one", 1, 100*time.Millisecond)
		s.line("short", "few", 8, 100*time.Millisecond)
		time.Sleep(450 * time.Millisecond)
		synctest.Wait()
		if s.count("short") != 8 {
			t.Errorf("after five rounds of four: %d", s.count("short"))
		}
		s.mu.Lock()
		order := slices.Clone(s.order)
		s.mu.Unlock()
		if i := slices.Index(order, "one"); i < 0 || i > 8 {
			t.Errorf("the other workflow is number %d: %v", i, order)
		}
		s.close()
		time.Sleep(time.Minute)
	})
}

// TestOneSlotIsSharedByTimeAndNotByTries: a route with long calls does not get as many as one with
// short ones.
func TestOneSlotIsSharedByTimeAndNotByTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(1)
		s.line("slow", "s", 100, 400*time.Millisecond)
		s.line("quick", "q", 1000, 10*time.Millisecond)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if slow, quick := s.count("slow"), s.count("quick"); slow < 20 || slow > 30 || quick < 800 {
			t.Errorf("in 20 s %d of 400 ms and %d of 10 ms", slow, quick)
		}
		s.close()
		time.Sleep(time.Minute)
	})
}

// TestARouteThatWasIdleHasSavedNothingUp: it does not shut the others out when it comes back.
func TestARouteThatWasIdleHasSavedNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(1)
		s.line("busy", "b", 1000, 100*time.Millisecond)
		time.Sleep(50 * time.Second)
		s.line("idle", "i", 1000, 100*time.Millisecond)
		before := s.count("busy")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := s.count("busy") - before; n < 45 {
			t.Errorf("in ten seconds %d of the busy route, and %d of the one that came back", n, s.count("idle"))
		}
		s.close()
		time.Sleep(time.Minute)
	})
}
