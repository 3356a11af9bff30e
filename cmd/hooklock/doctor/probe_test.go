package doctor

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/config"
	"hooklock/etcdlock/diagnose"
)

// aFront passes requests on to a Hooklock at an address, over kept connections. What it does wrong
// stands in its fields.
type aFront struct {
	at      string
	client  http.RoundTripper
	strips  string                                          // a header
	repeats func(*http.Request, *http.Response, error) bool // whether it sends the request again after this, once
	// whether it closes the sender's connection if it gets no answer
	hangsUp bool
	// whether it answers 200 to a sender that has closed its half
	approves bool
	excludes bool // whether it answers by itself after an answer with 503
	away     atomic.Bool
}

func (f *aFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || f.away.Load() {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	send := func() (*http.Response, error) {
		out, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+f.at+r.RequestURI,
			bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		out.GetBody, out.Host, out.Header = nil, r.Host, r.Header.Clone()
		out.Header.Set("X-Forwarded-For", "192.0.2.1")
		out.Header.Del("Connection") // doctor closes its own
		out.Header.Del(f.strips)
		return f.client.RoundTrip(out)
	}
	res, err := send()
	if f.approves && r.Context().Err() != nil { // net/http takes a half-closed sender for gone
		if err == nil {
			_ = res.Body.Close()
		}
		return
	}
	if f.repeats != nil && f.repeats(r, res, err) {
		if err == nil {
			_ = res.Body.Close()
		}
		res, err = send()
	}
	if err != nil && f.hangsUp {
		hangUp(w, r)
		return
	}
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer res.Body.Close()
	f.away.Store(f.excludes && res.StatusCode == http.StatusServiceUnavailable)
	maps.Copy(w.Header(), res.Header)
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body)
}

// said probes through f and returns what is said of one check.
func (f *aFront) said(t *testing.T, check string) diagnose.Finding {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.at = ln.Addr().String()
	_ = ln.Close()
	transport := &http.Transport{DisableCompression: true, IdleConnTimeout: time.Minute}
	defer transport.CloseIdleConnections()
	f.client = transport
	server := httptest.NewServer(f)
	defer server.Close()
	text := fmt.Sprintf("listen: %s\nupstream: http://127.0.0.1:1\nroutes: [{name: a, path: /a}]\n", f.at)
	l, err := config.Load(config.Source{Path: "sidecar.yaml", Bytes: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range frontFindings(t.Context(), l.Config, probeOptions{url: server.URL + "/a"}) {
		if finding.Check == check {
			return finding
		}
	}
	t.Fatalf("nothing is said of %s", check)
	return diagnose.Finding{}
}

func TestTheProbeFindsWhatFrontsDoToFewRequestsAlone(t *testing.T) {
	bodyless := func(r *http.Request) bool { return r.Method == http.MethodPost && r.ContentLength == 0 }
	for name, c := range map[string]struct {
		front  *aFront
		check  string
		result diagnose.Result
		found  string
	}{
		"a careful one, answers": {&aFront{}, "front, answers", diagnose.OK, "come through whole"},
		"a careful one, retries": {&aFront{}, "front, retries", diagnose.OK, "sent once"},
		"a careful one, headers": {&aFront{}, "front, headers", diagnose.OK, "arrived as they were sent"},
		"Authorization is kept by the front, as Squid does": {
			&aFront{strips: "Authorization"}, "front, headers", diagnose.Failed, "stripped: Authorization",
		},
		"what has no body is sent again after 502, as Squid does": {
			&aFront{repeats: func(r *http.Request, res *http.Response, err error) bool {
				return bodyless(r) && err == nil && res.StatusCode == 502
			}},
			"front, answers", diagnose.Failed, "sent again after 502 without a body: 2 times",
		},
		"what has no body is sent again if a kept connection breaks, as Varnish does": {
			&aFront{repeats: func(r *http.Request, _ *http.Response, err error) bool {
				return bodyless(r) && err != nil && strings.Contains(r.URL.RawQuery, "-kept-")
			}},
			"front, retries", diagnose.Failed, "a POST without a body is sent 2 times if the connection breaks",
		},
		"it hangs up on the sender, as HAProxy and Apache do": {
			&aFront{hangsUp: true}, "front, retries", diagnose.OK,
			"sent once; the front hangs up on a sender that has kept its connection",
		},
		"a careful one, half-closed": {&aFront{}, "front, half-closed", diagnose.OK, "is not told"},
		"it answers 200 to a sender that has closed its half, as Caddy does": {
			&aFront{approves: true}, "front, half-closed", diagnose.Warning, "gets status 200 by the front itself",
		},
		"it takes Hooklock for dead after a 503, as Apache's failonstatus does": {
			&aFront{excludes: true}, "front, answers", diagnose.Failed,
			"after answers such as 503 a delivery does not arrive: status 502",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.front.said(t, c.check); got.Result != c.result || !strings.Contains(got.Found, c.found) {
				t.Errorf("%v: %s", got.Result, got.Found)
			}
		})
	}
}
