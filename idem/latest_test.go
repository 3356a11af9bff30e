package idem

import (
	"testing"
	"time"
)

// TestAClockThatIsSetBackDoesNotProlongTheQuiet: clocks of two replicas may differ, and one that
// was an hour ahead is not waited for.
func TestAClockThatIsSetBackDoesNotProlongTheQuiet(t *testing.T) {
	came := time.Now()
	s := Series{Since: came, NotBefore: came.Add(5 * time.Second)}
	for after, want := range map[time.Duration]time.Duration{
		0: 5 * time.Second, 4 * time.Second: time.Second, 5 * time.Second: 0, -time.Minute: 65 * time.Second,
		-61 * time.Second: 0, -time.Hour: 0,
	} {
		if got := s.Rests(came.Add(after)); max(got, 0) != want {
			t.Errorf("%v after it came it rests for %v, want %v", after, got, want)
		}
	}
	if got := (&Series{}).Rests(came); got > 0 {
		t.Errorf("what does not wait for newer ones rests for %v", got)
	}
}
