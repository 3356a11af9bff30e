package e2e

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// ours are the names of the header lines that may be added to a delivery on a route.
var ours = []string{"hooklock-execution", "hooklock-workflow", "hooklock-fencing-token", "hooklock-attempt",
	"hooklock-key", "hooklock-callback-key",
	"x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "traceparent", "connection"}

func name(line string) string {
	n, _, _ := strings.Cut(line, ":")
	return strings.ToLower(n)
}

func TestADeliveryArrivesByteForByteWithItsNameTag(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	target := path + "?a=%2f&b=+&&c;d=%zz"
	body := "\x00{\"a\": 1}\r\n\r\n\xff"
	lines := []string{"x-lower: 1", "X-UPPER:2", "X-Spaces:    three   words", "X-Empty:", "x-lower: 2", "Accept: */*",
		"ETag-ish: \"q\"", "X-Latin: \xe9",
		"Authorization: Basic " + planted, "X_Under_Score: kept", key("1")}
	passed(t, testkit.Post(t, shared.patient.Addr, target, body, lines...), 200, "done", "executed")
	got := shared.up.AwaitReceived(t, target, 1)[0]
	if got.Method != "POST" || got.Body != body || !strings.HasPrefix(got.Raw, "POST "+target+" HTTP/1.1\r\n") {
		t.Errorf("%q", got.Raw)
	}
	var same, added []string
	for _, line := range got.Lines {
		if slices.Contains(ours, name(line)) {
			added = append(added, line)
		} else {
			same = append(same, line)
		}
	}
	want := append(append([]string{"Host: hooks.example.com"}, lines...), fmt.Sprintf("Content-Length: %d", len(body)))
	if !slices.Equal(same, want) {
		t.Errorf("the sender's lines\n%q\nwant\n%q", same, want)
	}
	if len(added) != len(ours) {
		t.Errorf("added are %q", added)
	}
	for header, value := range map[string]string{
		"Hooklock-Workflow": strings.TrimPrefix(path, "/"), "Hooklock-Attempt": "1", "X-Forwarded-For": "127.0.0.1",
		"X-Forwarded-Proto": "http", "X-Forwarded-Host": "hooks.example.com",
	} {
		if got.Header.Get(header) != value {
			t.Errorf("%s: %q, want %q", header, got.Header.Get(header), value)
		}
	}
}

func TestFencingTokensGrowWithEveryHolderOfAWorkflow(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	last := 0
	for i := range 3 {
		testkit.Post(t, shared.patient.Addr, path, "{}", key(fmt.Sprint(i)))
		var token int
		if _, err := fmt.Sscan(shared.up.Received(path)[i].Header.Get("Hooklock-Fencing-Token"), &token); err != nil ||
			token <= last {
			t.Fatalf("token %d after %d (%v)", token, last, err)
		}
		last = token
	}
}

func TestWhatTheSenderSaysOfItselfIsKeptOrContinued(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	trace := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	testkit.Post(t, shared.patient.Addr, path, "{}", key("1"), "X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https",
		"X-Forwarded-Host: outside.example.com", "traceparent: "+trace)
	got := shared.up.Received(path)[0].Header
	for header, want := range map[string]string{
		"X-Forwarded-Proto": "https", "X-Forwarded-Host": "outside.example.com", "Traceparent": trace,
		"Host": "hooks.example.com",
	} {
		if len(got[header]) != 1 || got[header][0] != want {
			t.Errorf("%s: %q, want %q", header, got[header], want)
		}
	}
	if all := strings.Join(got["X-Forwarded-For"], ", "); all != "192.0.2.1, 127.0.0.1" {
		t.Errorf("X-Forwarded-For: %q", got["X-Forwarded-For"])
	}
}

func TestHooklockHeadersFromOutsideAndHopByHopLinesAreDroppedOnRoutesAndElsewhere(t *testing.T) {
	t.Parallel()
	forged := []string{"Hooklock-Execution: forged", "HOOKLOCK-FENCING-TOKEN: forged", "hooklock_attempt: forged",
		"Hooklock_Workflow: forged", "hookLock-new: forged",
		"Proxy: forged", "Connection: X-Gone, keep-alive", "X-Gone: forged", "Keep-Alive: forged", "TE: trailers",
		"Proxy-Connection: forged", "Proxy-Authorization: forged", "Trailer: forged"}
	for _, path := range []string{at(t, "plain"), at(t, "unmatched")} {
		testkit.Post(t, shared.patient.Addr, path, "{}", append(forged, "X-Stays: yes")...)
		got := shared.up.AwaitReceived(t, path, 1)[0]
		if strings.Contains(got.Raw, "forged") || strings.Contains(got.Raw, "trailers") ||
			got.Header.Get("X-Stays") != "yes" {
			t.Errorf("%s", got.Raw)
		}
	}
}

func TestAnUnmatchedPathPassesThroughUntouched(t *testing.T) {
	t.Parallel()
	path := at(t, "unmatched")
	shared.on(t, path, answers(testkit.Reply(404, "not here", "Date: Thu, 01 Jan 2026 00:00:00 GMT", "X-A: 1")))
	for range 2 { // nothing is remembered
		a := testkit.Post(t, shared.patient.Addr, path+"?x", "{}", key("1"))
		if a.Status != 404 || string(a.Body) != "not here" || strings.Contains(a.Raw, "Hooklock") ||
			strings.Contains(a.Raw, "Idempotent") {
			t.Errorf("%v", a)
		}
	}
	got := shared.up.AwaitReceived(t, path+"?x", 2)
	for _, line := range got[1].Lines {
		if strings.HasPrefix(name(line), "hooklock") || name(line) == "user-agent" || name(line) == "content-type" {
			t.Errorf("added: %q", line)
		}
	}
}

func TestAMatchedPathWithAnotherMethodPassesThrough(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	for _, method := range []string{"GET", "OPTIONS", "DELETE"} {
		passed(t, testkit.Exchange(t, shared.patient.Addr, testkit.RequestWith(method, path, "")), 200, "done", "")
	}
	if got := shared.up.AwaitReceived(t, path, 3); len(got) != 3 {
		t.Errorf("%d requests", len(got))
	}
}

func TestAChunkedDeliveryGoesOnWithContentLength(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	a := testkit.Exchange(t, shared.patient.Addr, "POST "+path+
		" HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nX-After: 1\r\n\r\n3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
	passed(t, a, 200, "done", "executed")
	got := shared.up.Received(path)[0]
	if got.Body != "abcde" || got.Header.Get("Content-Length") != "5" || got.Header.Get("Transfer-Encoding") != "" {
		t.Errorf("%q", got.Raw)
	}
	passed(t, testkit.Exchange(t, shared.patient.Addr,
		// how it was framed is no part of what was asked
		strings.Replace(testkit.Request(path, "abcde"), "hooks.example.com", "h", 1)), 200, "done", "replayed")
}

func TestExpectContinueIsAnsweredHere(t *testing.T) {
	t.Parallel()
	for path, expected := range map[string]string{at(t, "plain"): "100-continue", at(t, "unmatched"): "100-Continue"} {
		c := testkit.Dial(t, shared.patient.Addr)
		c.Say("POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: " + expected + "\r\n\r\n")
		if line, err := c.Reader().ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
			t.Fatalf("%q %v", line, err)
		}
		if line, err := c.Reader().ReadString('\n'); err != nil || line != "\r\n" {
			t.Fatalf("%q %v", line, err)
		}
		c.Say("{}")
		if a := c.Answer("POST"); a.Status != 200 || string(a.Body) != "done" {
			t.Errorf("%v", a)
		}
		if got := shared.up.AwaitReceived(t, path, 1)[0]; got.Body != "{}" || got.Header.Get("Expect") != "" {
			t.Errorf("%q", got.Raw)
		}
	}
}

func TestLargeBodiesPassThroughBothWays(t *testing.T) {
	t.Parallel()
	path := at(t, "unmatched")
	size := 16 << 20 // more than limits.request_body and limits.response_body
	shared.on(t, path, func(r *testkit.Received) string { return testkit.OK(r.Body) })
	c := testkit.Dial(t, shared.patient.Addr)
	body := strings.Repeat("0123456789abcdef", size/16)
	go c.Say(testkit.Request(path, body))
	a := c.Answer("POST")
	if a.Status != 200 || a.Cut != nil || string(a.Body) != body {
		t.Errorf("%d, %d bytes of %d, cut: %v", a.Status, len(a.Body), size, a.Cut)
	}
}

func TestABodyThatTheSenderCutsOffIsNotPassedOnAsAWholeOne(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]string{
		"declared": "Content-Length: 10\r\n\r\nhalf",
		"chunked":  "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
	} {
		for _, route := range []string{"plain", "unmatched"} {
			t.Run(name+" "+route, func(t *testing.T) {
				t.Parallel()
				path := at(t, route)
				nc := testkit.Dial(t, shared.patient.Addr)
				nc.Say("POST " + path + " HTTP/1.1\r\nHost: h\r\n" + start)
				if err := nc.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
					t.Fatal(err)
				}
				if a, err := nc.TryAnswer("POST"); err == nil && a.Status < 400 {
					t.Errorf("%v", a)
				}
				untouched(t, path)
			})
		}
	}
}

func TestAnEventStreamIsPassedOnAsItComes(t *testing.T) {
	t.Parallel()
	path := at(t, "unmatched")
	seen := make(chan struct{})
	shared.on(t, path, func(r *testkit.Received) string {
		_ = r.Conn.Say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
		for i := range 3 {
			event := fmt.Sprintf("data: %d\n\n", i)
			_ = r.Conn.Say(fmt.Sprintf("%x\r\n%s\r\n", len(event), event))
			select {
			case <-seen: // the sender has this one before there is a next
			case <-t.Context().Done():
				return ""
			}
		}
		return "0\r\n\r\n"
	})
	c := testkit.Dial(t, shared.patient.Addr)
	c.Say(testkit.RequestWith("GET", path, ""))
	var text strings.Builder
	for i := range 3 {
		for !strings.Contains(text.String(), fmt.Sprintf("data: %d\n\n", i)) {
			b, err := c.Reader().ReadByte()
			if err != nil {
				t.Fatalf("%v after %q", err, text.String())
			}
			text.WriteByte(b)
		}
		seen <- struct{}{}
	}
}

func TestAnUpgradeOnAnUnmatchedPathIsTunnelled(t *testing.T) {
	t.Parallel()
	path := at(t, "unmatched")
	shared.on(t, path, func(r *testkit.Received) string {
		if r.Header.Get("Upgrade") != "websocket" || !strings.EqualFold(r.Header.Get("Connection"), "upgrade") {
			return testkit.Reply(400, r.Raw)
		}
		_ = r.Conn.Say(
			"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n")
		_, _ = io.Copy(r.Conn, r.Conn) // an echo of raw frames
		return ""
	})
	c := testkit.Dial(t, shared.patient.Addr)
	c.Say(testkit.RequestWith("GET", path, "", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x",
		"Sec-WebSocket-Version: 13"))
	status, err := c.Reader().ReadString('\n')
	if err != nil || !strings.HasPrefix(status, "HTTP/1.1 101 ") {
		t.Fatalf("%q %v", status, err)
	}
	skipHead(t, c.Reader())
	for _, frame := range []string{"\x81\x85mask\x00\xff", "GET / HTTP/1.1\r\n\r\n"} {
		c.Say(frame)
		echo := make([]byte, len(frame))
		if _, err := io.ReadFull(c.Reader(), echo); err != nil || string(echo) != frame {
			t.Fatalf("%q %v", echo, err)
		}
	}
}

func skipHead(t *testing.T, br *bufio.Reader) {
	t.Helper()
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == "\r\n" {
			return
		}
	}
}

func TestDeliveriesOnOneConnectionGetTheirAnswersInOrder(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	shared.on(t, path, func(r *testkit.Received) string { return testkit.OK(r.Body) })
	c := testkit.Dial(t, shared.patient.Addr)
	var all strings.Builder
	for i := range 20 {
		all.WriteString(testkit.Request(path, fmt.Sprint(i), key(fmt.Sprint(i))))
	}
	c.Say(all.String())
	for i := range 20 {
		passed(t, c.Answer("POST"), 200, fmt.Sprint(i), "executed")
	}
}

func TestAGETWithABodyIsOneRequest(t *testing.T) {
	t.Parallel()
	path := at(t, "unmatched")
	inner := "GET " + path + "?smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
	for framing, body := range map[string]string{
		fmt.Sprintf("Content-Length: %d", len(inner)): inner,
		"Transfer-Encoding: chunked":                  fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(inner), inner),
	} {
		c := testkit.Dial(t, shared.patient.Addr)
		c.Say("GET " + path + " HTTP/1.1\r\nHost: h\r\n" + framing + "\r\n\r\n" + body + "GET " + path +
			"?last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		for a, err := c.TryAnswer("GET"); err == nil; a, err = c.TryAnswer("GET") {
			if a.Status != 200 && a.Status != 400 {
				t.Errorf("%v", a)
			}
		}
	}
	if got := shared.up.Received(path + "?smuggled"); len(got) != 0 {
		t.Errorf("the body became a request: %q", got[0].Raw)
	}
}

func TestAnUpstreamMayCloseItsConnectionsWheneverItLikes(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	shared.on(t, path, func(r *testkit.Received) string {
		_ = r.Conn.Say(testkit.OK("done")) // says nothing of closing
		return ""
	})
	c := testkit.Dial(t, shared.patient.Addr)
	for i := range 30 {
		c.Say(testkit.Request(path, "{}", key(fmt.Sprint(i))))
		passed(t, c.Answer("POST"), 200, "done", "executed")
	}
	reached(t, path, 30)
}

func TestAnOldSenderIsAnsweredInHTTP10(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	a := testkit.Exchange(t, shared.patient.Addr, "POST "+path+" HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}")
	passed(t, a, 200, "done", "executed")
	if a.Header.Get("Transfer-Encoding") != "" {
		t.Errorf("%v", a)
	}
}

func TestHEADIsAnsweredWithoutABodyAndWithItsLength(t *testing.T) {
	t.Parallel()
	path := at(t, "unmatched")
	shared.on(t, path, answers("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\nETag: \"x\"\r\n\r\n"))
	a := testkit.Exchange(t, shared.patient.Addr, testkit.RequestWith("HEAD", path, ""))
	if a.Status != 200 || len(a.Body) != 0 || a.Header.Get("Content-Length") != "1234" ||
		a.Header.Get("Etag") != `"x"` {
		t.Errorf("%v", a)
	}
}
