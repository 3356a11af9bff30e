package serve

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"hooklock/config"
	"hooklock/idem"
	"hooklock/proxy/parked"
)

// late is a Service whose time to end is over.
func late(t *testing.T) *Service {
	s := &Service{config: &config.Config{ShutdownTimeout: -time.Minute}}
	s.base, s.stopBase = context.WithCancelCause(t.Context())
	return s
}

// ends is what an end says, which does not wait for what hangs.
func ends(t *testing.T, s *Service) string {
	t.Helper()
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop() }()
	select {
	case err := <-stopped:
		if err == nil {
			t.Fatal("it says that everything has ended")
		}
		return err.Error()
	case <-time.After(30 * time.Second):
		t.Fatal("the end has not come")
	}
	return ""
}

func TestWhatHangsIsNamedAndTheEndGoesOn(t *testing.T) {
	hanging, ended := make(chan struct{}), make(chan struct{})
	defer func() { close(hanging); <-ended }()
	s, closed := late(t), false
	s.onStop("the first", func(context.Context) error { closed = true; return nil })
	s.onStop("a disk", func(context.Context) error { <-hanging; close(ended); return nil })
	s.serving.Go(func() { <-hanging })
	if said := ends(t, s); !strings.Contains(said, "stop a disk: it hangs") || !strings.Contains(said, "stop what runs beside: it hangs") {
		t.Error(said)
	}
	if !closed {
		t.Error("what was started before it was not stopped")
	}
}

// hangingStore is one that hangs when it is asked what it has.
type hangingStore struct {
	parked.Store
	asked, answer chan struct{}
}

func (h *hangingStore) List(context.Context) iter.Seq2[idem.ExecutionID, error] {
	return func(func(idem.ExecutionID, error) bool) { close(h.asked); <-h.answer }
}

func TestASweepThatHangsDoesNotHoldUpTheEnd(t *testing.T) {
	store := &hangingStore{asked: make(chan struct{}), answer: make(chan struct{})}
	defer close(store.answer)
	s := late(t)
	s.sweep(parked.NewSweeper(store, nil, time.Now))
	<-store.asked
	if said := ends(t, s); said != "stop sweep of kept requests: park_store hangs, and was left alone" {
		t.Error(said)
	}
}
