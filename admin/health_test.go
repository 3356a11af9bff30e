package admin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func get(h http.Handler, method, host, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host = host
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestReadyzSaysWhyOnlyWhenAskedVerbosely(t *testing.T) {
	var why error
	h := Health(Options{Ready: func() error { return why }, Metrics: http.NotFoundHandler()})
	if w := get(h, "GET", "127.0.0.1", "/readyz"); w.Code != 200 {
		t.Errorf("ready: got %d", w.Code)
	}
	why = errors.New("no session: connection refused")
	if w := get(h, "GET", "127.0.0.1", "/readyz"); w.Code != 503 || strings.Contains(w.Body.String(), "refused") {
		t.Errorf("not ready: got %d %q", w.Code, w.Body)
	}
	if w := get(h, "GET", "127.0.0.1", "/readyz?verbose"); w.Code != 503 ||
		!strings.Contains(w.Body.String(), "connection refused") {
		t.Errorf("verbose: got %d %q", w.Code, w.Body)
	}
	if w := get(h, "GET", "127.0.0.1", "/livez"); w.Code != 200 {
		t.Errorf("livez follows readiness: got %d", w.Code)
	}
}

func TestReadyzSaysVerboselyHowFullTheEmbeddedEtcdIs(t *testing.T) {
	var why error
	h := Health(Options{Ready: func() error {
		return why
	}, Space: func(context.Context) string { return "embedded etcd: it is full" }, Metrics: http.NotFoundHandler()})
	if w := get(h, "GET", "127.0.0.1", "/readyz"); w.Body.String() != "ok\n" {
		t.Errorf("got %q", w.Body)
	}
	for _, why = range []error{nil, errors.New("no session")} {
		if w := get(h, "GET", "127.0.0.1", "/readyz?verbose"); !strings.Contains(w.Body.String(),
			"\nembedded etcd: it is full\n") {
			t.Errorf("%v: got %q", why, w.Body)
		}
	}
}

func TestTheHealthListenerHasNothingElse(t *testing.T) {
	h := Health(Options{Ready: func() error { return nil }, Metrics: http.NotFoundHandler()})
	for _, path := range []string{"/v1/locks", "/openapi.json", "/", "/livez/", "/v1/executions/exec_a/cancel"} {
		if w := get(h, "GET", "evil.example", path); w.Code != 404 {
			t.Errorf("%s: got %d", path, w.Code)
		}
	}
	if w := get(h, "POST", "127.0.0.1", "/livez"); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: got %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
	if w := get(h, "HEAD", "127.0.0.1", "/readyz"); w.Code != 200 {
		t.Errorf("HEAD: got %d", w.Code)
	}
}

func TestHostsThatTheListenerAnswersTo(t *testing.T) {
	names := []string{"hooklock.internal", "Admin.Example."}
	for host, want := range map[string]bool{
		"127.0.0.1:8079": true, "localhost": true, "LOCALHOST:1": true, "[::1]:8079": true, "[::1]": true,
		"10.0.0.3": true, "localhost.": true,
		"hooklock.internal:8079": true, "HOOKLOCK.internal": true, "admin.example": true,
		"evil.example": false, "evil.example:8079": false, "": true, "127.0.0.1.evil.example": false,
		"x.hooklock.internal":    false,
		"localhost.evil.example": false, ".": false,
	} {
		if got := hostAllowed(host, names); got != want {
			t.Errorf("Host %q: got %v", host, got)
		}
	}
}
