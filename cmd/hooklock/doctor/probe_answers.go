package doctor

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"hooklock/cmd/hooklock/cli"
	"hooklock/etcdlock/diagnose"
)

// largeBody sends a body of limits.request_body.
func (p *probe) largeBody(ctx context.Context) diagnose.Finding {
	limit := int(p.config.Limits.RequestBody)
	f := diagnose.Finding{Check: "front, size", Result: diagnose.OK, Found: fmt.Sprintf("a body of limits.request_body, %d bytes, arrives", limit)}
	body := bytes.Repeat([]byte("x"), limit)
	a, came := p.probed(ctx, "large", http.MethodPost, body, http.Header{"Content-Type": {"text/plain"}}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	switch {
	case len(came) == 0:
		f.Result, f.Found = diagnose.Failed, fmt.Sprintf("a body of limits.request_body, %d bytes, does not arrive: %v", limit, a)
		f.Advice = "raise the front's limit (nginx: client_max_body_size), or lower limits.request_body to it"
	case came[0].bodyErr != nil || !bytes.Equal(came[0].body, body):
		f.Result, f.Found, f.Advice = diagnose.Failed, fmt.Sprintf("of %d bytes, %d arrive", limit, len(came[0].body)), "turn off what changes bodies"
	}
	return f
}

// refusals are statuses of Hooklock itself that senders act on.
var refusals = []int{
	http.StatusUnauthorized, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusTooManyRequests,
	http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// refusals answers like Hooklock, and checks whether the answer arrives unchanged, and whether the front retries.
func (p *probe) refusals(ctx context.Context) diagnose.Finding {
	f := diagnose.Finding{Check: "front, answers", Result: diagnose.OK, Found: fmt.Sprintf("%d kinds of refusals come through whole, with Retry-After, and are not asked for again", len(refusals))}
	var lost, repeated []string
	for _, status := range refusals {
		detail := fmt.Sprintf("%s %d", p.nonce, status)
		a, came := p.probed(ctx, fmt.Sprint("refusal-", status), http.MethodPost, []byte("{}"), nil, func(w http.ResponseWriter, _ *http.Request) { writeProblem(w, status, detail) })
		if len(came) > 1 {
			repeated = append(repeated, fmt.Sprintf("%d: %d times", status, len(came)))
		}
		wantsRetry := status == http.StatusConflict || status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
		switch {
		case a.err != nil || a.status != status:
			lost = append(lost, fmt.Sprintf("%d becomes %v", status, a))
		case string(a.body) != problemText(status, detail):
			lost = append(lost, fmt.Sprintf("the body of %d is replaced", status))
		case wantsRetry && a.header.Get("Retry-After") != "7":
			lost = append(lost, fmt.Sprintf("%d loses Retry-After", status))
		}
	}
	if len(lost)+len(repeated) == 0 {
		return f
	}
	f.Result, f.Found, f.Advice = diagnose.Failed, strings.Join(lost, ", "), "do not replace answers (nginx: proxy_intercept_errors off): they say whether the event was executed, and when to come again"
	if len(repeated) > 0 {
		f.Found = strings.Join(append(lost, "sent again after "+strings.Join(repeated, ", ")), ", ")
		f.Advice = noRetries
	}
	return f
}

const noRetries = "turn off, for these routes, retries of what was sent (" + ofNginx + "; HAProxy: retry-on conn-failure; Envoy, Gateway API: no retry): " +
	"docs/ingress has each of them"

// ofNginx is the advice for nginx, which retries methods that it takes for idempotent, PUT and DELETE included.
const ofNginx = "nginx, as deploy/nginx/webhooks.conf has it: proxy_next_upstream off for PUT and DELETE, error timeout for the others"

// retries hangs up on a request that was read. A front that retries would run an event twice that a service had accepted.
func (p *probe) retries(ctx context.Context) diagnose.Finding {
	f := diagnose.Finding{Check: "front, retries", Result: diagnose.OK, Found: "a delivery whose connection breaks is sent once"}
	var again []string
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		header := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {p.nonce}}
		a, came := p.probed(ctx, "hang-up-"+method, method, []byte(`{"id":1}`), header, hangUp)
		switch {
		case len(came) > 1:
			again = append(again, fmt.Sprintf("a %s whose connection breaks is sent %d times", method, len(came)))
		case len(came) == 0:
			again = append(again, fmt.Sprintf("a %s did not arrive (%v)", method, a))
		}
	}
	if len(again) > 0 {
		f.Result, f.Found, f.Advice = diagnose.Failed, strings.Join(again, "; "), noRetries
	}
	return f
}

// patience answers as late as Hooklock may.
func (p *probe) patience(ctx context.Context, wait time.Duration) diagnose.Finding {
	if wait < 0 {
		wait = p.longest()
	}
	f := diagnose.Finding{Check: "front, patience", Result: diagnose.OK, Found: fmt.Sprintf("it waits %v for an answer", wait)}
	if wait == 0 {
		f.Result, f.Found = diagnose.Skipped, "--probe-wait is 0s"
		return f
	}
	name := p.nonce + "-slow"
	p.listener.expect(name, func(w http.ResponseWriter, r *http.Request) {
		cli.Pause(r.Context(), wait)
		w.WriteHeader(http.StatusOK)
	})
	ctx, cancel := context.WithTimeout(ctx, wait+oneProbe)
	defer cancel()
	began := time.Now()
	a := p.send(ctx, name, http.MethodPost, []byte("{}"), nil)
	took := time.Since(began).Round(100 * time.Millisecond)
	came := p.listener.of(name)
	switch {
	case len(came) > 1:
		f.Result, f.Found, f.Advice = diagnose.Failed, fmt.Sprintf("a delivery that takes long is sent %d times", len(came)), noRetries
	case a.err != nil || a.status != http.StatusOK:
		f.Result, f.Found = diagnose.Failed, fmt.Sprintf("it gives up after %v (%v), and a delivery may take %v", took, a, wait)
		f.Advice = "let it wait longer than upstream.timeout and lock.wait_timeout together (nginx: proxy_read_timeout)"
	}
	return f
}

// longest is how long a delivery may take: the wait for the lock, for etcd, and for the upstream.
func (p *probe) longest() time.Duration {
	var wait time.Duration
	for i := range p.config.Routes {
		wait = max(wait, p.config.Routes[i].LongestWait())
	}
	return wait + p.config.Upstream.ConnectTimeout + p.config.Upstream.Timeout + p.config.Etcd.RequestTimeout
}
