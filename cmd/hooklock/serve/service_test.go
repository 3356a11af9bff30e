package serve

import (
	"context"
	"strings"
	"testing"
	"time"

	"hooklock/config"
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
	if said := ends(t, s); !strings.Contains(said, "stop a disk: it hangs") ||
		!strings.Contains(said, "stop what runs beside: it hangs") {
		t.Error(said)
	}
	if !closed {
		t.Error("what was started before it was not stopped")
	}
}
