package admin

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hooklock/idem"
)

// unreachable is a ledger whose store does not answer: a caller that gets 503 was let in.
type unreachable struct{}

func (unreachable) Execution(context.Context, idem.ExecutionID) (*idem.Found, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) Await(context.Context, idem.ExecutionID, *idem.Found) (*idem.Found, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) Executions(context.Context, idem.ExecutionQuery) (idem.ExecutionPage, error) {
	return idem.ExecutionPage{}, idem.ErrStoreUnavailable
}
func (unreachable) Lock(context.Context, string) (*idem.LockView, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) LockOf(context.Context, string, idem.ExecutionID) (*idem.LockView, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) Locks(context.Context, idem.LockQuery) (idem.LockPage, error) {
	return idem.LockPage{}, idem.ErrStoreUnavailable
}
func (unreachable) Slots(context.Context, idem.LockQuery) (idem.SlotPage, error) {
	return idem.SlotPage{}, idem.ErrStoreUnavailable
}

func (unreachable) Turns(context.Context, idem.LockQuery) (idem.SlotPage, error) {
	return idem.SlotPage{}, idem.ErrStoreUnavailable
}
func (unreachable) Cancel(context.Context, idem.ExecutionID, idem.Cancel, *idem.Audit) (*idem.Found, bool, error) {
	return nil, false, idem.ErrStoreUnavailable
}
func (unreachable) Forget(context.Context, idem.ExecutionID, idem.Cancel, *idem.Audit) (*idem.Found, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) ForceRelease(context.Context, string, idem.ExecutionID, idem.Cancel, *idem.Audit) (*idem.Found,
	error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) Pauses(context.Context) ([]idem.PauseState, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) Pause(context.Context, idem.Pause, *idem.Audit) (*idem.Pause, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) Resume(context.Context, idem.PauseScope, *idem.Audit) (*idem.Pause, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) Jobs(context.Context) ([]idem.Job, error) { return nil, idem.ErrStoreUnavailable }
func (unreachable) OpenJobs(context.Context) ([]idem.Job, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) Job(context.Context, string) (*idem.Job, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) JobRuns(context.Context, string) ([]idem.JobRun, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) BeginJob(context.Context, *idem.Job, *idem.Audit) error {
	return idem.ErrStoreUnavailable
}
func (unreachable) TakeJob(context.Context, *idem.Job) error { return idem.ErrStoreUnavailable }
func (unreachable) PutJob(context.Context, *idem.Job, *idem.JobRun, []idem.JobRun) error {
	return idem.ErrStoreUnavailable
}
func (unreachable) MoveJob(context.Context, *idem.Job, *idem.Audit) error {
	return idem.ErrStoreUnavailable
}
func (unreachable) Acknowledgements(context.Context) ([]idem.Acknowledgement, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) Acknowledge(context.Context, idem.Acknowledgement, *idem.Audit) (kept, before *idem.Acknowledgement,
	err error) {
	return nil, nil, idem.ErrStoreUnavailable
}
func (unreachable) DropAcknowledgement(context.Context, idem.Concern, *idem.Audit) (*idem.Acknowledgement, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) ParkedExecutions(context.Context, idem.ParkedQuery) (idem.ExecutionPage, error) {
	return idem.ExecutionPage{}, idem.ErrStoreUnavailable
}
func (unreachable) ParkedEntries(context.Context, idem.ParkedQuery) (idem.ParkedPage, error) {
	return idem.ParkedPage{}, idem.ErrStoreUnavailable
}
func (unreachable) RunNow(context.Context, idem.ExecutionID, *idem.Audit) (*idem.Found, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) Skip(context.Context, idem.ExecutionID, idem.Cancel, *idem.Audit) (*idem.Found, bool, error) {
	return nil, false, idem.ErrStoreUnavailable
}
func (unreachable) Rerun(context.Context, idem.ExecutionID, *idem.Audit) (*idem.Found, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) RunAgain(context.Context, idem.ExecutionID, *idem.Audit) (*idem.Found, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) KeptRequest(context.Context, idem.ExecutionID) ([]byte, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) Audit(context.Context, *idem.Audit) error { return idem.ErrStoreUnavailable }

func (unreachable) AuditRefusal(idem.Audit) {}
func (unreachable) Audits(context.Context, idem.AuditQuery) (idem.AuditPage, error) {
	return idem.AuditPage{}, idem.ErrStoreUnavailable
}
func (unreachable) BadSignatures(context.Context, idem.BadSignatureQuery) (idem.BadSignaturePage, error) {
	return idem.BadSignaturePage{}, idem.ErrStoreUnavailable
}
func (unreachable) Counts(context.Context, idem.CountQuery) (idem.CountHistory, error) {
	return idem.CountHistory{}, idem.ErrStoreUnavailable
}
func (unreachable) Guard(context.Context, idem.Callback, string, []string) (*idem.Found, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) Replicas(context.Context) ([]idem.ReplicaNote, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) Space(context.Context) []idem.StoreSpace { return nil }
func (unreachable) Heartbeat(context.Context, idem.Callback, time.Duration) (*idem.Found, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) Complete(context.Context, idem.Callback, idem.Final) (*idem.Found, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) AcquireLock(context.Context, idem.AcquireRequest) (*idem.Acquired, error) {
	return nil, idem.ErrStoreUnavailable
}
func (unreachable) ReleaseLock(context.Context, string, idem.Callback) error {
	return idem.ErrStoreUnavailable
}

const anID = "exec_mjyg3x6slz3ns4tdjh2hkbwzqi4dr7xk"

// requests are one of each endpoint, with the body that openapi.json gives as an example.
var requests = examples()

type request struct{ method, path, body string }

func examples() (all []request) {
	named := strings.NewReplacer(
		"{workflow}", "w", "{id}", anID, "{job}", "job_a", "{scope}", "workflow:w", "{concern}",
		"unknown:route")
	for _, e := range descriptions() {
		values := url.Values{}
		for _, one := range e.query {
			if _, required := one.kind.(must); required {
				values.Set(one.name, anID)
			}
		}
		path := strings.TrimSuffix(named.Replace(e.path)+"?"+values.Encode(), "?")
		all = append(all, request{e.method, path, e.example})
	}
	return all
}

// asksNoLedger says of a path that its endpoint has a test of its own.
func asksNoLedger(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	return slices.Contains([]string{"/v1/report", "/v1/suggestions", "/v1/embedded/backup", "/v1/status", "/v1/routes",
		"/v1/config", "/v1/config/reload", "/v1/notify/test", "/v1/attention"}, path)
}

func TestEachTokenMayDoWhatItsScopesAndWorkflowsSay(t *testing.T) {
	for _, q := range requests {
		r := newRig(t, unreachable{}, nil) // each, because wrong tokens use up an address's credit
		path, _, _ := strings.Cut(q.path, "?")
		e, _, p := findEndpoint(allEndpoints(), q.method, path)
		if p != nil {
			t.Fatal(p)
		}
		if asksNoLedger(path) {
			continue
		}
		may := func(accesses ...access) int {
			if e.access == forCallback || slices.Contains(accesses, e.access) {
				return 503
			}
			return 403
		}
		for token, want := range map[string]int{
			"": 401, opsToken: may(forRead, forWrite, forBodies), readToken1: may(forRead), writeToken1: may(forWrite),
			bodiesToken: may(forBodies),
		} {
			a := r.ask(q.method, q.path, token, q.body)
			if a.StatusCode != want {
				t.Errorf("%s %s with %q: got %d, want %d: %s", q.method, q.path, token, a.StatusCode, want, a.body)
			}
			if (want == 401 || want == 403) != (a.Header.Get("WWW-Authenticate") != "") {
				t.Errorf("%s %s with %q: WWW-Authenticate %q", q.method, q.path, token,
					a.Header.Get("WWW-Authenticate"))
			}
		}
		if e.access != forCallback { // a key that nobody has asked the ledger about yet
			r.want(401, "unauthorized", q.method, q.path, "guess", q.body)
		}
	}
}

func TestWithoutConfiguredTokensReadingIsOpenAndChangingIsNot(t *testing.T) {
	r := newRig(t, unreachable{}, func(o *Options) {
		o.Access = Access{Open: true, Tokens: []Token{{Name: "admin", Digest: Digest(opsToken), Read: true, Write: true,
			Bodies: true}}}
	})
	for _, q := range requests {
		path, _, _ := strings.Cut(q.path, "?")
		if asksNoLedger(path) {
			continue
		}
		e, _, _ := findEndpoint(allEndpoints(), q.method, path)
		want := 401
		if e.access == forRead {
			want = 503
		}
		if a := r.ask(q.method, q.path, "", q.body); a.StatusCode != want {
			t.Errorf("%s %s: got %d, want %d", q.method, q.path, a.StatusCode, want)
		}
		if a := r.ask(q.method, q.path, opsToken, q.body); a.StatusCode != 503 {
			t.Errorf("%s %s with the token: got %d", q.method, q.path, a.StatusCode)
		}
	}
	r.want(401, "unauthorized", "GET", "/v1/locks", "wrong", "")
}

// What is left of a token whose file is gone: the configuration can be read again with it, and
// nothing else.
func TestATokenForAReloadIsGoodForNothingElse(t *testing.T) {
	a := Access{Tokens: []Token{{Name: "gone", Digest: Digest(opsToken), Reload: true}}}
	for _, q := range requests {
		path, _, _ := strings.Cut(q.path, "?")
		e, _, p := findEndpoint(allEndpoints(), q.method, path)
		if p != nil {
			t.Fatal(p)
		}
		if e.access == forCallback { // any key is let in; the ledger compares it
			continue
		}
		r := httptest.NewRequest(q.method, q.path, nil)
		r.Header.Set("Authorization", "Bearer "+opsToken)
		if _, p := a.admitCaller(e, r); (p == nil) != (path == "/v1/config/reload") || p != nil &&
			p.Code != "forbidden" {
			t.Errorf("%s %s: %+v", q.method, path, p)
		}
	}
}

func TestATokenIsGivenOnceAndAsABearer(t *testing.T) {
	r := newRig(t, unreachable{}, nil)
	for authorization, want := range map[string]int{
		"Bearer " + opsToken: 503, "bearer " + opsToken: 503, "BEARER  " + opsToken: 503,
		opsToken: 401, "Basic " + opsToken: 401, "Bearer": 401, "Bearer ": 401, "Bearer " + opsToken + "x": 401,
		"Bearer " + opsToken[1:]: 401,
	} {
		a := r.raw("GET /v1/locks HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + authorization + "\r\n\r\n")
		if a.StatusCode != want {
			t.Errorf("%q: got %d, want %d", authorization, a.StatusCode, want)
		}
	}
	twice := strings.Repeat("Authorization: Bearer "+opsToken+"\r\n", 2)
	if a := r.raw("GET /v1/locks HTTP/1.1\r\nHost: localhost\r\n" + twice + "\r\n"); a.StatusCode != 401 {
		t.Errorf("twice: got %d", a.StatusCode)
	}
}

func TestATokenInTheQueryIsNotTaken(t *testing.T) {
	r := newRig(t, unreachable{}, nil)
	r.want(401, "unauthorized", "GET", "/v1/locks?access_token="+opsToken, "", "")
}

func TestPatternsOfWorkflows(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true}, {"*", "a/b", true}, {"", "", true}, {"", "a", false}, {"a", "a", true}, {"a", "ab", false},
		{"stripe/*", "stripe/acme", true}, {"stripe/*", "stripe/", true}, {"stripe/*", "stripe", false},
		{"stripe/*", "xstripe/acme", false},
		{"*/acme", "stripe/acme", true}, {"*/acme", "a/b/acme", true}, {"*/acme", "acme", false},
		{"a*b*c", "abc", true}, {"a*b*c", "a-b-b-c", true}, {"a*b*c", "ac", false}, {"a*a", "a", false},
		{"a*a", "aa", true}, {"*a*", "bab", true},
		{"a?", "ab", false}, {"[ab]", "a", false}, {"ä*", "äö", true},
		{strings.Repeat("a*", 400) + "b", strings.Repeat("a", 2000), false},
	} {
		if got := idem.MatchPattern(c.pattern, c.text); got != c.want {
			t.Errorf("idem.MatchPattern(%q, %q) = %v", c.pattern, c.text, got)
		}
	}
}

func TestOtherHostsAreMisdirected(t *testing.T) {
	r := newRig(t, unreachable{}, func(o *Options) { o.Access.Hosts = []string{"hooklock.internal"} })
	for host, want := range map[string]int{"hooklock.internal:8079": 503, "127.0.0.1": 503, "evil.example": 421} {
		for _, path := range []string{"/v1/locks"} {
			if a := r.raw("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer " + opsToken +
				"\r\n\r\n"); a.StatusCode != want {
				t.Errorf("%s at %s: got %d, want %d", path, host, a.StatusCode, want)
			}
		}
	}
	if a := r.raw("GET /openapi.json HTTP/1.1\r\nHost: evil.example\r\n\r\n"); a.StatusCode != 421 {
		t.Errorf("openapi.json: got %d", a.StatusCode)
	}
}

func TestAnAddressThatTriesManyTokensIsSlowedAndOthersAreNot(t *testing.T) {
	now := time.Now()
	r := newRig(t, unreachable{}, func(o *Options) { o.Now = func() time.Time { return now } })
	for range credit/guessCost + 1 {
		r.want(401, "unauthorized", "GET", "/v1/locks", "guess", "")
	}
	a := r.want(429, "rate_limited", "GET", "/v1/locks", opsToken, "")
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	r.want(401, "unauthorized", "GET", "/v1/locks", "", "") // without a token there is nothing to guess
	r.want(503, "store_unavailable", "POST", "/v1/executions/"+anID+"/guard", "key", `{"token":1}`)
	if p := get(r.api, "GET", "127.0.0.1", "/v1/locks"); p.Code != 401 {
		t.Errorf("another address: got %d", p.Code)
	}
	now = now.Add(2 * guessCost)
	r.want(503, "store_unavailable", "GET", "/v1/locks", opsToken, "")
}

// keyless is a ledger that knows one execution, and takes no key for its own.
type keyless struct{ unreachable }

func (keyless) Guard(_ context.Context, by idem.Callback, _ string, _ []string) (*idem.Found, error) {
	if by.Execution == anID {
		return nil, idem.ErrCallbackKey
	}
	return nil, idem.ErrNoExecution
}

func TestAnOutdatedWorkerDoesNotLockOutTheOthersOfItsUpstream(t *testing.T) {
	now := time.Now()
	r := newRig(t, keyless{}, func(o *Options) { o.Now = func() time.Time { return now } })
	other := strings.Replace(anID, "exec_m", "exec_n", 1)
	for range credit/guessCost + 1 {
		r.want(401, "unauthorized", "POST", "/v1/executions/"+anID+"/guard", "guess", `{"token":1}`)
	}
	audited := strings.Count(r.log.String(), "admin.audit")
	r.want(429, "rate_limited", "POST", "/v1/executions/"+anID+"/guard", "guess", `{"token":1}`)
	if n := strings.Count(r.log.String(), "admin.audit"); n != audited {
		t.Error("what is held back can fill the log")
	}
	for range credit/searchCost + 1 {
		r.want(404, "execution_not_found", "POST", "/v1/executions/"+other+"/guard", "key", `{"token":1}`)
	}
	r.want(429, "rate_limited", "POST", "/v1/executions/"+other+"/guard", "key", `{"token":1}`)
	r.want(503, "store_unavailable", "GET", "/v1/locks", opsToken, "")
}

func TestNamesThatAreMadeUpAreNotRemembered(t *testing.T) {
	r := newRig(t, keyless{}, nil)
	for i := range 5 {
		r.want(401, "unauthorized", "POST", "/v1/executions/"+strings.Repeat("x", 10_000+i)+"/guard", "", `{"token":1}`,
			"Authorization", "Basic x")
	}
	r.api.failed.mu.Lock()
	defer r.api.failed.mu.Unlock()
	if len(r.api.failed.paid) != 2 { // the address as one that guesses, and as one that is audited
		t.Errorf("%d are remembered", len(r.api.failed.paid))
	}
}

func TestRequestsWithoutATokenDoNotFillTheAuditLog(t *testing.T) {
	now := time.Now()
	r := newRig(t, unreachable{}, func(o *Options) { o.Now = func() time.Time { return now } })
	for range 2 * credit / searchCost {
		r.want(401, "unauthorized", "POST", "/v1/locks/w/acquire", "", `{"ttl":"1m"}`)
	}
	if n := time.Duration(strings.Count(r.log.String(), "admin.audit")); n < credit/searchCost || n > credit/searchCost+
		1 {
		t.Errorf("%d lines", n)
	}
	r.want(403, "forbidden", "POST", "/v1/locks/w/acquire", readToken1, `{"ttl":"1m"}`)
	if line := r.log.audit(t); line["who"] != "reader" {
		t.Errorf("%v", line)
	}
}

func TestAddressesOfFailuresAreBounded(t *testing.T) {
	now := time.Now()
	f := failures{now: func() time.Time { return now }}
	for i := range 3 * maxAddresses {
		f.addFailure(time.Duration(i).String(), guessCost)
	}
	if len(f.paid) > maxAddresses {
		t.Errorf("%d addresses", len(f.paid))
	}
}

func TestClientsOfOneNetworkAreOne(t *testing.T) {
	for remote, want := range map[string]string{
		"10.1.2.3:4": "10.1.2.3", "[::ffff:10.1.2.3]:4": "10.1.2.3", "[2001:db8::1]:4": "2001:db8::/64",
		"[2001:db8::2]:5":  "2001:db8::/64",
		"[fe80::1%eth0]:4": "fe80::/64", "[::1]:4": "::1", "@": "@",
	} {
		if got := networkOf(remote); got != want {
			t.Errorf("%s: got %s, want %s", remote, got, want)
		}
	}
}

func TestTokensAreReplacedWhileTheAPIRuns(t *testing.T) {
	r := newRig(t, unreachable{}, nil)
	r.api.SetAccess(Access{Tokens: []Token{{Name: "new", Digest: Digest("new"), Read: true}}})
	r.want(401, "unauthorized", "GET", "/v1/locks", opsToken, "")
	r.want(503, "store_unavailable", "GET", "/v1/locks", "new", "")
}

func TestACursorSaysNothingAndIsItsTokensAlone(t *testing.T) {
	all, some, nobody := caller{token: rigTokens()[0]}, caller{token: rigTokens()[2]}, caller{}
	callers := []caller{all, some, nobody}
	for i, c := range callers {
		if c.sealCursor("") != "" {
			t.Errorf("%q has no next page, and a cursor", c.token.Name)
		}
		sealed := c.sealCursor("locks/secret")
		if plain, _ := base64.RawURLEncoding.DecodeString(sealed); strings.Contains(sealed+string(plain), "secret") {
			t.Errorf("%q reads %q", c.token.Name, plain)
		}
		if got, err := c.openCursor(sealed); got != "locks/secret" || err != nil {
			t.Errorf("%q: %q %v", c.token.Name, got, err)
		}
		for _, bad := range []string{"locks/secret", sealed + "A", sealed[1:], "é", "AAAA",
			callers[(i+1)%len(callers)].sealCursor("locks/secret")} {
			if _, err := c.openCursor(bad); !errors.Is(err, idem.ErrCursor) {
				t.Errorf("%q was taken of %q: %v", bad, c.token.Name, err)
			}
		}
	}
}

func TestPagesOfOtherOriginsGetNothing(t *testing.T) {
	r := newRig(t, unreachable{}, nil)
	own := "http://" + r.http.Listener.Addr().String()
	foreign := [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "Same-Origin"},
		{"Sec-Fetch-Site", ""},
		{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Origin", ""}, {"Origin", "http://127.0.0.1"},
		{"Origin", "http://localhost:3000"}, {"Origin", own + ".evil.example"},
		{"Sec-Fetch-Site", "same-origin", "Origin", "http://localhost:3000"},
		{"Sec-Fetch-Site", "cross-site", "Origin", own},
	}
	for _, q := range requests {
		for _, headers := range foreign {
			r.want(403, "cross_site", q.method, q.path, opsToken, q.body, headers...)
		}
	}
	for _, path := range []string{"/metrics", "/readyz", "/openapi.json"} {
		if a := r.raw("GET " + path +
			" HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n\r\n"); a.StatusCode != 403 ||
			a.code() != "cross_site" {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.body)
		}
	}
	for _, headers := range [][]string{{}, {"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"},
		{"Origin", own}, {"Origin", strings.ToUpper(own), "Sec-Fetch-Site", "same-origin"}} {
		r.want(503, "store_unavailable", "GET", "/v1/locks", opsToken, "", headers...)
	}
}
