package e2e

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// exhausted is a Hooklock with limits of this test's own, in front of an upstream of this test's
// own.
func exhausted(t *testing.T, up *testkit.Upstream, limits, routes string) *testkit.Hooklock {
	t.Helper()
	return own(t, bare(up.URL, fmt.Sprintf(`
shutdown_timeout: 40s
limits: {%s}
routes:
  - {name: plain, path: "/plain/{w}", workflow: "{path.w}"%s}
`, limits, routes)))
}

const nothingHeld = "hooklock_memory_used_bytes 0"

func TestBodiesThatFindNoRoomAreRefusedAndSmallOnesGoOn(t *testing.T) {
	t.Parallel()
	service := newHeld(t)
	up := testkit.NewUpstream(t, service.handle)
	h := exhausted(t, up, "memory: 2MiB, request_body: 1MiB", "")
	large := strings.Repeat("x", 700<<10)
	first := testkit.GoPost(t, h.Addr, "/plain/1", large)
	second := testkit.GoPost(t, h.Addr, "/plain/2", large)
	testkit.Receive(t, "the first at the upstream", service.arrived)
	testkit.Receive(t, "the second at the upstream", service.arrived)

	a := testkit.Post(t, h.Addr, "/plain/3", large)
	refused{503, "memory_exhausted", "no", "rejected"}.check(t, a)
	if a.Header.Get("Retry-After") == "" {
		t.Errorf("no Retry-After in %v", a)
	}
	small := testkit.GoPost(t, h.Addr, "/plain/4", "small")
	testkit.Receive(t, "the small one at the upstream", service.arrived)
	h.Stderr.AwaitRecord(t, "memory.exhausted", nil)

	for range 3 {
		service.answer <- testkit.OK("done")
	}
	for _, waits := range []<-chan *testkit.Answer{first, second, small} {
		passed(t, testkit.Receive(t, "an answer", waits), 200, "done", "executed")
	}
	shows(t, h, nothingHeld)
	service.answer <- testkit.OK("done")
	passed(t, testkit.Post(t, h.Addr, "/plain/3", large), 200, "done", "executed")
}

// TestAllMemoryIsGivenBack: whatever way out a delivery takes.
func TestAllMemoryIsGivenBack(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("y", 3<<20)
	up := testkit.NewUpstream(t, func(r *testkit.Received) string {
		switch {
		case strings.Contains(r.Target, "cut"):
			return "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc" // and no more of it: the connection ends
		case strings.Contains(r.Target, "long"):
			return testkit.OK(long)
		case strings.Contains(r.Target, "whole"):
			return testkit.OK(long[:1<<20])
		case strings.Contains(r.Target, "kept"):
			return testkit.OK(long[:20<<10])
		}
		return testkit.OK("done")
	})
	h := exhausted(t, up, "memory: 64MiB, request_body: 1MiB, response_body: 2MiB, body_timeout: 4s",
		`, lock: {release_delay: 0s}`)
	body := strings.Repeat("x", 512<<10)
	for _, target := range []string{"/plain/a", "/plain/whole", "/plain/long", "/other", "/other/long"} {
		if a := testkit.Post(t, h.Addr, target, body); a.Status != 200 || a.Cut != nil {
			t.Errorf("%s: %.300s", target, a)
		}
	}
	passed(t, testkit.Post(t, h.Addr, "/plain/kept", body, key("1")), 200, long[:20<<10], "executed")
	passed(t, testkit.Post(t, h.Addr, "/plain/kept", body, key("1")), 200, long[:20<<10], "replayed")
	for _, target := range []string{"/plain/hangs-up", "/other/hangs-up", "/plain/long-hangs-up",
		"/other/long-hangs-up"} {
		c := testkit.Dial(t, h.Addr)
		request := testkit.Request(target, body)
		if strings.Contains(target, "long") {
			c.Say(request)
			_, _ = io.ReadFull(c, make([]byte, 100)) // the answer has begun
		} else {
			c.Say(request[:len(request)/2])
		}
		_ = c.Close()
	}
	refused{413, "body_too_large", "no", "rejected"}.check(t,
		testkit.Post(t, h.Addr, "/plain/large", strings.Repeat("x", 2<<20)))
	slow := testkit.Dial(t, h.Addr)
	request := testkit.Request("/plain/slow", body)
	slow.Say(request[:len(request)/2])
	refused{408, "request_timeout", "no", "rejected"}.check(t, slow.Answer("POST"))
	shows(t, h, nothingHeld)
}

func TestADeliveryWithoutItsSignatureIsRefusedBeforeItsBody(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "a-test-secret")
	h := exhausted(t, up, "body_timeout: 60s",
		fmt.Sprintf(`, verify: {scheme: hmac, header: X-Signature, secret_file: %q}`, secret))
	c := testkit.Dial(t, h.Addr)
	c.Say("POST /plain/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 9000))
	a := c.Answer("POST")
	refused{401, "signature_invalid", "no", "unverified"}.check(t, a)
	if !strings.Contains(a.Raw, "Connection: close\r\n") {
		t.Errorf("the rest of the body would be the next request: %v", a)
	}
}

// TestASenderThatDoesNotReadIsCutOff: it holds neither memory nor the service's connection.
func TestASenderThatDoesNotReadIsCutOff(t *testing.T) {
	t.Parallel()
	const pieces = 4000 // of 64 KiB: more than fits into any socket's buffers
	ended := make(chan string, 2)
	up := testkit.NewUpstream(t, func(r *testkit.Received) string {
		if strings.HasPrefix(r.Target, "/plain") {
			return testkit.OK(strings.Repeat("y", 32<<20))
		}
		_ = r.Conn.Say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", pieces<<16))
		piece := strings.Repeat("z", 1<<16)
		for range pieces {
			if r.Conn.Say(piece) != nil {
				break
			}
		}
		ended <- r.Target
		return ""
	})
	h := exhausted(t, up, "write_timeout: 300ms, response_body: 48MiB, memory: 256MiB", "")
	for _, target := range []string{"/plain/1", "/other"} {
		c := testkit.Dial(t, h.Addr)
		c.Say(testkit.Request(target, ""))
		if target == "/other" {
			testkit.Receive(t, "the end of the service's connection", ended)
		}
		shows(t, h, nothingHeld)
	}
}

// TestABodyThatDripsHoldsNoConnectionOfTheService: before it fills the buffer nobody is called, and
// beyond it has a pace to keep.
func TestABodyThatDripsHoldsNoConnectionOfTheService(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
	h := exhausted(t, up, "request_buffer: 64KiB, body_timeout: 2s", "")
	for _, framing := range []string{"Content-Length: 50000", "Transfer-Encoding: chunked"} {
		c := testkit.Dial(t, h.Addr)
		c.Say("POST /other HTTP/1.1\r\nHost: a\r\n" + framing + "\r\n\r\n2710\r\n" + strings.Repeat("x", 10000) +
			"\r\n")
		refused{408, "request_timeout", "no", ""}.check(t, c.Answer("POST"))
	}
	if n := up.Conns(); n != 0 {
		t.Errorf("the service was called %d times", n)
	}
	c := testkit.Dial(t, h.Addr)
	c.Say("POST /other HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 100000))
	if a, err := c.TryAnswer("POST"); err == nil && a.Status < 400 {
		t.Errorf("got %v", a)
	}
	if got := up.Received(""); len(got) != 0 {
		t.Errorf("the service got %d whole requests", len(got))
	}
	whole := "POST /other HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2710\r\n" +
		strings.Repeat("x", 10000) + "\r\n3\r\nabc\r\n0\r\n\r\n"
	if a := testkit.Exchange(t, h.Addr, whole); a.Status != 200 {
		t.Errorf("a whole body gets %v", a)
	}
	shows(t, h, nothingHeld)
}

func TestAnAnswerThatFallsSilentIsCutOff(t *testing.T) {
	t.Parallel()
	gone := make(chan error, 1)
	up := testkit.NewUpstream(t, func(r *testkit.Received) string {
		_ = r.Conn.Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
		_, err := r.Conn.Read(make([]byte, 1)) // nothing comes any more
		gone <- err
		return ""
	})
	h := exhausted(t, up, "stream_timeout: 2s", "")
	if a := testkit.Exchange(t, h.Addr, testkit.RequestWith("GET", "/other", "")); a.Cut == nil {
		t.Errorf("got %v", a)
	}
	testkit.Receive(t, "the end of the service's connection", gone)
}

func TestTheMemoryIsReloaded(t *testing.T) {
	t.Parallel()
	config := shared.config(strings.TrimPrefix(ownPrefix(), "/"), "limits: {memory: 100MiB}")
	h := own(t, config)
	shows(t, h, "hooklock_memory_limit_bytes 1.048576e+08")
	write(t, h.Config, strings.Replace(config, "100MiB", "50MiB", 1))
	h.Stderr.AwaitRecord(t, "config.reloaded", nil)
	shows(t, h, "hooklock_memory_limit_bytes 5.24288e+07")
}

func TestTheMemoryFollowsTheRuntimesLimit(t *testing.T) {
	t.Parallel()
	h := own(t, shared.config(strings.TrimPrefix(ownPrefix(), "/"), ""), "GOMEMLIMIT=200MiB")
	shows(t, h, "hooklock_memory_limit_bytes 1.048576e+08")
}
