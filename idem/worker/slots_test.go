package worker

import (
	"context"
	"testing"
	"time"
)

// TestWhileTheUpstreamIsAwayOneTryAsks: then as many go on as may.
func TestWhileTheUpstreamIsAwayOneTryAsks(t *testing.T) {
	s := slots{running: func() int { return 4 }}
	for range away {
		leave, err := s.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.outcome(false)
		leave()
	}
	entered := make(chan func(), 8)
	for range 8 {
		go func() {
			if leave, err := s.enter(t.Context()); err == nil {
				entered <- leave
			}
		}()
	}
	probe := <-entered // after a pause
	select {
	case <-entered:
		t.Fatal("a second try while the first one asks whether the upstream is back")
	case <-time.After(50 * time.Millisecond):
	}
	s.outcome(true)
	for range 3 {
		<-entered
	}
	select {
	case <-entered:
		t.Fatal("five tries go on, and four may")
	case <-time.After(50 * time.Millisecond):
	}
	probe()
	<-entered
}

// TestAWaitForASlotEndsWithItsContext: who does not wait any more is in nobody's way.
func TestAWaitForASlotEndsWithItsContext(t *testing.T) {
	s := slots{running: func() int { return 1 }}
	leave, err := s.enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := s.enter(ctx)
		gone <- err
	}()
	cancel()
	if err := <-gone; err == nil {
		t.Fatal("no error for who gave up")
	}
	leave()
	if _, err := s.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
}
