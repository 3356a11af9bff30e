package doctor

import (
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"hooklock/config"
)

func TestTheProbeWaitsAsLongAsAnyDeliveryMay(t *testing.T) {
	for route, want := range map[string]time.Duration{
		"lock: {strategy: wait, wait_timeout: 7s}": 40 * time.Second,
		// an event that was overtaken
		"lock: {wait_timeout: 7s}": 40 * time.Second,
		"idempotency: {in_flight: attach}, lock: {strategy: none, wait_timeout: 7s}": 40 * time.Second, // a copy
		"lock: {strategy: skip}": 33 * time.Second,
	} {
		l, err := config.Load(config.Source{Path: "sidecar.yaml",
			Bytes: []byte("routes: [{name: a, path: /a, " + route + "}]")})
		if err != nil {
			t.Fatalf("%s: %v", route, err)
		}
		if got := (&probe{config: l.Config}).longestDelivery(); got != want {
			t.Errorf("%s: %v, want %v", route, got, want)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Go's client repeats a request with an Idempotency-Key on its own where it can read the body
// again.
func TestAProbeCannotBeRepeatedByItsOwnClient(t *testing.T) {
	u, err := url.Parse("https://front.invalid/hooks")
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	p := &probe{url: u, client: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		sent++
		if body, err := io.ReadAll(r.Body); err != nil || string(body) != "{}" || r.GetBody != nil {
			t.Errorf("%s with %q, %v, and it can be read again: %v", r.Method, body, err, r.GetBody != nil)
		}
		return nil, io.ErrUnexpectedEOF
	})}}
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		p.sendToURL(t.Context(), "x", method, []byte("{}"), http.Header{"Idempotency-Key": {"x"}})
	}
	if sent != 2 {
		t.Errorf("%d requests", sent)
	}
}
