package wiring

import (
	"cmp"
	"net/http"

	"hooklock/config"
	"hooklock/idem"
	"hooklock/proxy/asking"
	"hooklock/proxy/wire"
)

// askPolicy returns how a route asks the service what became of an event of unknown outcome; nil:
// it does not.
func askPolicy(c *config.Route) *idem.AskPolicy {
	if c.Idempotency.OnUnknown != idem.UnknownAsk || c.Ask.URL == "" {
		return nil
	}
	return &idem.AskPolicy{
		After: max(c.Ask.After, c.Lock.ReleaseDelay), Attempts: c.Ask.Attempts,
		Answer: cmp.Or(c.Respond[config.RespondAsked], http.StatusOK),
	}
}

// askRule returns how the answers are understood; nil: the route does not ask.
func askRule(c *config.Route) *asking.Rule {
	if askPolicy(c) == nil {
		return nil
	}
	return &asking.Rule{Executed: reply(&c.Ask.Executed), NotExecuted: reply(&c.Ask.NotExecuted),
		Authorization: c.Ask.Authorization.Reveal()}
}

func reply(c *config.Reply) asking.Reply {
	r := asking.Reply{Body: c.Body}
	for _, s := range c.Status {
		r.Status.Add(s.Low, s.High)
	}
	return r
}

// Service returns how questions reach the upstream.
func Service(o *wire.Options, host string) asking.Service {
	return asking.Service{Network: o.Network, Addr: o.Addr, Host: host, TLS: o.TLS, Connect: o.ConnectTimeout}
}
