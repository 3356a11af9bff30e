package wire

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"hooklock/proxy/wiretest"
)

// passDoor opens a door that passes everything on, and reports its errors.
func passDoor(t *testing.T, up *wiretest.Upstream, tunnels *Tunnels) (*door, *Upstream, chan error) {
	t.Helper()
	u := pool(t, up)
	failed := make(chan error, 8)
	return openDoor(t, ListenerOptions{}, passing(u, tunnels, func(err error) { failed <- err })), u, failed
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestPassesRequestsOnWithTheirFraming(t *testing.T) {
	for _, raw := range []string{
		"GET /x HTTP/1.1\r\nhost: a\r\n\r\n",
		"POST /x HTTP/1.1\r\nHost: a\r\ncontent-length: 3\r\n\r\nabc",
		"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
		"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 40000\r\n\r\n" + strings.Repeat("x", 40000),
		"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nX: 1\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		up := wiretest.Script(t, okAnswer)
		d, _, _ := passDoor(t, up, nil)
		if status, _ := knock(t, d.Addr, raw); status != 200 {
			t.Errorf("status %d", status)
		}
		if got := up.Await(t, 1); got != raw {
			t.Errorf("upstream got %.200q, want %.200q", got, raw)
		}
	}
}

func TestAStreamedRequestKeepsTheSendersConnection(t *testing.T) {
	up := wiretest.Script(t, okAnswer)
	d, _, _ := passDoor(t, up, nil)
	c := dial(t, d.Addr)
	br := bufio.NewReader(c)
	for i := range 4 {
		body := strings.Repeat("x", i*20000)
		if i == 3 {
			_, _ = io.WriteString(c,
				"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
		} else {
			_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"+body)
		}
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		if resp.Close {
			t.Errorf("request %d closes the connection", i)
		}
	}
}

// TestStreamsBothWaysAtOnce: an echo of 64 MiB. The sender holds back its last byte until the first
// one is back.
func TestStreamsBothWaysAtOnce(t *testing.T) {
	const size = 64 << 20
	for _, framing := range []string{"Content-Length: " + itoa(size), "Transfer-Encoding: chunked"} {
		t.Run(framing[:7], func(t *testing.T) {
			up := wiretest.Serve(t, func(c *wiretest.Conn) {
				_, _ = c.ReadHead()
				_ = c.Say("HTTP/1.1 200 OK\r\n\r\n") // the raw bytes of the body, to the end
				echo(c, strings.HasPrefix(framing, "T"), size)
				_ = c.Finish()
			})
			d, _, _ := passDoor(t, up, nil)
			c := dial(t, d.Addr)
			var peak uint64
			sum := sha256.New()
			wrote := make(chan struct{})
			firstBack := make(chan struct{})
			go func() {
				defer close(wrote)
				writeBody(c, framing, size, sum, firstBack)
			}()
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			back, n := sha256.New(), 0
			buf := make([]byte, 64<<10)
			for {
				m, err := resp.Body.Read(buf)
				if m > 0 && n == 0 {
					close(firstBack)
				}
				back.Write(buf[:m])
				if n/(8<<20) != (n+m)/(8<<20) {
					var ms runtime.MemStats
					runtime.GC() // what is held counts, and not how late the collector is on a busy machine
					runtime.ReadMemStats(&ms)
					peak = max(peak, ms.HeapAlloc)
				}
				n += m
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatalf("after %d bytes: %v", n, err)
				}
			}
			<-wrote
			if n != size || string(back.Sum(nil)) != string(sum.Sum(nil)) {
				t.Errorf("%d bytes came back, or others than were sent", n)
			}
			if peak > 32<<20 {
				t.Errorf("heap grew to %d MiB", peak>>20)
			}
		})
	}
}

// echo sends a body back, without its chunk framing.
func echo(c *wiretest.Conn, chunked bool, size int) {
	if !chunked {
		_, _ = io.CopyN(c, c, int64(size))
		return
	}
	req, err := http.ReadRequest(bufio.NewReader(
		io.MultiReader(strings.NewReader("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"), c)))
	if err == nil {
		_, _ = io.Copy(c, req.Body)
	}
}

func writeBody(c net.Conn, framing string, size int, sum io.Writer, beforeLast <-chan struct{}) {
	w := bufio.NewWriterSize(c, 64<<10)
	fmt.Fprintf(w, "POST /echo HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n", framing)
	piece := make([]byte, 32<<10)
	for sent := 0; sent < size; sent += len(piece) {
		for i := range piece {
			piece[i] = byte(sent>>10 + i)
		}
		_, _ = sum.Write(piece)
		if sent+len(piece) == size {
			_ = w.Flush()
			<-beforeLast
		}
		if framing[0] == 'T' {
			fmt.Fprintf(w, "%x\r\n", len(piece))
		}
		_, _ = w.Write(piece)
		if framing[0] == 'T' {
			_, _ = w.WriteString("\r\n")
		}
	}
	if framing[0] == 'T' {
		_, _ = w.WriteString("0\r\n\r\n")
	}
	_ = w.Flush()
}

// TestASenderThatHangsUpNeverLooksWhole: whatever the framing, the upstream sees a request that is
// cut.
func TestASenderThatHangsUpNeverLooksWhole(t *testing.T) {
	gathered := "4e20\r\n" + strings.Repeat("x", 0x4e20) + "\r\n" // what the upstream does not see before it is there
	for _, raw := range []string{
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 50000),
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + gathered + "3\r\nabc\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + gathered + "5\r\nabc",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + gathered + "3\r\nabc\r\n0\r\n",
	} {
		for _, reset := range []bool{false, true} {
			result := make(chan error, 1)
			headRead := make(chan struct{})
			up := wiretest.Serve(t, func(c *wiretest.Conn) {
				// The head goes out before the body is looked at, so the upstream sees the
				// beginning of a request.
				first := make([]byte, 1)
				_, _ = c.Read(first)
				close(headRead)
				_, err := c.ReadRequest()
				result <- err
			})
			d, u, failed := passDoor(t, up, nil)
			c := dial(t, d.Addr)
			_, _ = io.WriteString(c, raw)
			<-headRead
			if reset {
				_ = c.(*net.TCPConn).SetLinger(0)
				_ = c.Close()
			} else {
				_ = c.(*net.TCPConn).CloseWrite()
			}
			if err := <-result; err == nil {
				t.Errorf("%.80q: the upstream got a whole request", raw)
			}
			err := <-failed
			var serr *SendError
			if !errors.As(err, &serr) || !errors.Is(err, ErrBodyTruncated) && !errors.Is(err, ErrBodyBroken) ||
				!serr.Sent() {
				t.Errorf("error is %v", err)
			}
			if u.idleNow() != 0 {
				t.Error("the connection was pooled")
			}
		}
	}
}

func TestAnAnswerMayComeBeforeTheBodyWasSent(t *testing.T) {
	tests := []struct {
		name, answer string
		end          func(c *wiretest.Conn)
	}{
		{"and close", "HTTP/1.1 413 No\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno", func(c *wiretest.Conn) {
			_ = c.Finish()
		}},
		{"and stay", "HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno", func(c *wiretest.Conn) {}},
		{"without a body", "HTTP/1.1 204 No\r\n\r\n", func(c *wiretest.Conn) {}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			up := wiretest.Serve(t, func(c *wiretest.Conn) {
				_, _ = c.ReadHead()
				_ = c.Say(tt.answer)
				tt.end(c)
				_, _ = io.Copy(io.Discard, c)
			})
			d, u, _ := passDoor(t, up, nil)
			c := dial(t, d.Addr)
			_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"+
				strings.Repeat("x", 20000))
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, resp.Body)
			if err != nil || !resp.Close || resp.StatusCode/100 == 5 {
				t.Errorf("status %d, close %v, %v", resp.StatusCode, resp.Close, err)
			}
			if u.idleNow() != 0 {
				t.Error("the connection was pooled in the middle of a request")
			}
		})
	}
}

func TestAStreamThatGetsNoAnswerSaysHowFarItCame(t *testing.T) {
	up := wiretest.Serve(t, func(c *wiretest.Conn) { _, _ = c.ReadHead() })
	d, _, failed := passDoor(t, up, nil)
	c := dial(t, d.Addr)
	_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nabc"+
		strings.Repeat("x", 20000))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != 502 || !resp.Close {
		t.Errorf("%v, %v", resp, err)
	}
	wantSent(t, <-failed, HeadWritten)
}

// TestACutAnswerCutsTheSender: the sender must not take what it got for the whole.
func TestACutAnswerCutsTheSender(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
	} {
		d, _, _ := passDoor(t, once(t, answer), nil)
		c := dial(t, d.Addr)
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: the sender's end is %v", answer, err)
		}
	}
}

func TestCloseEndsAStreamInTheMiddle(t *testing.T) {
	ended := make(chan struct{})
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		defer close(ended)
		_, _ = c.ReadHead()
		_ = c.Say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
		_, _ = io.Copy(io.Discard, c)
	})
	u := pool(t, up)
	r, w := io.Pipe()
	defer w.Close()
	body := &RequestBody{Reader: r, Length: -1, Interrupt: func() { _ = r.CloseWithError(errors.New("interrupted")) }}
	go func() { _, _ = w.Write(make([]byte, 20000)) }()
	var ans Answer
	if err := u.Stream(soon(t), []byte("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"), body, false,
		&ans); err != nil {
		t.Fatal(err)
	}
	if !ans.RequestPending || ans.Length != 100 {
		t.Errorf("answer is %+v", ans)
	}
	buf := make([]byte, 3)
	_, _ = io.ReadFull(ans.Rest, buf)
	waiting := make(chan error)
	go func() {
		_, err := ans.Rest.Read(make([]byte, 1))
		waiting <- err
	}()
	_ = ans.Rest.Close() // wakes the reader, and waits for the one of the body
	if err := <-waiting; err == nil || err == io.EOF {
		t.Errorf("the read ends with %v", err)
	}
	<-ended
	if u.idleNow() != 0 {
		t.Error("the connection was pooled")
	}
}

// TestAContextEndsAStreamThatWaitsForTheSender: at any point, and the sender's connection is
// interrupted.
func TestAContextEndsAStreamThatWaitsForTheSender(t *testing.T) {
	for _, length := range []int64{100, 100000, -1} {
		up := wiretest.Serve(t, func(c *wiretest.Conn) { _, _ = io.Copy(io.Discard, c) })
		u := pool(t, up)
		r, w := io.Pipe()
		body := &RequestBody{Reader: r, Length: length, Interrupt: func() {
			_ = r.CloseWithError(errors.New("interrupted"))
		}}
		why := errors.New("shutdown")
		ctx, cancel := context.WithCancelCause(context.Background())
		begun := 20000
		if length == 100 {
			begun = 3
		}
		go func() {
			_, _ = w.Write(make([]byte, begun)) // returns when it was read
			cancel(why)
		}()
		var ans Answer
		err := u.Stream(following(ctx, t), []byte("POST / HTTP/1.1\r\nHost: a\r\n\r\n"), body, false, &ans)
		var serr *SendError
		if !errors.As(err, &serr) || !errors.Is(err, why) || serr.Timeout || !ans.RequestPending ||
			serr.Sent() != (length != 100) {
			t.Errorf("%d: %v, %+v", length, err, ans)
		}
		_ = w.Close()
	}
}

// TestACallLetsGoOfABodyThatFoundNoRoom: it may be another request's by the time that it is
// cancelled.
func TestACallLetsGoOfABodyThatFoundNoRoom(t *testing.T) {
	u := pool(t, wiretest.Script(t, okAnswer))
	budget := NewBudget(1 << 20)
	account := budget.Open()
	ans, x, interrupted := &Answer{Memory: &account}, &Call{}, false
	for _, want := range []error{nil, ErrMemory} {
		x.Begin(time.Now(), time.Minute)
		body := &RequestBody{Reader: strings.NewReader("abc"), Length: 3, Interrupt: func() { interrupted = true }}
		err := u.Stream(x, []byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n"), body, false, ans)
		if !errors.Is(err, want) {
			t.Fatalf("%v, want %v", err, want)
		}
		x.End()
		account.Close()
		budget.SetLimit(1)
	}
	x.Begin(time.Now(), time.Minute)
	x.Cancel(errors.New("enough"))
	x.End()
	if interrupted {
		t.Error("the cancel of a call spoiled the connection of a sender that it has nothing to do with")
	}
}
