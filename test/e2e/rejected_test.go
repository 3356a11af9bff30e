package e2e

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// untouched checks that nothing for path reached the upstream.
func untouched(t *testing.T, path string) {
	t.Helper()
	for _, r := range shared.up.Requests() {
		if strings.Contains(r, path) {
			t.Errorf("the upstream got %q", r)
		}
	}
}

func TestADeliveryThatCannotBeNamedIsRejected(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	for name, tt := range map[string]struct{ code, request string }{
		"no workflow":              {"workflow_missing", testkit.Request("/by-query", "{}", key("1"))},
		"an empty workflow":        {"workflow_missing", testkit.Request("/by-query?account=", "{}", key("1"))},
		"two event IDs":            {"event_id_ambiguous", testkit.Request(path, "{}", key("1"), key("1"))},
		"two event IDs, any case":  {"event_id_ambiguous", testkit.Request(path, "{}", key("1"), "idempotency-KEY: 2")},
		"an event ID of 513 bytes": {"key_too_long", testkit.Request(path, "{}", key(strings.Repeat("k", 513)))},
		"a workflow of 513 bytes": {"key_too_long", testkit.Request("/by-query?account="+strings.Repeat("w", 513),
			"{}", key("1"))},
	} {
		t.Run(name, func(t *testing.T) {
			refused{400, tt.code, "no", "rejected"}.check(t, testkit.Exchange(t, shared.patient.Addr, tt.request))
		})
	}
	untouched(t, path)
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 200, "done", "executed") // no key was burned
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key(strings.Repeat("k", 512))), 200, "done", "executed")
}

// A sender whose URL has a typing error is found by what it asks for, and by nothing else: there is
// no event.
func TestTheLogHasThePathThatNoRouteTakes(t *testing.T) {
	t.Parallel()
	h := own(t, "unmatched: reject\n"+shared.config("unrouted", ""))
	for target, path := range map[string]string{
		"/hoks/acme%0a?token=s3cret":              "/hoks/acme%0a",
		"/" + strings.Repeat("a", 300):            "/" + strings.Repeat("a", 199),
		"/hoks/whsec_" + strings.Repeat("0a", 16): "/hoks/whsec_***",
	} {
		refused{404, "route_not_found", "no", ""}.check(t, testkit.Post(t, h.Addr, target, "{}"))
		h.Stderr.AwaitRecord(t, "delivery", func(r testkit.Record) bool {
			return r["code"] == "route_not_found" && r["path"] == path
		})
	}
}

func TestADeliveryThatTwoParsersCouldReadDifferentlyIsRejected(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{
		"two lengths":             "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
		"length and chunks":       "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"a signed length":         "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: +2\r\n\r\n{}",
		"an unknown coding":       "POST %s HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"a bare line feed":        "POST %s HTTP/1.1\r\nHost: h\r\nX: a\nContent-Length: 0\r\n\r\n",
		"a space before a colon":  "POST %s HTTP/1.1\r\nHost: h\r\nX : a\r\nContent-Length: 0\r\n\r\n",
		"a folded line":           "POST %s HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
		"two hosts":               "POST %s HTTP/1.1\r\nHost: h\r\nHost: i\r\nContent-Length: 0\r\n\r\n",
		"no host":                 "POST %s HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
		"a byte 0 in a value":     "POST %s HTTP/1.1\r\nHost: h\r\nX: a\x00b\r\nContent-Length: 0\r\n\r\n",
		"a space in the target":   "POST %s x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
		"broken chunks":           "POST %s HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
		"a later HTTP":            "POST %s HTTP/3.0\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
		"Upgrade on a route":      "POST %s HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n",
		"an absolute-form target": "POST http://elsewhere%s HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := at(t, "plain")
			a := testkit.Exchange(t, shared.patient.Addr, fmt.Sprintf(request, path))
			if p := a.JSON(); a.Status != 400 || p["executed"] != "no" {
				t.Errorf("%v", a)
			}
			untouched(t, path)
		})
	}
}

func TestAfterABrokenBodyTheConnectionIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	c := testkit.Dial(t, shared.patient.Addr)
	smuggled := testkit.Request(path, "{}", key("smuggled"))
	c.Say("POST " + path + " HTTP/1.1\r\nHost: h\r\nIdempotency-Key: 1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" +
		smuggled)
	if a := c.Answer("POST"); a.Status != 400 {
		t.Fatalf("%v", a)
	}
	if a, err := c.TryAnswer("POST"); err == nil {
		t.Errorf("a second answer: %v", a)
	}
	untouched(t, path)
}

// What is refused for its head leaves a body behind, of which the first bytes may have been read
// already.
func TestABodyThatWasNotReadIsNotTheNextRequest(t *testing.T) {
	t.Parallel()
	h := own(t, shared.config("unread", "unmatched: reject")+
		"  - {name: sealed, path: /sealed, workflow: sealed, verify: {scheme: token, header: X-Token, secret_env: S}}\n", "S=token")
	for name, tt := range map[string]struct {
		request string
		status  int
	}{
		"a method that the route does not take": {"DELETE /sealed", 405},
		"a path that no route takes":            {"POST /nowhere", 404},
		"another spelling of a path":            {"POST /sealed/", 400},
		"a method that is not proxied":          {"TRACE /sealed", 400},
	} {
		smuggled := testkit.Request(at(t, "plain"), "{}", key("1"))
		for framing, body := range map[string]string{
			"Content-Length: " + strconv.Itoa(16<<10+len(smuggled)): strings.Repeat("x", 16<<10) + smuggled,
			"Transfer-Encoding: chunked":                            "5\r\nabcde\r\n0\r\n\r\n" + smuggled,
		} {
			t.Run(name+"/"+framing, func(t *testing.T) {
				t.Parallel()
				c := testkit.Dial(t, h.Addr)
				read := min(
					// so much of a body is read with the head
					len(body), 8<<10)
				c.Say(tt.request + " HTTP/1.1\r\nHost: h\r\n" + framing + "\r\n\r\n" + body[:read])
				a := c.Answer("POST")
				if a.Status != tt.status {
					t.Errorf("%v", a)
				}
				if a.Status == 405 && (a.Decision() != "rejected" || !strings.Contains(a.Header.Get("Allow"), "POST")) {
					t.Errorf("405 does not say which methods, or who decided: %v", a)
				}
				c.Say(body[read:])
				if a, err := c.TryAnswer("POST"); err == nil {
					t.Errorf("a second answer: %v", a)
				}
			})
		}
	}
	path := at(t, "plain")
	t.Cleanup(func() { untouched(t, path) })
}

func TestAnotherSpellingOfARoutesPathIsAmbiguous(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	last := path[strings.LastIndex(path, "/")+1:]
	for _, spelled := range []string{"/" + path, path + "/", "/x/.." + path, "/./plain/" + last, "/%70lain/" + last,
		"/plain;v=1/" + last, "/plain//" + last} {
		t.Run(spelled, func(t *testing.T) {
			a := testkit.Post(t, shared.patient.Addr, spelled, "{}", key("1"))
			if p := a.JSON(); a.Status != 400 || p["code"] != "ambiguous_path" || p["executed"] != "no" ||
				a.Decision() != "rejected" {
				t.Errorf("%v", a)
			}
		})
	}
	untouched(t, last)
}

func TestADeliveryThatComesTooSlowlyIsRejected(t *testing.T) {
	t.Parallel()
	h := own(t, shared.config("slow-sender", "limits: {header_timeout: 800ms, body_timeout: 800ms}"))
	path := at(t, "plain")
	for name, start := range map[string]string{
		"head":            "POST " + path + " HTTP/1.1\r\nHost: h\r\nX-Slow",
		"declared body":   "POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nslow",
		"chunked body":    "POST " + path + " HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nslow\r\n",
		"no byte of body": "POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testkit.Dial(t, h.Addr)
			c.Say(start)
			a := c.Answer("POST")
			if p := a.JSON(); a.Status != 408 || p["code"] != "request_timeout" || p["executed"] != "no" {
				t.Errorf("%v", a)
			}
			if _, err := io.Copy(io.Discard, c.Reader()); err != nil {
				t.Errorf("the connection does not end: %v", err)
			}
		})
	}
	t.Cleanup(func() { untouched(t, path) })
}

func TestASenderWithALargeBodyCanReadThat413(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	size := 4 << 20
	body := strings.Repeat("x", size)
	for name, request := range map[string]string{
		"declared": testkit.Request(path, body, key("1")),
		"chunked": fmt.Sprintf(
			"POST %s HTTP/1.1\r\nHost: h\r\nIdempotency-Key: 1\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", path, size, body),
		"one byte": testkit.Request(path, strings.Repeat("x", 64<<10+1), key("1")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testkit.Dial(t, shared.strict.Addr)
			// all of it, as senders do, before the answer is read
			if _, err := io.WriteString(c.Conn, request); err != nil {
				t.Fatalf("the sender could not send: %v", err)
			}
			refused{413, "body_too_large", "no", "rejected"}.check(t, c.Answer("POST"))
		})
	}
	passed(t, testkit.Post(t, shared.strict.Addr, at(t, "small"), strings.Repeat("x", 64<<10), key("1")), 200, "done",
		"executed")
	t.Cleanup(func() { untouched(t, path) })
}

func TestARequestHeadThatIsTooLargeIs431(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	a := testkit.Post(t, shared.strict.Addr, path, "{}", "X-Large: "+strings.Repeat("x", 5<<10))
	if p := a.JSON(); a.Status != 431 || p["code"] != "header_too_large" || p["executed"] != "no" {
		t.Errorf("%v", a)
	}
	untouched(t, path)
}

func TestUnmatchedRejectIs404(t *testing.T) {
	t.Parallel()
	a := testkit.Post(t, shared.strict.Addr, "/nowhere/at/all", "{}")
	if p := a.JSON(); a.Status != 404 || p["executed"] != "no" ||
		a.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%v", a)
	}
	untouched(t, "/nowhere/at/all")
}

func TestHostsLimitARoute(t *testing.T) {
	t.Parallel()
	path := at(t, "hosts")
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 200, "done", "executed")
	request := testkit.Request(path, "{}", key("1"))
	a := testkit.Exchange(t, shared.patient.Addr,
		strings.Replace(request, "hooks.example.com", "HOOKS.example.com:8080", 1))
	// the route takes it, and the Host is part of what was asked
	refused{422, "idempotency_key_reused", "no", "mismatch"}.check(t, a)
	passed(t, testkit.Exchange(t, shared.patient.Addr,
		strings.Replace(request, "hooks.example.com", "other.example.com", 1)), 200, "done", "")
}

func TestOneConnectionTooManyIs503(t *testing.T) {
	t.Parallel()
	h := own(t, shared.config("crowded", "limits: {max_connections: 2, header_timeout: 60s}"))
	for range 2 { // one that is idle would make room, and one whose answer is a moment old is idle
		testkit.Dial(t, h.Addr).Say("POST / HTTP/1.1\r\nHost: a\r\n")
	}
	shows(t, h, `hooklock_connections_open{listener="listen"} 2`)
	shows(t, h, `hooklock_connections_idle{listener="listen"} 0`)
	nc, err := net.Dial("tcp", h.Addr)
	if err != nil {
		t.Fatal(err)
	}
	a := testkit.NewConn(t, nc).Answer("POST")
	if p := a.JSON(); a.Status != 503 || p["executed"] != "no" || a.Header.Get("Retry-After") == "" {
		t.Errorf("%v", a)
	}
}
