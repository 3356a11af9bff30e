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
	f := diagnose.Finding{Check: "front, size", Result: diagnose.OK,
		Found: fmt.Sprintf("a body of limits.request_body, %d bytes, arrives", limit)}
	body := bytes.Repeat([]byte("x"), limit)
	a, came := p.sendProbe(ctx, "large", http.MethodPost, body, http.Header{"Content-Type": {"text/plain"}}, takeIt)
	switch {
	case len(came) == 0:
		f.Result, f.Found = diagnose.Failed, fmt.Sprintf("a body of limits.request_body, %d bytes, does not arrive: %v",
			limit, a)
		f.Advice = "raise the front's limit (nginx: client_max_body_size), or lower limits.request_body to it"
	case came[0].bodyErr != nil || !bytes.Equal(came[0].body, body):
		f.Result, f.Found, f.Advice = diagnose.Failed, fmt.Sprintf("of %d bytes, %d arrive", limit, len(came[0].body)),
			"turn off what changes bodies"
	}
	return f
}

// refusals are statuses of Hooklock itself that senders act on.
var refusals = []int{
	http.StatusUnauthorized, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusTooManyRequests,
	http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// checkRefusals answers like Hooklock, and checks whether the answer arrives unchanged, whether the
// front retries, and whether it takes Hooklock for dead.
func (p *probe) checkRefusals(ctx context.Context) diagnose.Finding {
	f := diagnose.Finding{Check: "front, answers", Result: diagnose.OK,
		Found: fmt.Sprintf("%d kinds of refusals come through whole, with Retry-After, and are not asked for again",
			len(refusals))}
	var faults frontFaults
	for _, status := range refusals {
		for _, body := range []string{"{}", ""} { // some repeat only what has no body
			p.refuseDelivery(ctx, status, body, &faults)
		}
	}
	if faults.away == "" {
		faults.away = p.testExclusion(ctx)
	}
	found := faults.changed
	if len(faults.changed) > 0 {
		f.Result, f.Advice = diagnose.Failed, "do not replace answers (nginx: proxy_intercept_errors off): they say "+
			"whether the event was executed, and when to come again"
	}
	if faults.away != "" {
		f.Result, f.Advice = diagnose.Failed, notDead
		found = append(found, "after answers such as 503 a delivery does not arrive: "+faults.away)
	}
	if len(faults.repeated) > 0 {
		f.Result, f.Advice = diagnose.Failed, noRetries
		found = append(found, "sent again after "+strings.Join(faults.repeated, ", "))
	}
	if len(found) > 0 {
		f.Found = strings.Join(found, ", ")
	}
	return f
}

// frontFaults are what a front was found to do with refusals.
type frontFaults struct {
	changed  []string // what became of those that did not arrive whole
	repeated []string // those after which it sent the request again
	away     string   // what it answered to the last delivery that did not arrive; "" = all did
}

// refuseDelivery sends a delivery with that body through the front, refuses it with status, and
// notes what the front did.
func (p *probe) refuseDelivery(ctx context.Context, status int, body string, faults *frontFaults) {
	detail := fmt.Sprintf("%s %d", p.nonce, status)
	kind := fmt.Sprintf("refusal-%d-%d", status, len(body))
	answer, came := p.sendProbe(ctx, kind, http.MethodPost, []byte(body), nil,
		func(w http.ResponseWriter, _ *http.Request) { writeProblem(w, status, detail) })
	if len(came) > 1 {
		without := ""
		if body == "" {
			without = " without a body"
		}
		faults.repeated = append(faults.repeated, fmt.Sprintf("%d%s: %d times", status, without, len(came)))
	}
	if len(came) == 0 {
		faults.away = answer.String()
		return
	}
	if change := changeOf(answer, status, detail); change != "" && body != "" {
		faults.changed = append(faults.changed, change)
	}
}

// changeOf says what became of a refusal on its way back. It returns "" if that arrived whole.
func changeOf(a *answered, status int, detail string) string {
	wantsRetry := status == http.StatusConflict || status == http.StatusTooManyRequests ||
		status == http.StatusServiceUnavailable
	switch {
	case a.err != nil || a.status != status:
		return fmt.Sprintf("%d becomes %v", status, a)
	case string(a.body) != problemText(status, detail):
		return fmt.Sprintf("the body of %d is replaced", status)
	case wantsRetry && a.header.Get("Retry-After") != "7":
		return fmt.Sprintf("%d loses Retry-After", status)
	}
	return ""
}

// testExclusion answers 503 twice for each replica, as all of them do while etcd is away. It
// returns the answer to the next delivery if that does not arrive, and "" if it does.
func (p *probe) testExclusion(ctx context.Context) string {
	unavailable := func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, http.StatusServiceUnavailable, p.nonce)
	}
	for i := range 2 * len(p.listener.doors) {
		p.sendProbe(ctx, fmt.Sprint("unavailable-", i), http.MethodPost, []byte("{}"), nil, unavailable)
	}
	a, came := p.sendProbe(ctx, "available", http.MethodPost, []byte("{}"), nil, takeIt)
	if len(came) > 0 {
		return ""
	}
	return a.String()
}

const (
	noRetries = "turn off, for these routes, retries of what was sent (" + ofNginx +
		"; HAProxy: retry-on conn-failure; Envoy, Gateway API: no retry): " +
		"docs/ingress has each of them"

	// ofNginx is the advice for nginx, which retries methods that it takes for idempotent, PUT and
	// DELETE included.
	ofNginx = "nginx, as deploy/nginx/webhooks.conf has it: proxy_next_upstream off for PUT and DELETE, error " +
		"timeout for the others"

	notDead = "let no answer and no broken connection take a replica out of service (nginx: max_fails=0; Apache: no " +
		"failonstatus, retry=1; Caddy: no fail_duration; " +
		"HAProxy: no observe): until it is back, the front answers with a page of its own"
)

// breaking is a delivery whose connection the probe breaks.
type breaking struct{ method, body, key string }

// Some repeat what has no body. Those written in Go do so if it has an Idempotency-Key and the
// connection was kept, and no setting stops them; docs/ingress says that, and nothing is said here.
var breakings = []breaking{
	{http.MethodPost, `{"id":1}`, "Idempotency-Key"},
	{http.MethodPost, "", "X-Probe-Key"},
	{http.MethodPut, `{"id":1}`, "Idempotency-Key"},
}

func (b *breaking) String() string {
	if b.body == "" {
		return "a " + b.method + " without a body"
	}
	return "a " + b.method
}

// keptTries is how many deliveries are sent until one comes on a connection that the front has
// kept.
const keptTries = 6

// checkRetries hangs up on a request that was read, on any connection and on one that the front has
// kept. A front that retries would run an event twice that a service had accepted.
func (p *probe) checkRetries(ctx context.Context) diagnose.Finding {
	f := diagnose.Finding{Check: "front, retries", Result: diagnose.OK,
		Found: "a delivery whose connection breaks is sent once"}
	var again, away []string
	for _, b := range breakings {
		name := fmt.Sprintf("hang-up-%s-%d", b.method, len(b.body))
		header := http.Header{"Content-Type": {"application/json"}, b.key: {p.nonce}}
		a, came := p.sendProbe(ctx, name, b.method, []byte(b.body), header, hangUp)
		switch {
		case len(came) > 1:
			again = append(again, fmt.Sprintf("%v whose connection breaks is sent %d times", &b, len(came)))
			continue
		case len(came) == 0:
			away = append(away, fmt.Sprintf("%v did not arrive (%v)", &b, a))
			continue
		}
		for i := range keptTries {
			if _, came = p.sendProbe(ctx, fmt.Sprintf("%s-kept-%d", name, i), b.method, []byte(b.body), header,
				hangUpIfReused); len(came) > 1 {
				again = append(again, fmt.Sprintf("%v is sent %d times if the connection breaks that it came on, "+
					"and which the front had kept", &b, len(came)))
				break
			}
		}
	}
	if p.hangsUpOnSender(ctx) {
		f.Found += "; the front hangs up on a sender that has kept its connection, and curl, wget and some of Java " +
			"then repeat it: Hooklock answers that"
	}
	if len(away) > 0 {
		f.Result, f.Found, f.Advice = diagnose.Failed, "after a connection has broken, "+strings.Join(away, "; "),
			notDead
	}
	if len(again) > 0 {
		f.Result, f.Found, f.Advice = diagnose.Failed, strings.Join(append(again, away...), "; "), noRetries
	}
	return f
}

// hangsUpOnSender breaks the connection of the second of two deliveries that come to the front on
// one connection, and reports whether the front answers nothing then.
func (p *probe) hangsUpOnSender(ctx context.Context) bool {
	transport := &http.Transport{Proxy: nil, DisableCompression: true, MaxConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	sender := *p
	sender.client = &http.Client{Transport: transport, CheckRedirect: p.client.CheckRedirect}
	body := []byte(`{"id":1}`)
	first, _ := sender.sendProbe(ctx, "sender-0", http.MethodPost, body, nil, takeIt)
	second, came := sender.sendProbe(ctx, "sender-1", http.MethodPost, body, nil, hangUp)
	return first.err == nil && second.err != nil && len(came) == 1
}

// checkPatience answers as late as Hooklock may.
func (p *probe) checkPatience(ctx context.Context, wait time.Duration) diagnose.Finding {
	if wait < 0 {
		wait = p.longestDelivery()
	}
	f := diagnose.Finding{Check: "front, patience", Result: diagnose.OK,
		Found: fmt.Sprintf("it waits %v for an answer", wait)}
	if wait == 0 {
		f.Result, f.Found = diagnose.Skipped, "--probe-wait is 0s"
		return f
	}
	name := p.nonce + "-slow"
	p.listener.setAnswer(name, func(w http.ResponseWriter, r *http.Request) {
		cli.Pause(r.Context(), wait)
		w.WriteHeader(http.StatusOK)
	})
	ctx, cancel := context.WithTimeout(ctx, wait+oneProbe)
	defer cancel()
	began := time.Now()
	a := p.sendToURL(ctx, name, http.MethodPost, []byte("{}"), nil)
	took := time.Since(began).Round(100 * time.Millisecond)
	came := p.listener.arrivalsOf(name)
	switch {
	case len(came) > 1:
		f.Result, f.Found, f.Advice = diagnose.Failed,
			fmt.Sprintf("a delivery that takes long is sent %d times", len(came)), noRetries
	case a.err != nil || a.status != http.StatusOK:
		f.Result, f.Found = diagnose.Failed, fmt.Sprintf("it gives up after %v (%v), and a delivery may take %v", took,
			a, wait)
		f.Advice = "let it wait longer than upstream.timeout and lock.wait_timeout together (nginx: proxy_read_timeout)"
	}
	return f
}

// longestDelivery is how long a delivery may take: the wait for the lock, for etcd, and for the
// upstream.
func (p *probe) longestDelivery() time.Duration {
	var wait time.Duration
	for i := range p.config.Routes {
		wait = max(wait, p.config.Routes[i].LongestWait())
	}
	return wait + p.config.Upstream.ConnectTimeout + p.config.Upstream.Timeout + p.config.Etcd.RequestTimeout
}
