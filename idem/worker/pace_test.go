package worker

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// limitedService takes so many requests in each second, and refuses the others for a second.
type limitedService struct {
	mu             sync.Mutex
	most           int
	second         time.Time
	taken          int
	tries, refused int
	lastTaken      time.Time
}

func (l *limitedService) takes(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := now.Truncate(time.Second); !s.Equal(l.second) {
		l.second, l.taken = s, 0
	}
	l.tries++
	if l.taken++; l.taken > l.most {
		l.refused++
		return false
	}
	l.lastTaken = now
	return true
}

// TestAServiceThatIsBusyIsNotMetWithAHerd: of 1 000 workflows that wait for a service that takes 50
// a second, at most one try in twenty is refused, and all go through at half of its rate or more.
func TestAServiceThatIsBusyIsNotMetWithAHerd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, service, began := newSlots(16), &limitedService{most: 50}, time.Now()
		var try func(workflow string, tries int)
		try = func(workflow string, tries int) {
			s.joinQueue("r", workflow, func(slot *trySlot) {
				time.AfterFunc(5*time.Millisecond, func() {
					if !service.takes(time.Now()) {
						s.noteRefusal("r", time.Second)
						time.AfterFunc(max(time.Second, pauseAfter(firstPause, mostPause, tries)), func() {
							try(workflow, tries+1)
						})
					}
					slot.giveUpSlot()
				})
			})
		}
		for i := range 1000 {
			try(fmt.Sprint(i), 1)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		done, over := service.tries-service.refused, service.lastTaken.Sub(began)
		if done != 1000 || service.refused*20 > service.tries || over > 50*time.Second {
			t.Errorf("%d went through in %v, and %d of %d tries were refused", done, over, service.refused,
				service.tries)
		}
		t.Logf("%d went through in %v, and %d of %d tries were refused", done, over, service.refused, service.tries)
		s.close()
	})
}

// TestARouteIsLeftAloneAsLongAsItsServiceAsks, and then met with one, two, four tries a second.
// Other routes go on.
func TestARouteIsLeftAloneAsLongAsItsServiceAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(16)
		s.noteRefusal("asked", 20*time.Second)
		s.line("asked", "a", 1000, time.Millisecond)
		s.line("other", "o", 100, time.Millisecond)
		after := func(d time.Duration, want int) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if n := s.count("asked"); n != want {
				t.Errorf("%d tries have begun, want %d", n, want)
			}
		}
		after(20*time.Second-1, 0)
		if s.count("other") != 100 {
			t.Errorf("the other route: %d", s.count("other"))
		}
		after(time.Second, 1)
		after(time.Second, 1+2)
		after(time.Second, 1+2+4)
		after(time.Second, 1+2+4+8)
		s.close()
	})
}

// TestTheRateOfAnIdleRouteDoesNotGrow: only tries show that the service takes more.
func TestTheRateOfAnIdleRouteDoesNotGrow(t *testing.T) {
	now := time.Now()
	var p pace
	p.noteRefusal(now, time.Second)
	p.noteBegin(now.Add(time.Second))
	p.noteBegin(now.Add(time.Hour))
	if p.rate != 2*firstRate {
		t.Errorf("%v tries a second after two", p.rate)
	}
}

// TestARateThatWasRefusedIsApproachedSlowly from half of it.
func TestARateThatWasRefusedIsApproachedSlowly(t *testing.T) {
	now := time.Now()
	p := pace{rate: 64, closedUntil: now.Add(-time.Minute)}
	p.noteRefusal(now, time.Second)
	p.noteRefusal(now.Add(time.Millisecond), time.Second) // of a try that had begun before
	var rates []float64
	for at := p.next; len(rates) < 8; at = at.Add(time.Second) {
		p.noteBegin(at)
		rates = append(rates, p.rate)
	}
	if got := fmt.Sprint(rates); got != "[1 2 4 8 16 32 36 40]" {
		t.Errorf("%s tries a second", got)
	}
}
