package admin

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func ask(t *testing.T, h http.Handler, host, path string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = host
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(body)
}

func TestReadyzSaysWhyOnlyWhenAskedVerbosely(t *testing.T) {
	var why error
	h := Health(Options{Ready: func() error { return why }, Metrics: http.NotFoundHandler()})
	if code, _ := ask(t, h, "127.0.0.1", "/readyz"); code != 200 {
		t.Errorf("ready: got %d", code)
	}
	why = errors.New("no session: connection refused")
	if code, body := ask(t, h, "127.0.0.1", "/readyz"); code != 503 || strings.Contains(body, "refused") {
		t.Errorf("not ready: got %d %q", code, body)
	}
	if code, body := ask(t, h, "127.0.0.1", "/readyz?verbose"); code != 503 || !strings.Contains(body, "connection refused") {
		t.Errorf("verbose: got %d %q", code, body)
	}
	if code, _ := ask(t, h, "127.0.0.1", "/livez"); code != 200 {
		t.Errorf("livez follows readiness: got %d", code)
	}
}

func TestAdminListenerIsAskedByAddressOrAsLocalhostOnly(t *testing.T) {
	h := Local(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, want := range map[string]int{
		"127.0.0.1:8079": 200, "localhost": 200, "LOCALHOST:1": 200, "[::1]:8079": 200, "10.0.0.3": 200,
		"evil.example": 421, "evil.example:8079": 421, "": 421, "127.0.0.1.evil.example": 421,
	} {
		if code, _ := ask(t, h, host, "/"); code != want {
			t.Errorf("Host %q: got %d, want %d", host, code, want)
		}
	}
}
