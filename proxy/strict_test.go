package proxy

import (
	"io"
	"net"
	"strings"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
	"hooklock/proxy/wiretest"
)

// TestAConnectionEndsWhereItsSenderSaysSo: `close` counts in a list, too, and in any line.
func TestAConnectionEndsWhereItsSenderSaysSo(t *testing.T) {
	up := wiretest.Script(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	r := newReplica(t, etcdtest.Start(t), &service{url: up.Addr}, func(*idem.Policy) {})
	for _, lines := range []string{"Connection: close, x\r\n", "Connection: x,CLOSE\r\n",
		"Connection: close\r\nConnection: x\r\n"} {
		for _, target := range []string{"/x", "/hooks/" + strings.Map(letters, lines)} {
			c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			one := "POST " + target + " HTTP/1.1\r\nHost: a\r\n" + lines + "Content-Length: 0\r\n\r\n"
			if _, err := io.WriteString(c, one); err != nil {
				t.Fatal(err)
			}
			all, err := io.ReadAll(c) // ends with the connection
			if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 200 OK\r\n") ||
				!strings.Contains(string(all), "\r\nConnection: close\r\n") {
				t.Errorf("%q to %s: %q, %v", lines, target, all, err)
			}
		}
	}
}

func letters(c rune) rune {
	if c < 'a' || c > 'z' {
		return '-'
	}
	return c
}

// TestWhatFasthttpForgivesIsRefused: wire has every vector; here is one of each kind, on a route
// and beside it.
func TestWhatFasthttpForgivesIsRefused(t *testing.T) {
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		if _, err := c.ReadRequest(); err == nil {
			t.Error("the service got a whole request")
		}
	})
	r := newReplica(t, etcdtest.Start(t), &service{url: up.Addr}, func(*idem.Policy) {})
	for _, target := range []string{"/x", "/hooks/w"} {
		for _, request := range []string{
			"GET " + target + " HTTP/1.1\nHost: a\r\n\r\n",
			"POST " + target + " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;\x01\r\na\r\n0\r\n\r\n",
			"POST " + target + " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX : y\r\n\r\n",
			"POST " + target + " HTTP/1.1\r\nHost: a\r\nContent_Length: 0\r\n\r\n",
		} {
			if status, body := r.exchange(t, request); status != 400 || !strings.Contains(body, `"bad_request"`) {
				t.Errorf("%q: %d %s", request, status, body)
			}
		}
	}
}

// TestABodyThatBreaksOnItsWayThroughIsTheSendersFault: a short one is gathered before the service
// is called; of a long one the service has begun to read, and never gets the end of a request.
func TestABodyThatBreaksOnItsWayThroughIsTheSendersFault(t *testing.T) {
	got := make(chan string, 8)
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		request, err := c.ReadRequest()
		if err == nil {
			t.Error("the service got a whole request")
		}
		got <- request
	})
	r := newReplica(t, etcdtest.Start(t), &service{url: up.Addr}, func(*idem.Policy) {})
	const head = "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	long := "8000\r\n" + strings.Repeat("b", 0x8000) + "\r\n"
	for _, broken := range []string{"zz\r\n", "1\r\nab\r\n", "0\r\nX : y\r\n\r\n"} {
		status, body := r.exchange(t, head+"4\r\nbody\r\n"+broken)
		if status != 400 || !strings.Contains(body, `"bad_request"`) || !strings.Contains(body, `"executed":"no"`) {
			t.Errorf("%q: %d %s", broken, status, body)
		}
		status, body = r.exchange(t, head+long+broken)
		if status != 400 || !strings.Contains(body, `"bad_request"`) ||
			!strings.Contains(body, `"executed":"unknown"`) {
			t.Errorf("a long body, %q: %d %s", broken, status, body)
		}
		if request := await(t, got); !strings.Contains(request, "bbbb") {
			t.Errorf("the service got %.200q", request)
		}
	}
}
