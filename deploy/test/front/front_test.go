package front

import (
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

func TestSignedDeliveriesOfManySendersArriveIntact(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		s := newStage(t, p)
		for _, preset := range presets {
			args := []string{"sample", preset, "--url", "http://" + s.front + "/" + preset, "--secret-file",
				filepath.Join(s.dir, preset)}
			if preset == "square" || preset == "hubspot" {
				args = append(args, "--public-url", "https://hooks.example.com")
			}
			if out, err := exec.Command(hooklockProgram, args...).CombinedOutput(); err != nil {
				t.Errorf("%s: Hooklock did not take it for signed: %v\n%s", preset, err, out)
			}
			if n := len(s.up.Received("/" + preset)); n != 1 {
				t.Errorf("%s: %d requests reached the service", preset, n)
			}
		}
	})
}

func TestADeliveryArrivesByteForByteAndItsDuplicateIsReplayed(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		s := newStage(t, p)
		// Two parsers, or a pretty one, would change one of these.
		target := "/plain/a%2Fb?z=1&a=%7e+%C3%A9&a=&empty"
		body := "{\"id\": 1.10,\r\n \"\\u00e9\":\t\"\x00\xff" + strings.Repeat("long ", 20000) + "\"}\n"
		lines := []string{"Idempotency-Key: k1", "Content-Type: application/json; Charset=UTF-8",
			"X-Signature: t=1,v1=AbC==", "User-Agent: Sender/1.0"}
		for i, want := range []string{"executed", "replayed"} {
			if a := testkit.Post(t, s.front, target, body, lines...); a.Status != 200 || string(a.Body) != "done" ||
				a.Decision() != want {
				t.Errorf("delivery %d: %v", i, a)
			}
		}
		got := s.up.Received(target)
		if len(got) != 1 {
			t.Fatalf("%d requests for this target reached the service: %v", len(got), s.up.Requests())
		}
		if got[0].Body != body {
			t.Errorf("the body changed: %d bytes, sent %d", len(got[0].Body), len(body))
		}
		for _, line := range append(lines, "Host: hooks.example.com") {
			name, value, _ := strings.Cut(line, ": ")
			if have := got[0].Header.Get(name); have != value {
				t.Errorf("%s is %q, sent %q", name, have, value)
			}
			if p.keepsSpelling && !strings.Contains(got[0].Raw, "\r\n"+line+"\r\n") {
				t.Errorf("the line %q did not arrive as it is", line)
			}
		}
		for _, name := range []string{"Accept-Encoding", "Accept"} {
			if v := got[0].Header.Get(name); v != "" && !(p.respells && name == "Accept-Encoding") {
				t.Errorf("%s: %s was invented on the way", name, v)
			}
		}
	})
}

func TestAChunkedDeliveryArrivesWhole(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		s := newStage(t, p)
		a := testkit.Exchange(t, s.front,
			"POST /plain/chunked HTTP/1.1\r\nHost: hooks.example.com\r\nIdempotency-Key: c\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"id\"\r\n3\r\n:1}\r\n0\r\n\r\n")
		if a.Status != 200 {
			t.Errorf("%v", a)
		}
		if got := s.up.Received("/plain/chunked"); len(got) != 1 || got[0].Body != `{"id":1}` {
			t.Errorf("the service got %v", s.up.Requests())
		}
	})
}

func TestADeliveryWhoseServiceDiesIsSentOnceAndItsOutcomeIsUnknown(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		s := newStage(t, p)
		for _, method := range []string{"POST", "PUT"} {
			path := "/plain/dies-" + method
			s.on(path, func(*testkit.Received) string { return "" }) // reads the request and hangs up
			a := testkit.Exchange(t, s.front, testkit.RequestWith(method, path, `{"id":1}`, "Idempotency-Key: 1"))
			if a.Status != 502 || a.JSON()["code"] != "upstream_failed" || a.JSON()["executed"] != "unknown" {
				t.Errorf("%s: %v", method, a)
			}
			if n := len(s.up.Received(path)); n != 1 {
				t.Errorf("%s: %d requests reached the service", method, n)
			}
		}
	})
}

// dying is a plain service that plays a Hooklock which dies when it has read a request whose target
// says so.
func dying(t *testing.T) *testkit.Upstream {
	t.Helper()
	return testkit.NewUpstream(t, func(r *testkit.Received) string {
		if strings.Contains(r.Target, "dies") {
			return ""
		}
		return testkit.OK("done")
	})
}

// It dies with the first request on a connection, and with a later one, where proxies are tempted
// to take it for a connection that was closed while idle.
func TestADeliveryIsSentOnceWhenHooklockItselfDies(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		up := dying(t)
		front := p.of(t, up.Addr)
		var sender *testkit.Conn
		for _, target := range []string{"/fresh-dies", "/lives", "/reused-dies"} {
			if sender == nil {
				sender = testkit.Dial(t, front)
			}
			sender.Say(testkit.Request(target, `{"id":1}`, "Idempotency-Key: 1"))
			a, err := sender.TryAnswer("POST") // HAProxy hangs up on a sender whose later request got no answer
			if died := err != nil || a.Status >= 500; died != strings.Contains(target, "dies") {
				t.Errorf("%s: %v, %v", target, a, err)
			}
			if n := len(up.Received(target)); n != 1 {
				t.Errorf("%s was sent %d times", target, n)
			}
			if err != nil || strings.Contains(a.Raw, "\r\nConnection: close\r\n") {
				sender = nil
			}
		}
	})
}

// What the comments in the files warn of, done: so that one knows that the test above would see it.
func TestTheRetriesThatTheFilesWarnOfAreSeen(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		exchange, ok := map[string][]string{
			"haproxy": {"retry-on conn-failure", "retry-on all-retryable-errors", "    http-request disable-l7-retry\n",
				""},
			"caddy": {"transport http {",
				"lb_try_duration 1s\n\t\tlb_retry_match {\n\t\t\tmethod POST\n\t\t}\n\t\ttransport http {"},
		}[p.name]
		if !ok {
			// nginx and Apache repeat a request only at another server, and Traefik's release knows
			// no such thing
			return
		}
		up := dying(t)
		careless := *p
		careless.exchange = exchange
		front := careless.of(t, up.Addr)
		sender := testkit.Dial(t, front)
		sender.Say(testkit.Request("/dies", ""))
		_, _ = sender.TryAnswer("POST")
		if n := len(up.Received("/dies")); n < 2 {
			t.Errorf("the request was sent %d times", n)
		}
	})
}

func TestARefusalComesThroughWithItsBodyAndRetryAfter(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		s := newStage(t, p)
		work := newHeld()
		s.on("/plain/busy", work.handle)
		first := testkit.GoPost(t, s.front, "/plain/busy", `{"id":1}`, "Idempotency-Key: 1")
		testkit.Receive(t, "the first delivery", work.came)
		a := testkit.Post(t, s.front, "/plain/busy", `{"id":2}`, "Idempotency-Key: 2")
		if a.Status != 409 || a.JSON()["code"] != "workflow_locked" || a.JSON()["executed"] != "no" ||
			a.Decision() != "locked" {
			t.Errorf("%v", a)
		}
		if a.Header.Get("Retry-After") == "" || a.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("header: %v", a.Header)
		}
		work.answer <- testkit.OK("done")
		if a := testkit.Receive(t, "the first answer", first); a == nil || a.Status != 200 {
			t.Errorf("the first one: %v", a)
		}
		a = testkit.Post(t, s.front, "/stripe", `{}`)
		if a.Status != 401 || a.JSON()["code"] != "signature_invalid" {
			t.Errorf("unsigned: %v", a)
		}
	})
}

func TestTheServiceLearnsTheSendersAddress(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		s := newStage(t, p)
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}
		c, err := from.Dial("tcp", s.front)
		if err != nil {
			t.Fatal(err)
		}
		sender := testkit.NewConn(t, c)
		sender.Say(testkit.Request("/plain/address", `{}`, "Idempotency-Key: 1", "X-Forwarded-For: 203.0.113.7",
			"X-Forwarded-Proto: gopher"))
		if a := sender.Answer("POST"); a.Status != 200 {
			t.Fatalf("%v", a)
		}
		header := s.up.Received("/plain/address")[0].Header
		list := strings.Split(strings.Join(header["X-Forwarded-For"], ", "), ", ")
		if n := len(list); n < 2 || list[n-1] != "127.0.0.1" || list[n-2] != "127.0.0.9" {
			t.Errorf("X-Forwarded-For is %q; its end is to be the sender, then the proxy", list)
		}
		if proto := strings.Join(header["X-Forwarded-Proto"], ", "); proto != "http" {
			t.Errorf("X-Forwarded-Proto is %q: what a sender says of itself came through", proto)
		}
	})
}

func TestABodyThatIsTooLargeIsRefusedByHooklock(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		s := newStage(t, p)
		a := testkit.Post(t, s.front, "/plain/large", strings.Repeat("x", 9<<20), "Idempotency-Key: 1")
		if a.Status != 413 || a.JSON()["code"] != "body_too_large" || a.JSON()["executed"] != "no" {
			t.Errorf("%.600v", a)
		}
		if a := testkit.Post(t, s.front, "/plain/fits", strings.Repeat("x", 7<<20),
			"Idempotency-Key: 2"); a.Status != 200 {
			t.Errorf("%.600v", a)
		}
	})
}

func TestASenderThatHangsUpLeavesAnAnswerForItsRetry(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		s := newStage(t, p)
		work := newHeld()
		s.on("/plain/impatient", work.handle)
		sender := testkit.Dial(t, s.front)
		sender.Say(testkit.Request("/plain/impatient", `{"id":1}`, "Idempotency-Key: 1"))
		testkit.Receive(t, "the delivery", work.came)
		_ = sender.Close()
		work.answer <- testkit.OK("receipt")
		testkit.Until(t, "the retry is answered with the first answer", func() bool {
			a := testkit.Post(t, s.front, "/plain/impatient", `{"id":1}`, "Idempotency-Key: 1")
			return a.Status == 200 && a.Decision() == "replayed" && string(a.Body) == "receipt"
		})
		if n := len(s.up.Received("/plain/impatient")); n != 1 {
			t.Errorf("%d requests reached the service", n)
		}
	})
}

// The commands are those of docs/ingress.
func TestTheCommandsThatCheckTheFilesFindThemRight(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		file := kit.Deploy(p.file)
		args := map[string][]string{
			"haproxy": {"-c", "-f", file},
			"caddy":   {"validate", "--adapter", "caddyfile", "--config", file},
		}[p.name]
		dir := t.TempDir()
		switch p.name {
		case "nginx", "apache":
			args = append([]string{"-t"}, p.start(t, p,
				&setup{dir: dir, listen: "127.0.0.1:80", backends: []string{"127.0.0.1:8080"}}).Args...)
		case "traefik":
			return // it has no such command
		}
		c := exec.Command(p.program(t), args...)
		c.Env = append(c.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		// Caddy warns of spaces for tabs, and of ports
		if strings.Contains(strings.ToLower(string(out)), "warn") && p.name != "caddy" {
			t.Errorf("%s", out)
		}
	})
}

// A limit of what is written in Go: net/http takes a request with this header and without a body
// for one that may be repeated. docs/limits.md names it; the day that this fails, take it out
// there.
func TestWhatIsWrittenInGoRepeatsARequestWithoutABodyWhoseConnectionBreaks(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		up := dying(t)
		front := p.of(t, up.Addr)
		sender := testkit.Dial(t, front)
		sender.Say(testkit.Request("/lives", "{}"))
		sender.Answer("POST")
		sender.Say(testkit.Request("/reused-dies", "", "Idempotency-Key: 1"))
		_, _ = sender.TryAnswer("POST")
		want := map[string]int{"caddy": 2, "traefik": 2}[p.name]
		if n := len(up.Received("/reused-dies")); n != max(want, 1) {
			t.Errorf("it was sent %d times", n)
		}
	})
}
