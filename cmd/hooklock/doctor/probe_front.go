package doctor

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"hooklock/cmd/hooklock/cli"
	"hooklock/config"
	"hooklock/etcdlock/diagnose"
	"hooklock/idem/naming"
)

// probeOptions are doctor's flags for a probe.
type probeOptions struct {
	url string // as a sender would call it; empty: no probe
	// where doctor stands in Hooklock's place, for each replica; empty: listen of the configuration
	listen []string
	wait   time.Duration // how long the slow answer takes; negative: as long as the configuration lets a delivery take
}

// probeTries is how often a harmless GET must arrive here, each on a connection of its own, before
// a request that looks like a delivery is sent: a front that balances over several processes could
// send it to another one.
const probeTries = 8

// oneProbe is the timeout of a probe that is answered at once.
const oneProbe = 30 * time.Second

// probe finds out what the proxies in front do with requests and answers: it takes Hooklock's place
// behind them, and sends itself requests through them. The service behind Hooklock gets nothing.
type probe struct {
	config   *config.Config
	url      *url.URL
	nonce    string
	listener *probeListener
	client   *http.Client
}

// answered is the answer to a probe.
type answered struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func (a *answered) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	return fmt.Sprintf("status %d", a.status)
}

// frontFindings probes the proxies in front.
func frontFindings(ctx context.Context, c *config.Config, o probeOptions) []diagnose.Finding {
	f := diagnose.Finding{Check: "front", Result: diagnose.Failed}
	u, err := url.Parse(o.url)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		f.Found, f.Advice = fmt.Sprintf("--probe %s is no URL", o.url),
			"give the one that a sender calls, such as https://hooks.example.com/hooks/acme"
		return []diagnose.Finding{f}
	}
	setting, addresses := "--probe-listen", o.listen
	if len(addresses) == 0 {
		setting, addresses = "listen", []string{c.Listen.Address}
	}
	l, err := openProbe(ctx, setting, addresses, c)
	if err != nil {
		f.Found = err.Error()
		f.Advice = "doctor has to stand where the front sends deliveries: probe before hooklock is started, or give " +
			"the front a route for the probe that is like the real one, and its address with --probe-listen"
		return []diagnose.Finding{f}
	}
	transport := &http.Transport{Proxy: nil, DisableKeepAlives: true, DisableCompression: true}
	defer transport.CloseIdleConnections()
	p := &probe{config: c, url: u, nonce: rand.Text()[:12], listener: l, client: &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}}
	findings := p.run(ctx, o.wait)
	if n := l.strangerCount(); n > 0 {
		findings = append(findings, diagnose.Finding{
			Check: "front, others", Result: diagnose.OK,
			Found: fmt.Sprintf("%d requests of others came meanwhile, and got 503 with Retry-After", n),
		})
	}
	if err := l.close(); err != nil {
		findings = append(findings, diagnose.Finding{Check: "front", Result: diagnose.Failed, Found: err.Error()})
	}
	return findings
}

// run sends the probes, the slow one in parallel.
func (p *probe) run(ctx context.Context, wait time.Duration) []diagnose.Finding {
	reach := p.checkTarget(ctx)
	if reach.Result != diagnose.OK {
		return []diagnose.Finding{reach, {Check: "front, the rest", Result: diagnose.Skipped,
			Found: "nothing more was sent there, so that no service takes a probe for a delivery"}}
	}
	findings := []diagnose.Finding{reach}
	var slow diagnose.Finding
	var running sync.WaitGroup
	running.Go(func() { slow = p.checkPatience(ctx, wait) })
	findings = append(findings, p.checkDelivery(ctx)...)
	findings = append(findings, p.checkSpelling(ctx), p.largeBody(ctx), p.checkRefusals(ctx))
	running.Wait()
	// The last ones, because a front may avoid an upstream that hangs up or is away.
	return append(findings, slow, p.halfClosed(ctx), p.checkRetries(ctx), p.checkReplicas(ctx))
}

// sendToURL sends one probe to the URL and returns the first answer. A probe with a nil body is a
// GET.
func (p *probe) sendToURL(ctx context.Context, name, method string, body []byte, header http.Header) *answered {
	return p.sendTo(ctx, *p.url, name, method, body, header)
}

func (p *probe) sendTo(ctx context.Context, u url.URL, name, method string, body []byte, header http.Header) *answered {
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += probeQuery + "=" + name
	r, err := http.NewRequestWithContext(ctx, method, p.url.String(), bytes.NewReader(body))
	if err != nil {
		return &answered{err: err}
	}
	r.URL = &u // which may have a spelling that does not survive being parsed
	// or the client repeats what has an Idempotency-Key, on HTTP/2 without end, and the front is
	// blamed for it
	r.GetBody = nil
	maps.Copy(r.Header, header)
	r.Header.Set(probeHeader, name)
	r.Header.Set("User-Agent", "hooklock-doctor")
	res, err := p.client.Do(r)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err
		}
		return &answered{err: err}
	}
	defer res.Body.Close()
	a := &answered{status: res.StatusCode, header: res.Header}
	a.body, a.err = io.ReadAll(io.LimitReader(res.Body, 1<<20))
	return a
}

// sendProbe sends one probe with a time limit, and returns what came back and what arrived.
func (p *probe) sendProbe(ctx context.Context, kind, method string, body []byte, header http.Header,
	answer http.HandlerFunc) (*answered, []arrival) {
	ctx, cancel := context.WithTimeout(ctx, oneProbe)
	defer cancel()
	name := p.nonce + "-" + kind
	p.listener.setAnswer(name, answer)
	a := p.sendToURL(ctx, name, method, body, header)
	return a, p.listener.arrivalsOf(name)
}

// patienceOfChecks is how long the health checks of a front may take to see that a server is behind
// it again.
const patienceOfChecks = 15 * time.Second

// isFromAway reports whether a front answered for a replica that it did not reach.
func (a *answered) isFromAway() bool {
	return a.err == nil && (a.status == http.StatusBadGateway || a.status == http.StatusServiceUnavailable ||
		a.status == http.StatusGatewayTimeout)
}

// checkTarget checks where the URL leads, with requests that change nothing.
func (p *probe) checkTarget(ctx context.Context) diagnose.Finding {
	f := diagnose.Finding{Check: "front " + p.url.Redacted(), Result: diagnose.OK, Found: "leads here"}
	began := time.Now()
	for i := 0; i < probeTries; i++ {
		text := fmt.Sprintf("hooklock doctor %s %d", p.nonce, i)
		a, came := p.sendProbe(ctx, fmt.Sprintf("get-%d", i), http.MethodGet, nil, nil,
			func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, text)
			})
		if len(came) > 0 && a.err == nil && string(a.body) == text {
			continue
		}
		if i == 0 && len(came) == 0 && a.isFromAway() && time.Since(began) < patienceOfChecks &&
			cli.Pause(ctx, 500*time.Millisecond) {
			i--
			continue
		}
		f.Result, f.Found = diagnose.Failed, fmt.Sprintf("%v; nothing arrived here", a)
		f.Advice = "let the URL lead to the address that doctor listens on, " + p.config.Listen.Address +
			" or --probe-listen"
		switch {
		case len(came) > 0:
			f.Found = fmt.Sprintf("a GET arrived here, and its answer did not come back: %v", a)
		case i > 0 && a.isFromAway():
			f.Found = fmt.Sprintf("%d requests arrived here, and the next one did not: %v", i, a)
			f.Advice = "a replica that it leads to is dead, and it does not ask another one: " + anotherReplica
		case i > 0:
			f.Found = fmt.Sprintf("%d requests arrived here, and the next one did not: %v", i, a)
			f.Advice = "it seems to lead to others, too: leave doctor alone behind it for the probe"
		}
		return f
	}
	return f
}

// sentHeaders returns the headers with signatures and event IDs of senders, and those that the
// configuration reads. Each has a value of its own.
func (p *probe) sentHeaders() http.Header {
	names := []string{
		"Content-Type", "Traceparent", "Idempotency-Key", "Stripe-Signature", "X-Hub-Signature-256",
		"X-GitHub-Delivery", "X-Gitlab-Token", "X-Shopify-Hmac-Sha256",
		"X-Slack-Signature", "X-Slack-Request-Timestamp", "X-Twilio-Signature",
		"X-Twilio-Email-Event-Webhook-Signature", "Paypal-Transmission-Sig",
		"X-Square-Hmacsha256-Signature", "X-Hubspot-Signature-V3", "X-Zm-Signature", "Linear-Signature",
		"X-Signature-Ed25519", "Webhook-Id", "Webhook-Timestamp",
		"Webhook-Signature", "Ce-Id", "Aeg-Event-Type", "X-Amz-Sns-Message-Type",
	}
	for i := range p.config.Routes {
		r := &p.config.Routes[i]
		for _, text := range []string{r.Workflow, r.EventID} {
			if t, err := naming.CompileTemplate(text); err == nil {
				for _, s := range t.Sources() {
					if s.Kind == naming.SourceHeader {
						names = append(names, http.CanonicalHeaderKey(s.Name))
					}
				}
			}
		}
		if r.Verify.Header != "" {
			names = append(names, http.CanonicalHeaderKey(r.Verify.Header))
		}
	}
	header := http.Header{}
	for i, name := range names {
		header[http.CanonicalHeaderKey(name)] = []string{fmt.Sprintf("probe-%d", i)}
	}
	header["Content-Type"] = []string{"application/json"}
	header["Traceparent"] = []string{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	return header
}

// checkDelivery sends a request that looks like a delivery, and compares it with what arrived.
func (p *probe) checkDelivery(ctx context.Context) []diagnose.Finding {
	sent := p.sentHeaders()
	body := []byte("{\n  \"id\" : \"" + p.nonce + "\", \"amount\": 1.10, \"name\": \"Zo\\u00eb \u00e9\"  }\n")
	a, came := p.sendProbe(ctx, "post", http.MethodPost, body, sent, takeIt)
	if len(came) == 0 {
		return []diagnose.Finding{{Check: "front, deliveries", Result: diagnose.Failed,
			Found: fmt.Sprintf("a POST did not arrive: %v", a), Advice: "let POST through"}}
	}
	got := came[0]
	// With a probe of its own: a front that checks it itself refuses that one.
	credential := http.Header{"Authorization": {"Basic cHJvYmU6cHJvYmU="}}
	_, came = p.sendProbe(ctx, "credential", http.MethodPost, body, credential, takeIt)
	if len(came) > 0 {
		sent["Authorization"], got.header["Authorization"] = credential["Authorization"],
			came[0].header["Authorization"]
	}
	return []diagnose.Finding{p.headersOf(&got, sent), p.addressOf(&got), p.bodyOf(&got, body)}
}

// headersOf finds headers that are missing or changed.
func (p *probe) headersOf(got *arrival, sent http.Header) diagnose.Finding {
	f := diagnose.Finding{Check: "front, headers", Result: diagnose.OK}
	var lost, changed, added []string
	for name, values := range sent {
		switch there := got.header.Values(name); {
		case len(there) == 0:
			lost = append(lost, name)
		case name != "Traceparent" && !slices.Equal(there, values): // a front that traces makes a span of its own
			changed = append(changed, name)
		}
	}
	for name := range got.header {
		if sent[name] == nil && name != probeHeader && name != "User-Agent" && name != "Content-Length" &&
			name != "Connection" {
			added = append(added, name)
		}
	}
	f.Found = fmt.Sprintf("%d arrived as they were sent", len(sent)-len(lost)-len(changed))
	for _, c := range []struct {
		what  string
		names []string
	}{{"stripped", lost}, {"changed", changed}, {"added", added}} {
		if len(c.names) > 0 {
			slices.Sort(c.names)
			f.Found += "; " + c.what + ": " + strings.Join(c.names, ", ")
		}
	}
	if slices.Contains(added, "Accept-Encoding") {
		f.Result, f.Advice = diagnose.Warning, "the service may compress answers although the sender did not ask "+
			"for it: pass Accept-Encoding on unchanged (Caddy: compression off; Traefik: docs/ingress/traefik.md)"
	}
	if len(lost)+len(changed) > 0 {
		f.Result, f.Advice = diagnose.Failed, "pass on every header as it came: signatures and event IDs are in "+
			"them (nginx drops names with _ unless underscores_in_headers is on; Squid drops Authorization without "+
			"login=PASS)"
	}
	return f
}

// addressOf compares the URL that was called with the one that arrived.
func (p *probe) addressOf(got *arrival) diagnose.Finding {
	f := diagnose.Finding{Check: "front, address", Result: diagnose.OK,
		Found: "Host, path and query arrive as they were sent; the sender's address is in X-Forwarded-For"}
	if !strings.EqualFold(got.host, p.url.Host) {
		f.Result, f.Found, f.Advice = diagnose.Warning, fmt.Sprintf("Host %s arrives as %s", p.url.Host, got.host),
			"keep it (nginx: proxy_set_header Host $http_host): some senders sign it, and it is part of the fingerprint"
		return f
	}
	path, _, _ := strings.Cut(got.target, "?")
	want, _, _ := strings.Cut(p.url.RequestURI(), "?")
	if path != want || !strings.Contains(got.target, probeQuery+"=") || !strings.Contains(got.target, p.url.RawQuery) {
		f.Result, f.Found = diagnose.Warning, fmt.Sprintf("%s arrives as %s", p.url.RequestURI(), got.target)
		f.Advice = "routes see what arrives; for senders that sign the URL, give verify.public_url with what is " +
			"stripped"
		return f
	}
	if got.header.Get("X-Forwarded-For") == "" {
		f.Result, f.Found, f.Advice = diagnose.Warning, "no X-Forwarded-For arrives",
			"add the sender's address to it, or the service sees that of the front alone"
	}
	return f
}

// bodyOf compares the body with what was sent.
func (p *probe) bodyOf(got *arrival, sent []byte) diagnose.Finding {
	f := diagnose.Finding{Check: "front, body", Result: diagnose.OK, Found: "arrives byte for byte"}
	if got.bodyErr != nil || !bytes.Equal(got.body, sent) {
		f.Result, f.Found, f.Advice = diagnose.Failed, fmt.Sprintf("%d bytes were sent, and %d others arrived",
			len(sent), len(got.body)), "turn off what reads or changes bodies: signatures are over their bytes"
	}
	return f
}
