package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hooklock/proxy/wiretest"
	"hooklock/test/testkit"
)

// The answer to a sender whose patience ends during the call of the service is written on its
// connection by itself, and is the last one there.

// early checks the answer to a sender whose patience ended, and that nothing follows it.
func early(t *testing.T, c *testkit.Conn, method string) *testkit.Answer {
	t.Helper()
	a := c.Answer(method)
	acceptedAs(t, a, 202)
	if strings.Contains(a.Raw, "chunked") || a.Header.Get("Content-Length") == "" ||
		!strings.Contains(strings.ToLower(a.Raw), "\r\nconnection: close\r\n") {
		t.Errorf("a sender cannot tell where it ends: %q", a.Raw)
	}
	if rest, err := io.ReadAll(c.Reader()); err != nil || len(rest) > 0 {
		t.Errorf("behind it came %q, %v", rest, err)
	}
	return a
}

func TestAnEarlyAnswerIsTheLastOneOfItsConnection(t *testing.T) {
	t.Parallel()
	h := parking(t)
	for name, request := range map[string]func(path string) string{
		"HTTP/1.1": func(path string) string { return testkit.Request(path, "{}", key("1")) },
		"HTTP/1.0": func(path string) string {
			return strings.Replace(testkit.Request(path, "{}", key("1"), "Connection: keep-alive"), "HTTP/1.1",
				"HTTP/1.0", 1)
		},
		"the next request is there already": func(path string) string {
			return testkit.Request(path, "{}", key("1")) + testkit.Request(path, "{}", key("2"))
		},
		"and so is the beginning of a long one": func(path string) string {
			return testkit.Request(path, "{}", key("1")) +
				strings.TrimSuffix(testkit.Request(path, strings.Repeat("x", 100_000), key("2")), "xxx")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := at(t, "park-slow")
			work := shared.holds(t, path)
			c := testkit.Dial(t, h.Addr)
			c.Say(request(path))
			work.await(t)
			early(t, c, "POST")
			work.answer <- testkit.OK("the true answer")
			settles(t, h.Addr, path, "{}", "1", 200, "the true answer")
			reached(t, path, 1)
		})
	}
}

// TestAnEarlyAnswerComesAfterThoseOfTheRequestsBeforeIt: a sender that sends several at once tells
// answers by their order.
func TestAnEarlyAnswerComesAfterThoseOfTheRequestsBeforeIt(t *testing.T) {
	t.Parallel()
	h := parking(t)
	quick, path := at(t, "park"), at(t, "park-slow")
	shared.on(t, quick, func(*testkit.Received) string { return testkit.OK("quick") })
	work := shared.holds(t, path)
	c := testkit.Dial(t, h.Addr)
	c.Say(testkit.Request(quick, "{}", key("1")) + testkit.Request(quick, "{}", key("1")) +
		testkit.Request(path, "{}", key("1")))
	work.await(t)
	passed(t, c.Answer("POST"), 200, "quick", "executed")
	passed(t, c.Answer("POST"), 200, "quick", "replayed")
	early(t, c, "POST")
	work.answer <- testkit.OK("the true answer")
	settles(t, h.Addr, path, "{}", "1", 200, "the true answer")
}

func TestAnEarlyAnswerOverTLSIsEndedAsTLSIs(t *testing.T) {
	t.Parallel()
	server, client := wiretest.Certify(t)
	dir := t.TempDir()
	der, err := x509.MarshalPKCS8PrivateKey(server.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, filepath.Join(dir, "cert.pem"), "CERTIFICATE", server.Certificates[0].Certificate[0])
	writePEM(t, filepath.Join(dir, "key.pem"), "PRIVATE KEY", der)
	h := own(t, strings.Replace(parkConfig(shared.up.URL, ownPrefix()), "listen: 127.0.0.1:0",
		"listen: {address: '127.0.0.1:0', tls: {cert_file: "+dir+"/cert.pem, key_file: "+dir+"/key.pem}}", 1))
	path := at(t, "park-slow")
	work := shared.holds(t, path)
	nc, err := tls.Dial("tcp", h.Addr, client)
	if err != nil {
		t.Fatal(err)
	}
	c := testkit.NewConn(t, nc)
	c.Say(testkit.Request(path, "{}", key("1")))
	work.await(t)
	early(t, c, "POST") // a connection that is cut is an error of TLS
	work.answer <- testkit.OK("done")
	reached(t, path, 1)
}

// TestACallWhoseSenderWasAnsweredTakesNoConnectionFromOthers: a service that is slow may have many
// of them.
func TestACallWhoseSenderWasAnsweredTakesNoConnectionFromOthers(t *testing.T) {
	t.Parallel()
	h := own(t, strings.Replace(parkConfig(shared.up.URL, ownPrefix()), "shutdown_timeout: 5s",
		"shutdown_timeout: 5s\nlimits: {max_connections: 1}", 1))
	path := at(t, "park-slow")
	for i := range 5 {
		work := shared.holds(t, fmt.Sprint(path, i))
		defer func() { work.answer <- testkit.OK("done") }()
		var c *testkit.Conn
		testkit.Until(t, "there is room for a connection", func() bool {
			c = testkit.Dial(t, h.Addr)
			c.Say(testkit.Request(fmt.Sprint(path, i), "{}", key(fmt.Sprint(i))))
			got, err := c.Reader().Peek(12)
			return err == nil && string(got) == "HTTP/1.1 202"
		})
		early(t, c, "POST")
		_ = c.Close()
	}
}

// TestAnAnswerAndTheEndOfPatienceInTheSameMoment: a sender gets one answer, and the event runs
// once, whichever is first.
func TestAnAnswerAndTheEndOfPatienceInTheSameMoment(t *testing.T) {
	t.Parallel()
	h := parking(t)
	path := at(t, "park-slow")
	const events = 60
	for i := range events {
		shared.on(t, fmt.Sprint(path, i), func(r *testkit.Received) string {
			timer := time.NewTimer(300*time.Millisecond + time.Duration(i-events/2)*time.Millisecond/2)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-r.Context.Done():
			}
			return testkit.OK("the true answer")
		})
	}
	var sending sync.WaitGroup
	for i := range events {
		sending.Go(func() {
			path, id := fmt.Sprint(path, i), fmt.Sprint(i)
			switch a := testkit.Post(t, h.Addr, path, "{}", key(id)); {
			case a.Status == 202 && a.Decision() == "parked" && a.Cut == nil:
			case a.Status == 200 && a.Decision() == "executed" && string(a.Body) == "the true answer":
			default:
				t.Errorf("%s: %v", id, a)
			}
			testkit.Until(t, "the event to be settled", func() bool {
				return testkit.Post(t, h.Addr, path, "{}", key(id)).Decision() == "replayed"
			})
		})
	}
	sending.Wait()
	for i := range events {
		reached(t, fmt.Sprint(path, i), 1)
	}
}

// TestAFailedAnswerAndTheEndOfPatienceInTheSameMoment: the call and the early answer, which both
// note what they know, share no memory. The race detector watches the program.
func TestAFailedAnswerAndTheEndOfPatienceInTheSameMoment(t *testing.T) {
	t.Parallel()
	h := parking(t)
	path := at(t, "park-slow")
	const events = 60
	var sending sync.WaitGroup
	for i := range events {
		path, id := fmt.Sprint(path, i), fmt.Sprint(i)
		var again atomic.Bool
		shared.on(t, path, func(r *testkit.Received) string {
			if again.Swap(true) {
				return testkit.OK("the true answer")
			}
			timer := time.NewTimer(300*time.Millisecond + time.Duration(i-events/2)*time.Millisecond/4)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-r.Context.Done():
			}
			return testkit.Reply(503, "not now")
		})
		sending.Go(func() {
			switch a := testkit.Post(t, h.Addr, path, "{}", key(id)); {
			case a.Status == 202 && a.Decision() == "parked" && a.Cut == nil:
			case a.Status == 503 && a.Decision() == "executed" && string(a.Body) == "not now":
			default:
				t.Errorf("%s: %v", id, a)
			}
		})
	}
	sending.Wait()
}

// TestAProcessThatEndsWaitsForACallWhoseSenderWasAnswered: its answer is the outcome, as that of
// any other.
func TestAProcessThatEndsWaitsForACallWhoseSenderWasAnswered(t *testing.T) {
	t.Parallel()
	config := parkConfig(shared.up.URL, ownPrefix())
	h, other := own(t, config), own(t, config)
	path := at(t, "park-slow")
	work := shared.holds(t, path)
	c := testkit.Dial(t, h.Addr)
	c.Say(testkit.Request(path, "{}", key("1")))
	work.await(t)
	early(t, c, "POST")
	h.Signal(t, syscall.SIGTERM)
	testkit.Until(t, "the process takes no more", func() bool {
		nc, err := net.Dial("tcp", h.Addr)
		if err == nil {
			_ = nc.Close()
		}
		return err != nil
	})
	work.answer <- testkit.OK("the true answer")
	settles(t, other.Addr, path, "{}", "1", 200, "the true answer")
	reached(t, path, 1)
}
