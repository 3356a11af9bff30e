package serve

import (
	"time"

	"hooklock/proxy/asking"
)

// newAsker returns what asks the service about events of unknown outcome.
func (s *Service) newAsker(service asking.Service) *asking.Asker {
	return asking.New(asking.Options{
		Ledger: s.Store.Questions(), Service: service, Rule: s.handler.AskRule, Asks: s.handler.Asks,
		RequestTimeout: s.requestTimeout,
		OnAnswer:       s.telemetry.OnAsked, Now: time.Now,
	})
}
