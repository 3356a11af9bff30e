package worker

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// limitedService takes so many requests in each second, and refuses the others for a second.
type limitedService struct {
	most           int
	second         time.Time
	taken          int
	tries, refused int
}

func (l *limitedService) takes(now time.Time) bool {
	if s := now.Truncate(time.Second); !s.Equal(l.second) {
		l.second, l.taken = s, 0
	}
	l.tries++
	if l.taken++; l.taken > l.most {
		l.refused++
		return false
	}
	return true
}

// TestAServiceThatIsBusyIsNotMetWithAHerd: of 1 000 workflows that wait for a service that takes 50 a
// second, at most one try in twenty is refused, and all go through at half of its rate or more.
func TestAServiceThatIsBusyIsNotMetWithAHerd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, service, done := newSlots(16), &limitedService{most: 50}, 0
		began, over := time.Now(), time.Duration(0)
		var try func(workflow string, tries int)
		try = func(workflow string, tries int) {
			s.join("r", workflow, func(turn *turn) {
				time.AfterFunc(5*time.Millisecond, func() {
					if service.takes(time.Now()) {
						done++
						over = time.Since(began)
					} else {
						s.refused("r", time.Second)
						time.AfterFunc(max(time.Second, pauseAfter(firstPause, mostPause, tries)), func() { try(workflow, tries+1) })
					}
					turn.leave()
				})
			})
		}
		for i := range 1000 {
			try(fmt.Sprint(i), 1)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if done != 1000 || service.refused*20 > service.tries || over > 50*time.Second {
			t.Errorf("%d went through in %v, and %d of %d tries were refused", done, over, service.refused, service.tries)
		}
		t.Logf("%d went through in %v, and %d of %d tries were refused", done, over, service.refused, service.tries)
		s.close()
	})
}

// TestARouteIsLeftAloneAsLongAsItsServiceAsks, and then met with one, two, four tries a second. Other
// routes go on.
func TestARouteIsLeftAloneAsLongAsItsServiceAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(16)
		s.refused("asked", 20*time.Second)
		s.line("asked", "a", 1000, time.Millisecond)
		s.line("other", "o", 100, time.Millisecond)
		after := func(d time.Duration, want int) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if n := s.begun["asked"]; n != want {
				t.Errorf("%d tries have begun, want %d", n, want)
			}
		}
		after(20*time.Second-1, 0)
		if s.begun["other"] != 100 {
			t.Errorf("the other route: %v", s.begun)
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
	p.refuse(now, time.Second)
	p.begin(now.Add(time.Second))
	p.begin(now.Add(time.Hour))
	if p.rate != 2*firstRate {
		t.Errorf("%v tries a second after two", p.rate)
	}
}

// TestARateThatWasRefusedIsApproachedSlowly from half of it.
func TestARateThatWasRefusedIsApproachedSlowly(t *testing.T) {
	now := time.Now()
	p := pace{rate: 64, closedUntil: now.Add(-time.Minute)}
	p.refuse(now, time.Second)
	p.refuse(now.Add(time.Millisecond), time.Second) // of a try that had begun before
	var rates []float64
	for at := p.next; len(rates) < 8; at = at.Add(time.Second) {
		p.begin(at)
		rates = append(rates, p.rate)
	}
	if got := fmt.Sprint(rates); got != "[1 2 4 8 16 32 36 40]" {
		t.Errorf("%s tries a second", got)
	}
}
