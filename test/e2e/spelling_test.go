package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// The servers of other languages are in deploy/test/bypass.
func TestNoSpellingRunsAGoEndpointUnsigned(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("../../deploy/test/bypass/measured.md")
	if err != nil {
		t.Fatal(err)
	}
	const path = "/hooks/a"
	run := func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Ran", "1") }
	mux := func(pattern string) http.Handler {
		m := http.NewServeMux()
		m.HandleFunc(pattern, run)
		return m
	}
	for name, handler := range map[string]http.Handler{
		"Go's ServeMux":                  mux(path),
		"Go's ServeMux, with the method": mux("POST " + path),
		"Go, r.URL.Path with EqualFold": only(func(r *http.Request) bool {
			return strings.EqualFold(r.URL.Path, path)
		}, run),
		"Go, r.RequestURI up to the query": only(func(r *http.Request) bool {
			p, _, _ := strings.Cut(r.RequestURI, "?")
			return p == path
		}, run),
		"Go, r.URL.Path without blanks, dots": only(func(r *http.Request) bool {
			return strings.TrimRight(r.URL.Path, " .\t\n\u00a0") == path
		}, run),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := httptest.NewServer(handler)
			t.Cleanup(up.Close)
			direct := strings.TrimPrefix(up.URL, "http://")
			h := own(t,
				fmt.Sprintf(
					"listen: 127.0.0.1:0\nadmin: {listen: '127.0.0.1:0'}\nupstream: %s\nunmatched: pass\netcd: {endpoints: [%q], prefix: %s, request_timeout: 10s}\n"+
						"routes: [{name: hook, path: %s, verify: {scheme: token, header: X-Token, secret_env: S}}]\n",
					up.URL,
					shared.etcd.Endpoint, ownPrefix(), path), "S=right")
			if a := testkit.Post(t, h.Addr, path, "{}", "X-Token: right"); a.Header.Get("X-Ran") == "" {
				t.Fatalf("a signed delivery does not arrive: %v", a)
			}
			var reads []string
			for _, s := range testkit.Spellings(path) {
				if !reaches(t, direct, s) {
					continue
				}
				reads = append(reads, s.Name)
				if reaches(t, h.Addr, s) {
					t.Errorf("%s runs the endpoint: %q", s.Name, s.Request)
				}
			}
			if row := fmt.Sprintf("| %s | `%s` | %s |\n", name, path,
				testkit.Laxities(reads)); !strings.Contains(string(table), row) {
				t.Errorf("deploy/test/bypass/measured.md lacks the row that was measured\n%s", row)
			}
		})
	}
}

func only(takes func(*http.Request) bool, run http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if takes(r) {
			run(w, r)
		}
	})
}

// reaches sends a spelling, and says whether the endpoint ran. A server that hangs up has not run
// anything.
func reaches(t *testing.T, addr string, s testkit.Spelling) bool {
	t.Helper()
	c := testkit.Dial(t, addr)
	defer c.Close()
	c.Say(s.Request)
	method, _, _ := strings.Cut(s.Request, " ")
	a, err := c.TryAnswer(method)
	return err == nil && a.Header.Get("X-Ran") != ""
}
