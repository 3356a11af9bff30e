package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"hooklock/idem"
)

func TestWhatABodyMayBe(t *testing.T) {
	r := newRig(t, unreachable{}, nil)
	for body, want := range map[string]struct {
		status int
		says   string
	}{
		`{"reason":"r"}`:                {503, ""},
		` {"reason":"r","final":null} `: {503, ""},
		`{"reason":"\u00e4\n"}`:         {503, ""},
		`{"reason":"r"}{}`:              {400, "follows"},
		`{"reason":"r"} x`:              {400, "follows"},
		`{"reason":"r","fnal":true}`:    {400, `unknown field \"fnal\"; known are final, ifStatus, reason`},
		`{"Reason":"r"}`:                {400, `unknown field \"Reason\"`},
		`{"reason":"r","reason":"s"}`:   {400, `\"reason\" is given twice`},
		`{"reason":1}`:                  {400, "reason: give a text"},
		`{"reason":["r"]}`:              {400, "reason: give a text"},
		`{"reason":"r","final":"true"}`: {400, "final: give true or false"},
		`{"reason":"r","final":1}`:      {400, "final: give true or false"},
		`{}`:                            {400, "give a reason"},
		`{"reason":" "}`:                {400, "give a reason"},
		`{"reason":null}`:               {400, "give a reason"},
		`{"reason":"` + strings.Repeat("x", 1025) + `"}`: {400, "longer than"},
		`[]`:                             {400, "JSON object"},
		`null`:                           {400, "JSON object"},
		`"r"`:                            {400, "JSON object"},
		`reason=r`:                       {400, "not JSON"},
		`{"reason":"r"`:                  {400, "ends too early"},
		`{"reason":"r",}`:                {400, "not JSON"},
		"{\"reason\":\"\xff\"}":          {400, "not UTF-8"},
		"\xef\xbb\xbf{\"reason\":\"r\"}": {400, "not JSON"},
		`{"reason":` + strings.Repeat("[", 100000):                                     {400, "nested deeper"},
		strings.Repeat(`{"a":`, 5000):                                                  {400, "nested deeper"},
		`{"reason":"r","x":` + strings.Repeat("[", 17) + strings.Repeat("]", 17) + `}`: {400, "nested deeper"},
		`{"reason":"` + strings.Repeat("x", maxBody) + `"}`:                            {413, "at most"},
	} {
		a := r.ask("POST", "/v1/executions/"+anID+"/cancel", opsToken, body)
		if a.StatusCode != want.status || !strings.Contains(string(a.body), want.says) {
			t.Errorf("%.60q: got %d %s, want %d %s", body, a.StatusCode, a.body, want.status, want.says)
		}
	}
	r.want(400, "bad_request", "POST", "/v1/executions/"+anID+"/cancel", opsToken, "")
}

func TestAHugeBodyIsNotReadWhole(t *testing.T) {
	r := newRig(t, unreachable{}, nil)
	head := "POST /v1/executions/" + anID + "/cancel HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + opsToken +
		"\r\n"
	if a := r.raw(head + "Content-Length: 1099511627776\r\n\r\n{"); a.StatusCode != 413 || !a.Close {
		t.Errorf("declared: got %d, close %v", a.StatusCode, a.Close)
	}
	chunk := strconv.FormatInt(maxBody+1, 16) + "\r\n{" + strings.Repeat(" ", maxBody) + "\r\n"
	if a := r.raw(head + "Transfer-Encoding: chunked\r\n\r\n" + chunk); a.StatusCode != 413 || !a.Close {
		t.Errorf("chunked: got %d, close %v", a.StatusCode, a.Close)
	}
	if a := r.raw(head +
		"Transfer-Encoding: chunked\r\n\r\ne\r\n{\"reason\":\"r\"}\r\n0\r\n\r\n"); a.StatusCode != 503 {
		t.Errorf("a small chunked one: got %d %s", a.StatusCode, a.body)
	}
}

func TestATTLIsWholeSecondsAndAStartedOneCounts(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{1: time.Second, time.Second: time.Second,
		1500 * time.Millisecond: 2 * time.Second, maxTTL: maxTTL} {
		if got := given; takeTTL(&got) != nil || got != want {
			t.Errorf("%v: got %v, want %v", given, got, want)
		}
	}
}

func TestEveryBodyIsBounded(t *testing.T) {
	r := newRig(t, unreachable{}, nil)
	for _, q := range requests {
		if q.method != "POST" {
			continue
		}
		r.want(413, "body_too_large", q.method, q.path, opsToken, `{"a":"`+strings.Repeat("x", maxBody)+`"}`)
		r.want(415, "unsupported_media_type", q.method, q.path, opsToken, q.body, "Content-Type", "text/html")
		r.want(400, "bad_request", q.method, q.path, opsToken, q.body+"x")
		r.want(400, "bad_request", q.method, q.path+"?x=y", opsToken, q.body)
	}
}

func TestWhatABodyMayCallItself(t *testing.T) {
	r := newRig(t, unreachable{}, nil)
	for kind, want := range map[string]int{
		"": 503, "application/json": 503, "application/json; charset=utf-8": 503, "APPLICATION/JSON": 503,
		"application/vnd.x+json":            503,
		"application/x-www-form-urlencoded": 503, // curl -d says so
		"text/plain":                        415, "multipart/form-data; boundary=x": 415, "application/xml": 415,
		";": 415,
	} {
		if a := r.ask("POST", "/v1/executions/"+anID+"/cancel", opsToken, `{"reason":"r"}`, "Content-Type",
			kind); a.StatusCode != want {
			t.Errorf("%q: got %d, want %d", kind, a.StatusCode, want)
		}
	}
	r.want(415, "unsupported_media_type", "POST", "/v1/executions/"+anID+"/cancel", opsToken, `{"reason":"r"}`,
		"Content-Encoding", "gzip")
}

func TestNumbersAreNumbersAndDurationsHaveUnits(t *testing.T) {
	r := newRig(t, unreachable{}, nil)
	for _, c := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"/v1/executions/" + anID + "/guard", `{"token":7}`, 503, ""},
		{"/v1/executions/" + anID + "/guard", `{"token":9007199254740993}`, 503, ""},
		{"/v1/executions/" + anID + "/guard", `{"token":"7"}`, 400, "token: give a whole number"},
		{"/v1/executions/" + anID + "/guard", `{"token":7.5}`, 400, "token: give a whole number"},
		{"/v1/executions/" + anID + "/guard", `{"token":99999999999999999999}`, 400, "token: give a whole number"},
		{"/v1/executions/" + anID + "/guard", `{"token":0}`, 503, ""},
		{"/v1/executions/" + anID + "/guard", `{"token":-1}`, 400, "Hooklock-Fencing-Token"},
		{"/v1/executions/" + anID + "/guard", `{}`, 503, ""}, // where the lock fences nothing there is no token
		{"/v1/executions/" + anID + "/guard", `{"token":7,"plan":["a"]}`, 400, "a plan comes with the step"},
		{"/v1/executions/" + anID + "/guard", `{"token":7,"step":"a","plan":["a",""]}`, 400, "without a name"},
		{"/v1/executions/" + anID + "/guard", `{"token":7,"step":"a\u0000"}`, 400, "control characters"},
		{"/v1/executions/" + anID + "/guard", `{"token":7,"step":"a","plan":"a"}`, 400, "plan: give a list"},
		{"/v1/executions/" + anID + "/guard", `{"token":7,"step":"` + strings.Repeat("a", 257) + `"}`, 400,
			"longer than"},
		{"/v1/executions/" + anID + "/heartbeat", `{"token":7,"ttl":"30m"}`, 503, ""},
		{"/v1/executions/" + anID + "/heartbeat", `{"token":7,"ttl":1800}`, 400, `such as \"30m\"; 1800 has none`},
		{"/v1/executions/" + anID + "/heartbeat", `{"token":7,"ttl":"1800"}`, 400, `is no duration`},
		{"/v1/executions/" + anID + "/heartbeat", `{"token":7,"ttl":"-1m"}`, 400, `is negative`},
		{"/v1/executions/" + anID + "/heartbeat", `{"token":7,"ttl":"25h"}`, 400, `ttl: give`},
		{"/v1/executions/" + anID + "/heartbeat", `{"token":7,"ttl":"1500ms"}`, 503, ""},
		{"/v1/locks/w/acquire", `{"holder":"h"}`, 400, "ttl: give"},
		{"/v1/locks/w/acquire", `{"holder":"h","ttl":"0s"}`, 400, "ttl: give"},
		{"/v1/locks/w/acquire", `{"holder":"h","ttl":"24h1ns"}`, 400, "ttl: give"},
		{"/v1/locks/w/acquire", `{"ttl":"1m"}`, 503, ""},
		{"/v1/locks/w/acquire", `{"holder":"h","ttl":"1m","wait":"6m"}`, 400, "wait: at most"},
		{"/v1/locks/w/acquire", `{"holder":"h","ttl":"1m","wait":5}`, 400, "wait: give a duration"},
		{"/v1/locks/w/acquire", `{"holder":"a\nb","ttl":"1m"}`, 400, "control characters"},
		{"/v1/locks/w%00/acquire", `{"holder":"h","ttl":"1m"}`, 400, "control characters"},
		{"/v1/locks/w%FF/acquire", `{"holder":"h","ttl":"1m"}`, 400, "UTF-8"},
		{"/v1/locks/" + strings.Repeat("w", 2049) + "/acquire", `{"holder":"h","ttl":"1m"}`, 400, "longer than"},
		{"/v1/locks/w/renew", `{"executionId":"` + anID + `"}`, 400, "give executionId and token"},
		{"/v1/locks/w/renew", `{"token":7}`, 400, "give executionId and token"},
		{"/v1/locks/w/renew", `{"executionId":"x","token":7}`, 412, "lock_lost"},
		{"/v1/locks/w/release", `{"executionId":"` + anID + `","token":7,"ttl":"1m"}`, 400, "unknown field"},
		{"/v1/executions/exec_x/guard", `{"token":7}`, 404, "execution_not_found"},
	} {
		a := r.ask("POST", c.path, opsToken, c.body)
		if a.StatusCode != c.status || !strings.Contains(string(a.body), c.says) {
			t.Errorf("%.60s %.90s: got %d %s, want %d %s", c.path, c.body, a.StatusCode, a.body, c.status, c.says)
		}
	}
}

func TestTheAnswerOfAComplete(t *testing.T) {
	r := newRig(t, unreachable{}, nil)
	for body, want := range map[string]struct {
		status int
		says   string
	}{
		`"status":"SUCCESS"`: {503, ""},
		`"status":"FAILED","error":{"code":"boom","detail":"it broke"}`:    {503, ""},
		`"status":"SUCCESS","response":{"status":200,"bodyBase64":"AAEC"}`: {503, ""},
		`"status":"SUCCESS","response":{"status":599,"headers":{}}`:        {503, ""},
		`"status":"SUCCESS","response":{"status":204}`:                     {503, ""},
		`"status":"ABORTED"`: {400,
			"SUCCESS or FAILED"},
		`"status":"success"`: {400,
			"SUCCESS or FAILED"},
		`"response":{"status":200}`: {400,
			"SUCCESS or FAILED"},
		`"status":"SUCCESS","error":{"code":"x"}`: {400,
			"give it with FAILED only"},
		`"status":"FAILED","error":{"kode":"x"}`: {400,
			`error: unknown field`},
		`"status":"FAILED","error":"x"`: {400,
			`error: send a JSON object`},
		`"status":"SUCCESS","response":{"status":199}`: {400,
			"200 to 599"},
		`"status":"SUCCESS","response":{"status":600}`: {400,
			"200 to 599"},
		`"status":"SUCCESS","response":{}`: {400,
			"200 to 599"},
		`"status":"SUCCESS","response":{"status":"200"}`: {400,
			"response: status: give a whole number"},
		`"status":"SUCCESS","response":{"status":204,"body":"x"}`: {400,
			"has no body"},
		`"status":"SUCCESS","response":{"status":200,"body":"x","bodyBase64":"eA=="}`: {400,
			"bodyBase64"},
		`"status":"SUCCESS","response":{"status":200,"bodyBase64":"e"}`: {400,
			"bodyBase64"},
		`"status":"SUCCESS","response":{"status":200,"body":{}}`: {400,
			"body: give a text"},
		`"status":"SUCCESS","response":{"status":200,"headers":[]}`: {400,
			"headers: give an object"},
		`"status":"SUCCESS","response":{"status":200,"headers":{"A":1}}`: {400,
			"a text or a list"},
		`"status":"SUCCESS","response":{"status":200,"headers":{"A":["b",1]}}`: {400,
			"a text or a list"},
		`"status":"SUCCESS","response":{"status":200,"headers":{"A b":"c"}}`: {400,
			"a header's name"},
		`"status":"SUCCESS","response":{"status":200,"headers":{"":"c"}}`: {400,
			"a header's name"},
		`"status":"SUCCESS","response":{"status":200,"headers":{"A":"c\r\nX: y"}}`: {400,
			"control characters"},
		`"status":"SUCCESS","response":{"status":200,"headers":{"a":"c","A":"d"}}`: {400,
			"given twice"},
		`"status":"SUCCESS","response":{"status":200,"headers":{"A":"` + strings.Repeat("x", maxHeader) +
			`"}}`: {400, "longer than"},
		`"status":"SUCCESS","response":{"status":200,"header":{}}`: {400,
			"response: unknown field"},
	} {
		a := r.ask("POST", "/v1/executions/"+anID+"/complete", "key", `{"token":7,`+body+`}`)
		if a.StatusCode != want.status || !strings.Contains(string(a.body), want.says) {
			t.Errorf("%.90s: got %d %s, want %d %s", body, a.StatusCode, a.body, want.status, want.says)
		}
	}
}

func TestHeadersThatDuplicatesNeverGet(t *testing.T) {
	var headers map[string]any
	if err := json.Unmarshal([]byte(
		`{"Content-Type":"text/plain","X-B":["2"," 1 "],"X-A":"","connection":"close, X-Hop","X-Hop":"x","Keep-Alive":"x","TE":"x",
		"Transfer-Encoding":"chunked","Upgrade":"x","Content-Length":"9","Date":"x","Set-Cookie":["a","b"],"WWW-Authenticate":"x",
		"Hooklock-Decision":"executed","hooklock-hold":"1m","Idempotent-Replayed":"true","Proxy-Authenticate":"x","Trailer":"x"}`), &headers); err != nil {
		t.Fatal(err)
	}
	kept, err := replayableHeaders(headers)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range kept {
		got = append(got, f.Name+": "+f.Value)
	}
	if want := "Content-Type: text/plain|X-A: |X-B: 2|X-B: 1"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatAQueryMayBe(t *testing.T) {
	r := newRig(t, unreachable{}, nil)
	for path, want := range map[string]int{
		"/v1/locks?limit=1": 503, "/v1/locks?limit=1000": 503, "/v1/locks?limit=": 503, "/v1/locks?limit=0": 400,
		"/v1/locks?limit=1001": 400, "/v1/locks?limit=-1": 400,
		"/v1/locks?limit=x": 400, "/v1/locks?limit=1.5": 400, "/v1/locks?limit=1&limit=2": 400,
		"/v1/locks?status=RUNNING": 400, "/v1/locks?a;b": 400, "/v1/locks?%zz": 400,
		"/v1/executions?status=PENDING": 503, "/v1/executions?status=running": 400, "/v1/executions?staus=RUNNING": 400,
		"/v1/executions/" + anID + "?wait=30s": 503, "/v1/executions/" + anID + "?wait=30": 400,
		"/v1/executions/" + anID + "?wait=-1s": 400, "/v1/executions/" + anID + "?wait=6m": 400,
		"/v1/executions/" + anID + "?wait=5m": 503, "/v1/locks/w?wait=1s": 400, "/v1/executions/x": 404,
		"/v1/executions/" + anID[1:]: 404,
	} {
		if a := r.ask("GET", path, opsToken, ""); a.StatusCode != want {
			t.Errorf("%s: got %d, want %d: %s", path, a.StatusCode, want, a.body)
		}
	}
	for path, want := range map[string]string{
		"/v1/locks?staus=1":         `unknown query parameter "staus": there are prefix, limit, cursor`,
		"/v1/pauses?staus=1":        `unknown query parameter "staus": there are none here`,
		"/v1/locks?limit=1&limit=2": `query parameter "limit" is given twice`,
	} {
		if a := r.ask("GET", path, opsToken, ""); a.StatusCode != 400 || a.text("detail") != want {
			t.Errorf("%s: %d %q, want %q", path, a.StatusCode, a.text("detail"), want)
		}
	}
	r.want(400, "bad_request", "DELETE", "/v1/executions/"+anID, opsToken, "")
	r.want(400, "bad_request", "DELETE", "/v1/locks/w?reason=r", opsToken, "")
	r.want(400, "bad_request", "DELETE", "/v1/locks/w?execution="+anID, opsToken, "")
	r.want(400, "bad_request", "DELETE", "/v1/executions/"+anID+"?reason=r", opsToken, `{"reason":"r"}`)
	r.want(400, "bad_request", "GET", "/v1/locks", opsToken, `{}`)
}

func TestMethodsAndPathsThatAreNotThere(t *testing.T) {
	r := newRig(t, unreachable{}, nil)
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"POST", "/v1/locks", 405, "GET"}, {"HEAD", "/v1/locks", 405, "GET"}, {"OPTIONS", "/v1/locks", 405, "GET"},
		{"BREW", "/v1/locks", 405, "GET"},
		{"PUT", "/v1/locks/w", 405, "DELETE, GET"}, {"GET", "/v1/locks/w/acquire", 405, "POST"},
		{"GET", "/v1/executions/" + anID + "/cancel", 405, "POST"},
		{"PATCH", "/v1/executions/" + anID, 405, "DELETE, GET"}, {"POST", "/livez", 405, "GET, HEAD"},
		{"DELETE", "/openapi.json", 405, "GET, HEAD"},
		{"GET", "/v1", 404, ""}, {"GET", "/v1/", 404, ""}, {"GET", "/v2/locks", 404, ""},
		{"GET", "/v1/locks/", 404, ""}, {"GET", "//v1/locks", 404, ""},
		{"GET", "/v1//locks", 404, ""}, {"GET", "/v1/locks/w/", 404, ""}, {"POST", "/v1/locks/w/steal", 404, ""},
		{"POST", "/v1/locks//acquire", 404, ""},
		{"GET", "/v1/locks/a/b", 404, ""}, {"GET", "/v1/executions/" + anID + "/guard/x", 404, ""},
		{"GET", "/v1/../v1/locks", 404, ""}, {"GET", "/V1/locks", 404, ""},
	} {
		a := r.raw(c.method + " " + c.path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + opsToken +
			"\r\n\r\n")
		if a.StatusCode != c.status || a.Header.Get("Allow") != c.allow {
			t.Errorf("%s %s: got %d, Allow %q, want %d %q", c.method, c.path, a.StatusCode, a.Header.Get("Allow"),
				c.status, c.allow)
		}
	}
	if a := r.raw("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n"); a.StatusCode/100 != 2 && a.StatusCode != 404 {
		t.Errorf("OPTIONS *: got %d", a.StatusCode)
	}
}

func TestNamesInPaths(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/locks/stripe%2Facme": "stripe/acme", "/v1/locks/stripe%2facme": "stripe/acme",
		"/v1/locks/assess%2Fflow-7:readiness": "assess/flow-7:readiness",
		"/v1/locks/a%3Ab":                     "a:b", "/v1/locks/100%25": "100%", "/v1/locks/%252F": "%2F",
		"/v1/locks/%C3%A4": "ä",
		"/v1/locks/ä":      "ä", "/v1/locks/a+b": "a+b", "/v1/locks/a%20b": "a b",
		"/v1/locks/..": "..", "/v1/locks/.": ".", "/v1/locks/%2E%2E": "..", "/v1/locks/%2F": "/",
		"/v1/locks/a%2F..%2Fb": "a/../b", "/v1/locks/a;b": "a;b", "/v1/locks/acquire": "acquire",
		"/v1/locks/%3Fx": "?x", "/v1/locks/%23": "#", "/%76%31/locks/w": "w", "/v1/locks/{workflow}": "{workflow}",
	} {
		e, name, p := findEndpoint(allEndpoints(), "GET", path)
		if p != nil || e.path != "/v1/locks/{workflow}" || name != want {
			t.Errorf("%s: got %v %q %v, want %q", path, e, name, p, want)
		}
	}
	for _, path := range []string{"/v1/locks/%", "/v1/locks/%zz", "/v1/locks/%2", "", "v1/locks/w", "*"} {
		if _, _, p := findEndpoint(allEndpoints(), "GET", path); p == nil || p.Status != 404 {
			t.Errorf("%q: got %v", path, p)
		}
	}
}

// broken is a ledger with a bug.
type broken struct{ unreachable }

func (broken) Lock(context.Context, string) (*idem.LockView, error) { panic("secret of the ledger") }

func (broken) Execution(context.Context, idem.ExecutionID) (*idem.Found, error) {
	return nil, errors.New("secret of the ledger")
}

func TestABugIsOneAnswerAndALogLine(t *testing.T) {
	r := newRig(t, broken{}, nil)
	for _, path := range []string{"/v1/locks/w", "/v1/executions/" + anID} {
		if a := r.want(500, "internal_error", "GET", path, opsToken, ""); strings.Contains(string(a.body), "secret") {
			t.Errorf("%s", a.body)
		}
	}
	if strings.Count(r.log.String(), "secret of the ledger") != 2 {
		t.Errorf("log: %s", r.log)
	}
}

func TestRequestsAtOneTimeAreBounded(t *testing.T) {
	r := newRig(t, unreachable{}, nil)
	for r.api.busy.tryEnter() {
	}
	if a := r.want(503, "overloaded", "GET", "/v1/locks", opsToken, ""); a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if a := r.ask("GET", "/livez", "", ""); a.StatusCode != 200 {
		t.Errorf("livez: got %d", a.StatusCode)
	}
	r.api.busy.leave()
	for r.api.polls.tryEnter("") {
	}
	r.want(429, "rate_limited", "POST", "/v1/locks/w/acquire", opsToken, `{"ttl":"1m","wait":"1s"}`)
	r.want(503, "store_unavailable", "POST", "/v1/locks/w/acquire", opsToken, `{"ttl":"1m"}`)
}

func TestNothingIsSaidToOtherPages(t *testing.T) {
	r := newRig(t, unreachable{}, nil)
	a := r.ask("OPTIONS", "/v1/locks", "", "", "Origin", "https://evil.example", "Access-Control-Request-Method",
		"DELETE") // read looks for CORS headers
	if a.StatusCode != http.StatusForbidden {
		t.Errorf("got %d", a.StatusCode)
	}
	if a := r.ask("GET", "/v1/locks", opsToken, "", "Origin",
		"https://evil.example"); a.Header.Get("Cache-Control") != "no-store" ||
		a.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers: %v", a.Header)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"a":"b"}`, `{"a":"b","a":1}`, `{"n":1e9,"d":"1h","l":["x"],"o":{"a":"b"},"b":true}`,
		`{"d":5}`, `[[[[`, `{"o":{"x":{}}}`, "{\"\\u0061\":\"\"}", `null`, `{"a":null}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var a, b string
		var n int64
		var d time.Duration
		var l []string
		var yes bool
		err := decodeObject(text, fields{"a": &a, "n": &n, "d": &d, "l": &l, "b": &yes, "o": fields{"a": &b}})
		if err != nil {
			return
		}
		var loose map[string]any
		if json.Unmarshal(text, &loose) != nil {
			t.Fatalf("%q is no JSON object and was taken", text)
		}
		if got, _ := loose["a"].(string); got != a {
			t.Fatalf("%q: a = %q, encoding/json says %q", text, a, got)
		}
		if d < 0 {
			t.Fatalf("%q: a negative duration", text)
		}
	})
}

func FuzzFind(f *testing.F) {
	for _, seed := range []string{"/v1/locks/a%2Fb", "/v1/locks/a/acquire", "/v1/executions/x/guard", "//",
		"/v1/locks/%", "/v1/locks/..", "*", ""} {
		f.Add("GET", seed)
		f.Add("POST", seed)
	}
	table := allEndpoints()
	f.Fuzz(func(t *testing.T, method, path string) {
		e, name, p := findEndpoint(table, method, path)
		if (e == nil) == (p == nil) {
			t.Fatalf("%q: %v %v", path, e, p)
		}
		if e == nil {
			return
		}
		if want := strings.Contains(e.path, "{"); want != (name != "") {
			t.Fatalf("%q: %s with the name %q", path, e.path, name)
		}
		// The canonical spelling of what was found leads to the same place.
		again := strings.NewReplacer("{workflow}", url.PathEscape(name), "{id}", url.PathEscape(name)).Replace(e.path)
		if e2, name2, _ := findEndpoint(table, method, again); e2 != e || name2 != name {
			t.Fatalf("%q: %s %q, and %q: %v %q", path, e.path, name, again, e2, name2)
		}
	})
}

func FuzzMatches(f *testing.F) {
	f.Add("a*b", "axb")
	f.Add("**", "")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if idem.MatchPattern(pattern, text) && !strings.Contains(pattern, "*") && pattern != text {
			t.Fatalf("%q matches %q", pattern, text)
		}
		if !idem.MatchPattern(pattern+"*", pattern+text) && !strings.Contains(pattern, "*") {
			t.Fatalf("%q* does not match %q", pattern, pattern+text)
		}
	})
}

func FuzzOpenCursor(f *testing.F) {
	some := caller{token: rigTokens()[2]}
	f.Add(some.sealCursor("c1/w"))
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, cursor string) {
		if plain, err := some.openCursor(cursor); err == nil && plain != "" && plain != "c1/w" {
			t.Fatalf("%q was taken for %q", cursor, plain)
		}
	})
}
