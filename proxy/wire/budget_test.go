package wire

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"hooklock/proxy/wiretest"
)

func TestABudgetRefusesWhatHasNoRoomAndLeavesAQuarterToSmallBodies(t *testing.T) {
	b := NewBudget(1 << 20)
	large, small := b.Open(), b.Open()
	if !large.Take(768<<10) || large.Take(1) {
		t.Fatalf("a large account got %d of 1 MiB", large.held)
	}
	if !small.Take(64<<10) || small.Take(1) {
		t.Fatalf("a small account got %d beside it", small.held)
	}
	if b.Refused() != 2 || b.Used() != 832<<10 {
		t.Errorf("%d refused, %d used", b.Refused(), b.Used())
	}
	large.Close()
	large.Close()
	small.Close()
	if used, peak, then := b.Used(), b.Peak(), b.Peak(); used != 0 || peak < 832<<10 || then != 0 {
		t.Errorf("%d used, peak %d and then %d", used, peak, then)
	}
}

func TestAnAccountIsRightWhateverHappensAtTheSameTime(t *testing.T) {
	b := NewBudget(1 << 20)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 1000 {
				a := b.Open()
				if a.Take(50 << 10) {
					a.Hold(10)
					a.Give(5)
				}
				a.Close()
			}
		})
	}
	all.Wait()
	if b.Used() != 0 {
		t.Errorf("%d bytes are left", b.Used())
	}
}

func TestABodyThatFindsNoRoomIsRefusedBeforeItIsRead(t *testing.T) {
	b := NewBudget(64 << 10)
	for _, framing := range []string{"Content-Length: 1000000", "Transfer-Encoding: chunked"} {
		result := make(chan error, 1)
		d := openDoor(t, ListenerOptions{}, func(ctx *fasthttp.RequestCtx) {
			a := b.Open()
			body, err := ReadBody(ctx, nil, 1<<20, &a)
			if a.held < int64(cap(body)) || b.Used() > b.Limit() {
				t.Errorf("%d bytes are held, %d accounted for, %d used", cap(body), a.held, b.Used())
			}
			a.Close() // before anybody hears of it, who then asks what is left
			result <- err
			refuse(ctx, 503)
		})
		c, err := net.Dial("tcp", d.Addr)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = io.WriteString(c, start+framing+"\r\n\r\nf4240\r\n"+strings.Repeat("x", 1000000))
		}()
		if err := <-result; !errors.Is(err, ErrMemory) {
			t.Errorf("%s: error is %v", framing, err)
		}
		_ = c.Close()
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are left", b.Used())
	}
}

func TestAnAnswerThatFindsNoRoomIsPassedOnAsItComes(t *testing.T) {
	text := strings.Repeat("y", 100_000)
	u := pool(t, once(t, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"+text))
	b := NewBudget(40 << 10)
	a := b.Open()
	ans := Answer{Memory: &a}
	if err := u.Send(soon(t), []byte(postHead), []byte("body"), true, &ans); err != nil {
		t.Fatal(err)
	}
	if ans.Whole || ans.Rest == nil || b.Used() > b.Limit() {
		t.Fatalf("whole %v, %d of %d used", ans.Whole, b.Used(), b.Limit())
	}
	rest, err := io.ReadAll(ans.Rest)
	if err != nil || string(ans.Body)+string(rest) != text {
		t.Errorf("%d and %d bytes came, %v", len(ans.Body), len(rest), err)
	}
}

// TestABodyIsGatheredBeforeAConnectionIsTaken: whoever drips holds none.
func TestABodyIsGatheredBeforeAConnectionIsTaken(t *testing.T) {
	for _, length := range []int64{3000, -1} {
		up := wiretest.Serve(t, func(c *wiretest.Conn) {
			for {
				if _, err := c.ReadRequest(); err != nil {
					return
				}
				_ = c.Say("HTTP/1.1 204 No Content\r\n\r\n")
			}
		})
		u := NewUpstream(Options{Addr: up.Addr, MaxIdle: 8, RequestBuffer: 4000})
		defer u.Close()
		var taken atomic.Int64
		u.beforeWrite = func(bool) { taken.Add(1) }
		r, w := io.Pipe()
		b := NewBudget(1 << 20)
		a := b.Open()
		ans, ended := Answer{Memory: &a}, make(chan error, 1)
		head := "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000\r\n\r\n"
		if length < 0 {
			head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
		}
		go func() {
			ended <- u.Stream(new(Call), []byte(head), &RequestBody{Reader: r, Length: length}, false, &ans)
		}()
		for range 3 {
			_, _ = w.Write([]byte(strings.Repeat("z", 1000))) // returns when it was read
			if n := taken.Load(); n != 0 && length < 0 {
				t.Errorf("%d connections before the body was there", n)
			}
		}
		_ = w.Close()
		if err := <-ended; err != nil || ans.Status != 204 || ans.RequestPending {
			t.Errorf("%v, %+v", err, ans)
		}
		if got := up.Requests(); len(got) != 1 || strings.Count(got[0], "z") != 3000 {
			t.Errorf("the upstream got %.200q", got)
		}
		a.Close()
		if b.Used() != 0 {
			t.Errorf("%d bytes are left", b.Used())
		}
	}
}

func TestAPaceCountsOnlyTheTimeThatWasWaited(t *testing.T) {
	p := Pace{Bytes: 100, Time: 10 * time.Second}.Begin()
	now := time.Unix(1000, 0)
	p.Count(60, 4*time.Second)
	if left := p.Deadline(now).Sub(now); left != 6*time.Second {
		t.Errorf("after 60 bytes in 4 s, %s are left", left)
	}
	p.Count(40, time.Second)
	if left := p.Deadline(now).Sub(now); left != 10*time.Second {
		t.Errorf("after 100 bytes, %s are left", left)
	}
}

// TestASenderThatDoesNotReadIsCut: however small the pieces are that it could have taken.
func TestASenderThatDoesNotReadIsCut(t *testing.T) {
	closed := make(chan struct{})
	d := openDoor(t, ListenerOptions{WritePace: Pace{Bytes: 64 << 10, Time: 50 * time.Millisecond}},
		func(ctx *fasthttp.RequestCtx) {
			ctx.SetBodyStream(&endless{closed: closed}, -1)
		})
	c, err := net.Dial("tcp", d.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-closed
}

// endless is an answer without an end.
type endless struct{ closed chan struct{} }

func (e *endless) Read(p []byte) (int, error) { return len(p), nil }

func (e *endless) Close() error {
	close(e.closed)
	return nil
}
