package admin

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"hooklock/admin/client"
)

// look asks for a part of the page.
func (r *rig) look(path, token string, headers ...string) (status int, text string) {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.http.URL+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	res, err := r.http.Client().Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	if res.Header.Get("Content-Security-Policy") == "" && res.Header.Get("Content-Type") != "application/problem+json" {
		r.t.Errorf("%s: no policy", path)
	}
	return res.StatusCode, string(body)
}

// screensOf are all parts of the page that ask the API.
func screensOf(id string) []string {
	return []string{"/page/now", "/page/find", "/page/find?text=secret", "/page/story?id=" + id, "/page/needs",
		"/page/routes", "/page/audit", "/page/ask?do=cancel&id=" + id, "/page/ask?do=all-forget"}
}

func TestEachScreenShowsATokenItsOwnWorkflowsAlone(t *testing.T) {
	f := newFleet(t, func(o *Options) { o.Process = &process{} })
	own, secret := f.run("stripe/acme", "mine"), f.run("github/secret", "theirs")
	ended := f.run("github/secret2", "ended")
	f.settle(ended, failure())
	f.want(202, "", "POST", "/v1/executions/"+secret.id+"/cancel", opsToken, `{"reason":"github/secret is stuck"}`)
	f.want(202, "", "POST", "/v1/executions/"+own.id+"/cancel", stripeToken, `{"reason":"mine"}`)
	seen := 0
	for _, path := range append(screensOf(own.id), screensOf(secret.id)...) {
		status, text := f.look(path, stripeToken)
		if strings.Contains(text, "github") || strings.Contains(text, "theirs") || strings.Contains(text, ended.id) ||
			strings.Contains(text, secret.id) && !strings.Contains(path, secret.id) {
			t.Errorf("%s shows what is not the token's: %s", path, text)
		}
		if strings.Contains(text, "stripe/acme") {
			seen++
		}
		if strings.Contains(path, secret.id) && status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
		if _, all := f.look(path, opsToken); strings.Contains(path, "needs") &&
			!strings.Contains(all, "github/secret2") {
			t.Errorf("%s does not show ops what is unknown: %s", path, all)
		}
	}
	if seen < 6 {
		t.Errorf("the token saw its own %d times", seen)
	}
	res, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.http.URL+"/page/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Header.Set("Authorization", "Bearer "+stripeToken)
	stream, err := f.http.Client().Do(res)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	r := bufio.NewReader(stream.Body)
	_, _ = r.ReadString('\n')
	if data, err := r.ReadString('\n'); err != nil || !strings.Contains(data, "stripe/acme") ||
		strings.Contains(data, "github") {
		t.Errorf("the stream: %v %s", err, data)
	}
}

func TestThePageNeedsATokenWhereTheAPIDoes(t *testing.T) {
	r := newRig(t, unreachable{}, func(o *Options) { o.Process = &process{} })
	for _, path := range append(screensOf(anID), "/page/live") {
		for _, token := range []string{"", "guess", writeToken1} {
			want := http.StatusUnauthorized
			if token == writeToken1 {
				want = http.StatusForbidden
			}
			if status, text := r.look(path, token); status != want {
				t.Errorf("%s with %q: %d %s", path, token, status, text)
			}
		}
	}
	open := newRig(t, unreachable{}, func(o *Options) {
		o.Process, o.Access = &process{}, Access{Open: true}
		o.Report = func(time.Time) client.Report { return client.Report{} }
	})
	for _, path := range screensOf(anID)[:7] {
		if status, text := open.look(path, ""); status != http.StatusOK {
			t.Errorf("%s where reads need no token: %d %s", path, status, text)
		}
	}
}

func TestALinkFromElsewhereLeadsToTheFirstFileOfThePageAlone(t *testing.T) {
	r := newRig(t, unreachable{}, func(o *Options) { o.Process, o.Access = &process{}, Access{Open: true} })
	visit := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	if status, text := r.look("/", "", visit...); status != http.StatusOK || strings.Contains(text, "host/1") {
		t.Errorf("%d %s", status, text)
	}
	for name, c := range map[string]struct {
		path    string
		headers []string
	}{
		"another file": {"/page/now", visit},
		"with a query": {"/?x", visit},
		"the API":      {"/v1/status", visit},
		"a script": {"/page/page.js", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors",
			"Sec-Fetch-Dest", "script"}},
		"a fetch": {"/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest",
			"empty"}},
		"a frame": {"/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate",
			"Sec-Fetch-Dest", "iframe"}},
		"with an origin":   {"/", append([]string{"Origin", "https://evil.example"}, visit...)},
		"the other origin": {"/page/now", []string{"Origin", "https://evil.example"}},
	} {
		if status, text := r.look(c.path, "", c.headers...); status != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if a := r.raw("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"); a.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("a name that was made to lead here: %d", a.StatusCode)
	}
}
