package testkit

import (
	"fmt"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"testing"

	"hooklock/proxy/wiretest"
)

// Upstream is a service that keeps every byte that reaches it.
type Upstream struct {
	*wiretest.Upstream
	// URL is what the configuration calls it.
	URL string

	mu      sync.Mutex
	running map[string]int
	most    map[string]int
}

// Received is one request that reached an Upstream.
type Received struct {
	Raw            string // every byte
	Method, Target string
	Lines          []string // header lines as they came
	Header         http.Header
	Body           string // as it came: with the chunks' sizes where it was chunked
	Conn           *wiretest.Conn
	Context        interface{ Done() <-chan struct{} } // ends with the test
}

// Handler answers a request with raw bytes; an empty answer closes the connection without one. It
// may say things on r.Conn itself. It must return when r.Context is done.
type Handler func(r *Received) string

// NewUpstream starts an Upstream for tb.
func NewUpstream(tb testing.TB, handle Handler) *Upstream {
	tb.Helper()
	u := newUpstream()
	u.Upstream = wiretest.Serve(tb, u.talk(tb, handle))
	u.URL = "http://" + u.Addr
	return u
}

// NewUnixUpstream is NewUpstream on a unix socket.
func NewUnixUpstream(tb testing.TB, handle Handler) *Upstream {
	tb.Helper()
	u := newUpstream()
	u.Upstream = wiretest.ServeUnix(tb, u.talk(tb, handle))
	u.URL = "unix://" + u.Addr
	return u
}

// NewTLSUpstream is NewUpstream behind TLS; its certificate is for 127.0.0.1, and what trusts it is
// in Upstream.TLS.
func NewTLSUpstream(tb testing.TB, handle Handler) *Upstream {
	tb.Helper()
	u := newUpstream()
	u.Upstream = wiretest.ServeTLS(tb, u.talk(tb, handle))
	u.URL = "https://" + u.Addr
	return u
}

func newUpstream() *Upstream {
	return &Upstream{running: map[string]int{}, most: map[string]int{}}
}

// talk serves one connection: request by request, until an answer is empty.
func (u *Upstream) talk(tb testing.TB, handle Handler) func(*wiretest.Conn) {
	return func(c *wiretest.Conn) {
		for {
			raw, err := c.ReadRequest()
			if err != nil {
				return
			}
			r := parse(raw)
			r.Conn, r.Context = c, tb.Context()
			answer := u.count(r, handle)
			if answer == "" || c.Say(answer) != nil {
				return
			}
		}
	}
}

// count runs handle and notes how many requests of one workflow run at the same time.
func (u *Upstream) count(r *Received, handle Handler) string {
	workflow := r.Header.Get("Hooklock-Workflow")
	u.mu.Lock()
	u.running[workflow]++
	u.most[workflow] = max(u.most[workflow], u.running[workflow])
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.running[workflow]--
	}()
	return handle(r)
}

// MostAtOnce is the largest number of requests of one workflow that were there at the same time.
func (u *Upstream) MostAtOnce(workflow string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.most[workflow]
}

// Received are all requests so far whose target is target; an empty target takes all.
func (u *Upstream) Received(target string) []*Received {
	var found []*Received
	for _, raw := range u.Requests() {
		if r := parse(raw); target == "" || r.Target == target {
			found = append(found, r)
		}
	}
	return found
}

// AwaitReceived waits until n requests for target came, and returns them.
func (u *Upstream) AwaitReceived(tb testing.TB, target string, n int) []*Received {
	tb.Helper()
	var found []*Received
	Until(tb, fmt.Sprintf("%d requests for %s at the upstream", n, target), func() bool {
		found = u.Received(target)
		return len(found) >= n
	})
	return found
}

func parse(raw string) *Received {
	head, body, _ := strings.Cut(raw, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	r := &Received{Raw: raw, Body: body, Lines: lines[1:], Header: http.Header{}}
	first := strings.SplitN(lines[0], " ", 3)
	if len(first) == 3 {
		r.Method, r.Target = first[0], first[1]
	}
	for _, line := range r.Lines {
		name, value, _ := strings.Cut(line, ":")
		name = textproto.CanonicalMIMEHeaderKey(name)
		r.Header[name] = append(r.Header[name], strings.TrimSpace(value))
	}
	return r
}

// OK is a whole answer 200 with this body.
func OK(body string) string { return Reply(200, body) }

// Reply is a whole answer; lines are header lines.
func Reply(status int, body string, lines ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	for _, line := range lines {
		b.WriteString(line + "\r\n")
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return b.String()
}
