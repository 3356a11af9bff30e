package serve

import (
	"context"
	"time"

	"hooklock/proxy/asking"
)

func (s *Service) newAsker(service asking.Service) *asking.Asker {
	return asking.New(asking.Options{
		Ledger: s.Store.Questions(), Service: service, Rule: s.handler.AskRule, Asks: s.handler.Asks, RequestTimeout: s.requestTimeout,
		OnAnswer: s.telemetry.Asked, Now: time.Now,
	})
}

// runAsker starts asking the service about events of unknown outcome. A stop waits for what is being
// asked: the answer is written down.
func (s *Service) runAsker(asker *asking.Asker) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	s.serving.Go(func() { defer close(done); asker.Run(ctx) })
	s.onStop("asker", func(ctx context.Context) error {
		cancel()
		select {
		case <-done:
		case <-ctx.Done():
		}
		return nil
	})
}
