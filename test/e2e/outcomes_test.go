package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hooklock/test/testkit"
)

func TestAnUpstreamThatRefusesConnectionsIsUnreachableAndNothingIsBurned(t *testing.T) {
	t.Parallel()
	addr := testkit.FreePort(t)
	h := own(t, strings.Replace(shared.config("unreachable", ""), shared.up.URL, "http://"+addr, 1))
	for range 2 {
		refused{502, "upstream_unreachable", "no", "upstream_unreachable"}.check(t,
			testkit.Post(t, h.Addr, "/cooling/x", "{}", key("1")))
	}
	// Nothing was sent, so the lock is free at once in spite of the release_delay.
	refused{502, "upstream_unreachable", "no", "upstream_unreachable"}.check(t,
		testkit.Post(t, h.Addr, "/cooling/x", "{}", key("2")))
}

func TestACutOffAnswerIsNeverSuccess(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]string{
		"no answer":               "",
		"half a head":             "HTTP/1.1 200 OK\r\nContent-Le",
		"a short body":            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
		"no body":                 "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n",
		"a cut chunk":             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\nshort",
		"no last chunk":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
		"no end of the last one":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n0\r\n",
		"something else entirely": "220 mail.example.com ESMTP\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := at(t, "plain")
			shared.on(t, path, func(r *testkit.Received) string {
				if r.Header.Get("Hooklock-Attempt") == "2" {
					return testkit.OK("whole")
				}
				_ = r.Conn.Say(cut)
				return ""
			})
			a := testkit.Post(t, shared.patient.Addr, path, "{}", key("1"))
			refused{502, "upstream_failed", "unknown", "upstream_failed"}.check(t, a)
			reached(t, path, 1)
			shared.patient.Stderr.AwaitRecord(t, "execution.unknown", func(r testkit.Record) bool {
				return r.Text("execution") == a.Execution()
			})
			passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 200, "whole", "executed")
		})
	}
}

func TestAnAnswerThatEndsWithItsConnectionIsWholeAfterAFinAndCutOffAfterAReset(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	shared.on(t, path, func(r *testkit.Received) string {
		_ = r.Conn.Say("HTTP/1.1 200 OK\r\n\r\nto the end")
		return ""
	})
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 200, "to the end", "executed")
	shared.on(t, path, func(r *testkit.Received) string {
		_ = r.Conn.Say("HTTP/1.1 200 OK\r\n\r\nto the")
		_ = r.Conn.Reset()
		return ""
	})
	refused{502, "upstream_failed", "unknown", "upstream_failed"}.check(t,
		testkit.Post(t, shared.patient.Addr, path, "{}", key("2")))
}

func TestAnUpstreamThatIsTooSlowTimesOutAndItsCallIsClosed(t *testing.T) {
	t.Parallel()
	h := own(t, strings.Replace(shared.config("slow-upstream", ""), "timeout: 30s", "timeout: 1s", 1))
	path := at(t, "plain")
	closed := make(chan error, 1)
	shared.on(t, path, func(r *testkit.Received) string {
		_, err := r.Conn.Read(make([]byte, 1))
		closed <- err
		return ""
	})
	refused{504, "upstream_timeout", "unknown", "upstream_timeout"}.check(t,
		testkit.Post(t, h.Addr, path, "{}", key("1")))
	if err := testkit.Receive(t, "the end of the call at the upstream", closed); err == nil {
		t.Error("the upstream got more bytes")
	}
	shared.on(t, path, func(r *testkit.Received) string {
		_ = r.Conn.Say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1") // and the rest never
		_, _ = r.Conn.Read(make([]byte, 1))
		return ""
	})
	refused{504, "upstream_timeout", "unknown", "upstream_timeout"}.check(t,
		testkit.Post(t, h.Addr, path, "{}", key("2")))
}

func TestAfterAnUnknownOutcomeTheEventRunsAgainOrIsBlocked(t *testing.T) {
	t.Parallel()
	for route, check := range map[string]func(*testing.T, *testkit.Answer){
		"plain": func(t *testing.T, a *testkit.Answer) { passed(t, a, 200, "again", "executed") },
		"block": refused{409, "outcome_unknown", "unknown", "unknown"}.check,
	} {
		t.Run(route, func(t *testing.T) {
			t.Parallel()
			path := at(t, route)
			shared.on(t, path, answers("", testkit.OK("again")))
			first := testkit.Post(t, shared.patient.Addr, path, "{}", key("1"))
			refused{502, "upstream_failed", "unknown", "upstream_failed"}.check(t, first)
			check(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")))
			passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("2")), 200, "again", "executed")
		})
	}
}

func TestABlockedEventIsRefusedBeforeTheLockIsAsked(t *testing.T) {
	t.Parallel()
	path := at(t, "block")
	work := shared.holds(t, path)
	work.answer <- ""
	unknown := testkit.Post(t, shared.patient.Addr, path, "{}", key("1"))
	work.await(t)
	other := testkit.GoPost(t, shared.patient.Addr, path, "{}", key("2"))
	work.await(t)
	a := testkit.Post(t, shared.patient.Addr, path, "{}", key("1"))
	refused{409, "outcome_unknown", "unknown", "unknown"}.check(t, a)
	if a.Execution() != unknown.Execution() {
		t.Errorf("names %s, not %s", a.Execution(), unknown.Execution())
	}
	work.answer <- testkit.OK("")
	testkit.Receive(t, "the other answer", other)
}

func TestAfterAnUnknownOutcomeTheLockStaysClosedForReleaseDelay(t *testing.T) {
	t.Parallel()
	path := at(t, "cooling")
	shared.on(t, path, answers("", testkit.OK("later")))
	first := testkit.Post(t, shared.patient.Addr, path, "{}", key("1"))
	refused{502, "upstream_failed", "unknown", "upstream_failed"}.check(t, first)
	other := testkit.Post(t, shared.patient.Addr, path, "{}", key("2"))
	refused{409, "workflow_locked", "no", "locked"}.check(t, other)
	p := other.JSON()
	until, err := time.Parse(time.RFC3339, fmt.Sprint(p["closedUntil"]))
	if left := time.Until(until); err != nil || left > 9*time.Second || p["existingExecutionId"] != first.Execution() ||
		other.Execution() != first.Execution() {
		t.Errorf("closed until %v: %v", p["closedUntil"], other)
	}
	for _, field := range []string{"detail", "details"} {
		if text, _ := p[field].(string); strings.Contains(text, "Currently") ||
			!strings.Contains(text, first.Execution()+" has ended") || !strings.Contains(text, " closed until 20") {
			t.Errorf("%s: %v", field, p[field])
		}
	}
	line := shared.patient.Stderr.AwaitRecord(t, "lock.refused", func(r testkit.Record) bool {
		return r.Text("execution") == first.Execution()
	})
	if at, err := time.Parse(time.RFC3339, line.Text("closed_until")); err != nil || !at.Equal(until) {
		t.Errorf("%v", line)
	}
	refused{409, "workflow_locked", "no", "locked"}.check(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")))
	var a *testkit.Answer
	testkit.Until(t, "the lock is free", func() bool {
		a = testkit.Post(t, shared.patient.Addr, path, "{}", key("2"))
		return !undecided(a)
	})
	passed(t, a, 200, "later", "executed")
}

func TestRetryAfterIsTheRemainingTimeWhereItIsKnown(t *testing.T) {
	t.Parallel()
	path := at(t, "cold")
	shared.on(t, path, answers(""))
	testkit.Post(t, shared.patient.Addr, path, "{}", key("1"))
	a := testkit.Post(t, shared.patient.Addr, path, "{}", key("2"))
	refused{409, "workflow_locked", "no", "locked"}.check(t, a)
	if s, _ := a.JSON()["retryAfter"].(float64); s < 30 || s > 50 {
		t.Errorf("Retry-After %v, of 50 s", s)
	}
}

func TestAnExecutionPastMaxDurationIsAborted(t *testing.T) {
	t.Parallel()
	path := at(t, "short")
	closed := make(chan error, 1)
	shared.on(t, path, func(r *testkit.Received) string {
		if r.Header.Get("Hooklock-Attempt") == "2" {
			return testkit.OK("second")
		}
		_, err := r.Conn.Read(make([]byte, 1))
		closed <- err
		return ""
	})
	a := testkit.Post(t, shared.patient.Addr, path, "{}", key("1"))
	refused{503, "execution_aborted", "unknown", "aborted"}.check(t, a)
	if err := testkit.Receive(t, "the end of the call at the upstream", closed); err == nil {
		t.Error("the upstream got more bytes")
	}
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 200, "second", "executed")
}

// long is more than strict reads whole.
const long = 300 << 10

func TestALongAnswerIsStreamedAndCommittedAtItsEnd(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	more := make(chan struct{})
	shared.on(t, path, func(r *testkit.Received) string {
		_ = r.Conn.Say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", long))
		_ = r.Conn.Say(strings.Repeat("a", long/2))
		select {
		case <-more:
		case <-t.Context().Done():
			return ""
		}
		return strings.Repeat("b", long/2)
	})
	c := testkit.Dial(t, shared.strict.Addr)
	c.Say(testkit.Request(path, "{}", key("1")))
	if line, err := c.Reader().ReadString('\n'); err != nil || line != "HTTP/1.1 200 OK\r\n" {
		t.Fatalf("%q %v", line, err)
	}
	refused{409, "execution_in_flight", "no", "in_flight"}.check(t,
		testkit.Post(t, shared.strict.Addr, path, "{}", key("1")))
	close(more)
	var b strings.Builder
	for {
		line, err := c.Reader().ReadString('\n')
		if err != nil || line == "\r\n" {
			break
		}
		b.WriteString(line)
	}
	if !strings.Contains(b.String(), "Hooklock-Decision: executed\r\n") {
		t.Errorf("head: %s", b.String())
	}
	body := make([]byte, long)
	for n := 0; n < long; {
		m, err := c.Reader().Read(body[n:])
		if err != nil {
			t.Fatalf("after %d bytes: %v", n, err)
		}
		n += m
	}
	if string(body) != strings.Repeat("a", long/2)+strings.Repeat("b", long/2) {
		t.Error("the body is another one")
	}
	passed(t, testkit.Post(t, shared.strict.Addr, path, "{}", key("1")), 200, "", "replayed")
}

func TestALongAnswerThatIsCutCutsTheSendersConnectionAndIsUnknown(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]string{
		"declared": fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", long),
		"chunked":  fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n", long),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := at(t, "plain")
			shared.on(t, path, func(r *testkit.Received) string {
				if r.Header.Get("Hooklock-Attempt") == "2" {
					return testkit.OK("second")
				}
				_ = r.Conn.Say(head + strings.Repeat("a", long-1))
				return ""
			})
			a := testkit.Post(t, shared.strict.Addr, path, "{}", key("1"))
			if a.Status != 200 || a.Cut == nil {
				t.Fatalf("%d bytes of body, cut: %v", len(a.Body), a.Cut)
			}
			shared.strict.Stderr.AwaitRecord(t, "execution.unknown", func(r testkit.Record) bool {
				return r.Text("execution") == a.Execution()
			})
			passed(t, testkit.Post(t, shared.strict.Addr, path, "{}", key("1")), 200, "second", "executed")
		})
	}
}
