package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
	"hooklock/proxy/wiretest"
)

// careless is a service that reads no request's body, as Python's http.server does where its
// handler does not: what follows a head is the next request. Its answer to /slow comes when the
// request behind that is there, which it then has no answer for.
func careless(t *testing.T) *service {
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		for {
			head, err := c.ReadHead()
			if err != nil {
				return
			}
			target := strings.Fields(head)[1]
			if strings.Contains(head, "/slow") {
				target = "/slow"
				if _, err := c.ReadHead(); err != nil {
					return
				}
			}
			if c.Say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(target), target)) != nil ||
				target == "/slow" {
				return
			}
		}
	})
	return &service{url: up.Addr}
}

const hidden = "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"

// exchange sends raw bytes on a connection of their own and returns the answer's status and body.
func (r *replica) exchange(t *testing.T, raw string) (int, string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// TestASecondAnswerIsNotTheOutcomeOfTheNextEvent: the service took the body of an earlier request
// for a request, and its answer to that comes when an event has been sent. It is not the event's
// outcome, whoever the body was from.
func TestASecondAnswerIsNotTheOutcomeOfTheNextEvent(t *testing.T) {
	etcd := etcdtest.Start(t)
	for _, earlier := range []struct{ name, head string }{
		{"an unmatched GET", "GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"},
		{"an unmatched POST in chunks", "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n"},
		{"an unmatched GET that offers an upgrade",
			"GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: %d\r\n\r\n"},
		{"an event of another workflow", "POST /hooks/other HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"},
	} {
		t.Run(earlier.name, func(t *testing.T) {
			r := newReplica(t, etcd, careless(t), func(*idem.Policy) {})
			raw := fmt.Sprintf(earlier.head, len(hidden)) + hidden
			if strings.Contains(earlier.head, "chunked") {
				raw += "\r\n0\r\n\r\n"
			}
			if status, body := r.exchange(t, raw); status != 200 || body == "/slow" {
				t.Fatalf("the first answer is %d %q", status, body)
			}
			for range 2 {
				got := await(t, r.send(t.Context(), strings.ReplaceAll(t.Name(), "/", "-"), t.Name()))
				if got.err != nil || got.status != 200 || !strings.HasPrefix(got.body, "/hooks/") {
					t.Fatalf("the event's answer is %+v", got)
				}
			}
		})
	}
}

// TestAnUpgradeWithABodySwallowsNothing: the service that refuses it would read the declared body
// out of the next request on that connection, of which a sender could so choose the beginning.
func TestAnUpgradeWithABodySwallowsNothing(t *testing.T) {
	bodies := make(chan string, 2)
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		for {
			request, err := c.ReadRequest()
			if err != nil {
				return
			}
			_, body, _ := strings.Cut(request, "\r\n\r\n")
			bodies <- body
			_ = c.Say("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
		}
	})
	r := newReplica(t, etcdtest.Start(t), &service{url: up.Addr}, func(*idem.Policy) {})
	status, _ := r.exchange(t,
		"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 4\r\n\r\nbody")
	if body := await(t, bodies); status != 404 || body != "body" {
		t.Errorf("status %d, the service got the body %q", status, body)
	}
}

// TestTheServiceIsToldWhichConnectionsEnd: then it does not run what is left of a body, either.
func TestTheServiceIsToldWhichConnectionsEnd(t *testing.T) {
	etcd := etcdtest.Start(t)
	up := wiretest.Script(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	r := newReplica(t, etcd, &service{url: up.Addr}, func(*idem.Policy) {})
	for i, tt := range []struct {
		request string
		ends    bool
	}{
		{"GET /x HTTP/1.1\r\nHost: a\r\n\r\n", false},
		{"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody", true},
		{"POST /x HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", true},
		{"POST /hooks/a HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody", true},
		{"POST /hooks/b HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", false},
	} {
		if status, _ := r.exchange(t, tt.request); status != 200 {
			t.Fatalf("status %d", status)
		}
		if got := up.Await(t, i+1); strings.Contains(got, "\r\nConnection: close\r\n") != tt.ends ||
			strings.Count(got, "Connection") > 1 {
			t.Errorf("the service got %q", got)
		}
	}
}

// TestARefusedUpgradeWithALongBodyIsAnswered: closing with that body unread would reset the
// connection under the answer.
func TestARefusedUpgradeWithALongBodyIsAnswered(t *testing.T) {
	r := newReplica(t, etcdtest.Start(t), newService(t), func(*idem.Policy) {})
	const size = 8 << 20
	status, body := r.exchange(t,
		fmt.Sprintf(
			"POST /hooks/a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: %d\r\n\r\n", size)+strings.Repeat("x", size))
	if status != 400 || !strings.Contains(body, "upgrade_refused") {
		t.Errorf("%d %s", status, body)
	}
}
