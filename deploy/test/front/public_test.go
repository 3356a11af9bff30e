package front

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/testkit"
)

// overHTTP2 sends one delivery over TLS and HTTP/2 and says what is wrong with its answer.
func overHTTP2(client *http.Client, front, path, body, key, decision string) error {
	r, err := http.NewRequest(http.MethodPost, "https://"+front+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Host = site
	r.Header.Set("Idempotency-Key", key)
	res, err := client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.ProtoMajor != 2 || res.StatusCode != 200 || string(text) != "done" ||
		res.Header.Get("Hooklock-Decision") != decision {
		return errors.Join(err, fmt.Errorf("%s %s, %v: %.300q, want %s", res.Proto, res.Status, res.Header, text,
			decision))
	}
	return nil
}

func TestOverTLSAndHTTP2EachDeliveryRunsOnceAndArrivesWhole(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		certificate := etcdtest.NewAuthority(t).Issue(site)
		s := newStage(t, p, func(s *setup) { s.certificate = &certificate })
		client := secureClient()
		defer client.CloseIdleConnections()
		large := strings.Repeat("0123456789abcdef", 5<<16) // 5 MiB
		var all sync.WaitGroup
		for i := range 6 { // side by side over one connection
			all.Go(func() {
				body := fmt.Sprintf("%d %s", i, large[:len(large)>>(3*i)])
				for _, decision := range []string{"executed", "replayed"} {
					if err := overHTTP2(client, s.front, fmt.Sprintf("/plain/%d", i), body, fmt.Sprint(i),
						decision); err != nil {
						t.Errorf("%d: %v", i, err)
					}
				}
				got := s.up.Received(fmt.Sprintf("/plain/%d", i))
				if len(got) != 1 || got[0].Body != body {
					t.Errorf("%d: %d requests reached the service, or another body did", i, len(got))
					return
				}
				if proto, host := got[0].Header["X-Forwarded-Proto"], got[0].Header.Get("Host"); len(proto) != 1 ||
					proto[0] != "https" || host != site {
					t.Errorf("%d: X-Forwarded-Proto %q, Host %q", i, proto, host)
				}
			})
		}
		all.Wait()
	})
}

// from sends one delivery from an address of this machine.
func from(t *testing.T, address, front, path string, lines ...string) *testkit.Answer {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	nc, err := dialer.Dial("tcp", front)
	if err != nil {
		t.Fatal(err)
	}
	c := testkit.NewConn(t, nc)
	c.Say(testkit.Request(path, "{}", lines...))
	return c.Answer("POST")
}

func TestBehindABalancerThatEndsTLSTheServiceLearnsWhatTheSenderCalled(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		s := newStage(t, p, func(s *setup) { s.balancer = "127.0.0.7" })
		for i, c := range []struct {
			from, says string
			want       string
		}{
			{"127.0.0.7", "https", "https"},
			{"127.0.0.7", "http", "http"},
			{"127.0.0.9", "https", "http"}, // anybody says that
		} {
			path := fmt.Sprintf("/plain/proto-%d", i)
			from(t, c.from, s.front, path, "Idempotency-Key: 1", "X-Forwarded-Proto: "+c.says)
			got := s.up.Received(path)
			if len(got) != 1 || strings.Join(got[0].Header["X-Forwarded-Proto"], ", ") != c.want {
				t.Errorf("%s says %s, and the service got %v; want %s", c.from, c.says, got, c.want)
			}
		}
	})
}

func TestALongAnswerComesThroughWhole(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		s := newStage(t, p)
		long := strings.Repeat("0123456789abcdef", 3<<18) // 12 MiB, more than limits.response_body
		piece := long[:1<<20]
		s.on("/plain/counted", func(*testkit.Received) string { return testkit.OK(long) })
		s.on("/plain/chunked", func(*testkit.Received) string {
			chunk := fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
			return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat(chunk, 12) + "0\r\n\r\n"
		})
		for _, path := range []string{"/plain/counted", "/plain/chunked"} {
			a := testkit.Post(t, s.front, path, "{}", "Idempotency-Key: 1")
			if a.Status != 200 || a.Cut != nil || !bytes.Equal(a.Body, []byte(long)) {
				t.Errorf("%s: status %d, %d bytes of %d, cut: %v", path, a.Status, len(a.Body), len(long), a.Cut)
			}
			if n := len(s.up.Received(path)); n != 1 {
				t.Errorf("%s: %d requests reached the service", path, n)
			}
		}
	})
}

func TestASlowAnswerDelaysNoOtherAndComesThrough(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		s := newStage(t, p)
		work := newHeld()
		s.on("/plain/slow", work.handle)
		slow := testkit.GoPost(t, s.front, "/plain/slow", "{}", "Idempotency-Key: 1")
		testkit.Receive(t, "the slow delivery", work.came)
		for i := range 20 {
			path := fmt.Sprintf("/plain/quick-%d", i)
			if a := testkit.Post(t, s.front, path, "{}", "Idempotency-Key: 1"); a.Status != 200 {
				t.Errorf("%s: %v", path, a)
			}
		}
		work.answer <- testkit.OK("at last")
		if a := testkit.Receive(t, "the slow answer", slow); a == nil || a.Status != 200 ||
			string(a.Body) != "at last" {
			t.Errorf("%v", a)
		}
		if n := len(s.up.Received("/plain/slow")); n != 1 {
			t.Errorf("it was sent %d times", n)
		}
	})
}

func TestADeliveryThatBreaksOnItsWayInIsNotExecuted(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		s := newStage(t, p)
		sender := testkit.Dial(t, s.front)
		sender.Say("POST /plain/broken HTTP/1.1\r\nHost: " + site +
			"\r\nIdempotency-Key: 1\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 50000))
		_ = sender.Close()
		body := strings.Repeat("y", 100000)
		a := testkit.Post(t, s.front, "/plain/broken", body, "Idempotency-Key: 1")
		if a.Status != 200 || a.Decision() != "executed" {
			t.Errorf("the whole one after it: %v", a)
		}
		if got := s.up.Received("/plain/broken"); len(got) != 1 || got[0].Body != body {
			t.Errorf("%d requests reached the service", len(got))
		}
	})
}

// The pages of those who spell a path anew say so: the day that this fails, change the page.
func TestAPathArrivesAsItWasSpelt(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		s := newStage(t, p)
		for sent, respelt := range map[string]string{
			"/plain/%e2%80%93": "/plain/%E2%80%93",
			"/plain/%7Eacme":   "/plain/~acme",
			"/plain/o'neil":    "/plain/o'neil",
			"/plain//double":   "/plain//double",
		} {
			want := sent
			if p.respells {
				want = respelt
			}
			testkit.Post(t, s.front, sent, "{}", "Idempotency-Key: 1")
			var got []string
			for _, r := range s.up.Requests() {
				_, rest, _ := strings.Cut(r, " ")
				target, _, _ := strings.Cut(rest, " ")
				got = append(got, target)
			}
			if !strings.HasPrefix(sent, "/plain//") && len(s.up.Received(want)) != 1 {
				t.Errorf("%s is to arrive as %s; there came %q", sent, want, got)
			}
		}
	})
}
