package admin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// The secrets of the rig's tokens.
const (
	opsToken    = "ops-token-ops-token-ops-token"       // reads and writes everything
	readToken1  = "read-token-read-token-read-token"    // reads everything
	stripeToken = "stripe-token-stripe-token-stripe-to" // reads and writes stripe/*
	writeToken1 = "write-token-write-token-write-tok"   // writes everything, reads nothing
	seeingToken = "seeing-token-seeing-token-seeing"    // reads everything, and sees that, too
	bodiesToken = "bodies-token-bodies-token-bodies"    // sees what senders and upstreams said, and no more
)

func rigTokens() []Token {
	return []Token{
		{Name: "ops", Digest: Digest(opsToken), Read: true, Write: true, Bodies: true},
		{Name: "reader", Digest: Digest(readToken1), Read: true, Workflows: []string{"*"}},
		{Name: "stripe", Digest: Digest(stripeToken), Read: true, Write: true,
			Workflows: []string{"stripe/*", "*-shared"}},
		{Name: "seer", Digest: Digest(seeingToken), Read: true, Bodies: true, Workflows: []string{"*"}},
		{Name: "auditor", Digest: Digest(bodiesToken), Bodies: true},
		{Name: "writer", Digest: Digest(writeToken1), Write: true},
	}
}

// rig is an API behind a real listener.
type rig struct {
	t    testing.TB
	api  *API
	http *httptest.Server
	log  *lines
}

func newRig(t testing.TB, ledger Ledger, change func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, log: &lines{}}
	o := Options{
		Ready: func() error {
			return nil
		}, Metrics: http.NotFoundHandler(), Ledger: ledger, Access: Access{Tokens: rigTokens()},
		Log: slog.New(slog.NewJSONHandler(r.log, nil)),
	}
	if change != nil {
		change(&o)
	}
	r.api = New(o)
	server := httptest.NewServer(r.api)
	r.http = server
	t.Cleanup(func() {
		r.api.Close()
		server.Close()
	})
	return r
}

// reply is an answer of the API.
type reply struct {
	*http.Response
	body []byte
	json map[string]any
}

func (a *reply) code() string { s, _ := a.json["code"].(string); return s }

// text is a member of the answer that is a text.
func (a *reply) text(name string) string { s, _ := a.json[name].(string); return s }

// number is a member of the answer that is a number.
func (a *reply) number(name string) int64 { f, _ := a.json[name].(float64); return int64(f) }

// ask sends one request; each answer is compared with openapi.json.
func (r *rig) ask(method, path, token, body string, headers ...string) *reply {
	r.t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	q, err := http.NewRequestWithContext(r.t.Context(), method, r.http.URL+path, content)
	if err != nil {
		r.t.Fatal(err)
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	res, err := r.http.Client().Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.read(method, q.URL.EscapedPath(), res)
}

// raw sends bytes and reads one answer.
func (r *rig) raw(request string) *reply {
	r.t.Helper()
	c, err := net.Dial("tcp", r.http.Listener.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, request)
	method, rest, _ := strings.Cut(request, " ")
	path, _, _ := strings.Cut(rest, " ")
	path, _, _ = strings.Cut(path, "?")
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.read(method, path, res)
}

func (r *rig) read(method, path string, res *http.Response) *reply {
	r.t.Helper()
	defer res.Body.Close()
	a := &reply{Response: res}
	var err error
	if a.body, err = io.ReadAll(res.Body); err != nil {
		r.t.Fatal(err)
	}
	if strings.Contains(res.Header.Get("Content-Type"), "json") {
		if err := json.Unmarshal(a.body, &a.json); err != nil && method != "HEAD" {
			r.t.Errorf("%s %s: not JSON: %s", method, path, a.body)
		}
	}
	for name := range res.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			r.t.Errorf("%s %s: %s", method, path, name)
		}
	}
	if after, err := strconv.Atoi(res.Header.Get("Retry-After")); (err == nil && after >= 1 &&
		after <= 60) != slices.Contains([]int{409, 429, 503}, res.StatusCode) {
		r.t.Errorf("%s %s: %d with Retry-After %q", method, path, res.StatusCode, res.Header.Get("Retry-After"))
	}
	described(r.t, method, path, a)
	return a
}

// want asks and compares status and code.
func (r *rig) want(status int, code, method, path, token, body string, headers ...string) *reply {
	r.t.Helper()
	a := r.ask(method, path, token, body, headers...)
	if a.StatusCode != status || a.code() != code {
		r.t.Errorf("%s %s %s: got %d %s, want %d %s: %s", method, path, body, a.StatusCode, a.code(), status, code,
			a.body)
	}
	return a
}

// lines collects log lines.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// audit is the last audit line.
func (l *lines) audit(t *testing.T) map[string]any {
	t.Helper()
	all := strings.Split(strings.TrimSpace(l.String()), "\n")
	for _, a := range slices.Backward(all) {
		if strings.Contains(a, `"msg":"admin.audit"`) {
			var line map[string]any
			if err := json.Unmarshal([]byte(a), &line); err != nil {
				t.Fatal(err)
			}
			return line
		}
	}
	t.Fatal("no audit line")
	return nil
}
