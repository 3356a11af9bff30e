package config

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
)

const (
	maxQuestions = 20
	maxAskAfter  = time.Hour
)

// Members are members of a JSON body, each with the text that it must have. A name is a path:
// data.state.
type Members map[string]string

// checkAsk checks how the service is asked what became of an event.
func (v *validator) checkAsk(path string, r *Route, pattern *naming.Pattern) {
	a, unknown := &r.Ask, path+".idempotency.on_unknown"
	path += ".ask"
	if r.Idempotency.OnUnknown != idem.UnknownAsk {
		v.warnIdle(path+".url", a.URL != "", "idempotency.on_unknown is not ask")
		return
	}
	v.require(a.URL != "", unknown, "ask: nothing says what to ask; give the route an ask.url, such as "+
		"/api/orders/{body.order_id}")
	v.require(r.Idempotency.Enabled, unknown,
		"ask: idempotency.enabled is false, so no event has an outcome that is remembered")
	if pattern != nil && a.URL != "" {
		v.check(path+".url", checkTemplate(a.URL, pattern))
		v.check(path+".url", checkQuestion(a.URL))
	}
	v.requireDuration(path+".after", a.After, 0, maxAskAfter)
	v.requireNumber(path+".attempts", a.Attempts, maxQuestions)
	v.require(len(a.Executed.Status) > 0, path+".executed.status",
		"is empty: no answer could say that the event was executed; write {status: [200]}")
	v.require(len(a.NotExecuted.Status) > 0, path+".not_executed.status",
		"is empty: no answer could say that the event was not executed; write {status: [404]}")
	if len(a.Executed.Body) == 0 && len(a.NotExecuted.Body) == 0 {
		for i, status := range a.Executed.Status {
			for _, other := range a.NotExecuted.Status {
				v.require(status.High < other.Low || other.High < status.Low, indexedPath(path+".executed.status", i),
					"%s is also in not_executed.status: an answer cannot say both; add a body to one of them", status)
			}
		}
	}
}

// checkQuestion refuses what is neither a path of the upstream nor a URL, and a URL whose host a
// delivery would choose.
func checkQuestion(text string) error {
	if strings.HasPrefix(text, "/") {
		return nil
	}
	fixed, _, _ := strings.Cut(text, "{")
	u, err := url.Parse(fixed)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("is neither a path of the upstream, which begins with /, nor a URL with http:// or " +
			"https:// and a host")
	case u.User != nil:
		return errors.New("a password does not stand in a URL; use authorization_file")
	case len(fixed) < len(text) && u.Path == "":
		return errors.New("a delivery would choose the host that is asked: write the whole host, and values behind a /")
	}
	return nil
}
