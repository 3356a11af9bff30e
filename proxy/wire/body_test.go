package wire

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// read sends raw, and then a FIN if it says so, to a door whose handler only reads the body.
func readThrough(t *testing.T, max int, raw string, fin bool) (body string, called bool, err error) {
	t.Helper()
	done := make(chan struct{})
	d := openDoor(t, ListenerOptions{}, func(ctx *fasthttp.RequestCtx) {
		var b []byte
		b, err = ReadBody(ctx, nil, max, nil)
		body, called = string(b), true
		if err != nil {
			refuse(ctx, 400)
		}
		close(done)
	})
	c, dialErr := net.Dial("tcp", d.Addr)
	if dialErr != nil {
		t.Fatal(dialErr)
	}
	defer c.Close()
	_, _ = io.WriteString(c, raw)
	if fin {
		_ = c.(*net.TCPConn).CloseWrite()
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	_, _ = http.ReadResponse(bufio.NewReader(c), nil)
	select {
	case <-done:
	default:
	}
	return body, called, err
}

func TestReadsABodyToItsTrueEndAndNoFurther(t *testing.T) {
	const chunks = start + "Transfer-Encoding: chunked\r\n\r\n"
	ten, long := "0123456789", strings.Repeat("0123456789", 2000)
	tests := []struct {
		name, raw string
		max       int
		fin       bool
		want      string
		err       error
	}{
		{"none", start + "\r\n", 10, false, "", nil},
		{"declared empty", start + "Content-Length: 0\r\n\r\n", 10, false, "", nil},
		{"exactly the limit", start + "Content-Length: 10\r\n\r\n" + ten, 10, false, ten, nil},
		{"one over the limit", start + "Content-Length: 11\r\n\r\n" + ten + "x", 10, false, "", ErrBodyTooLarge},
		{"long", start + "Content-Length: 20000\r\n\r\n" + long, 20000, false, long, nil},
		{"long, cut", start + "Content-Length: 20001\r\n\r\n" + long, 30000, true, long, ErrBodyTruncated},
		{"chunks", chunks + "5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n", 10, false, ten, nil},
		{"chunks, and the sender's end", chunks + "5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n", 10, true, ten, nil},
		{"chunks and trailers, and the sender's end", chunks + "a\r\n0123456789\r\n0\r\nX: 1\r\n\r\n", 10, true, ten,
			nil},
		{"chunks over the limit", chunks + "5\r\n01234\r\n6\r\n56789x\r\n0\r\n\r\n", 10, false, ten + "x",
			ErrBodyTooLarge},
		{"chunks cut between two", chunks + "5\r\n01234\r\n", 10, true, "01234", ErrBodyTruncated},
		{"chunks cut before the first", chunks, 10, true, "", ErrBodyTruncated},
		{"chunks cut in data", chunks + "5\r\n012", 10, true, "012", ErrBodyTruncated},
		{"chunks cut in the last size", chunks + "5\r\n01234\r\n0", 10, true, "01234", ErrBodyTruncated},
		{"chunks cut before the last CRLF", chunks + "5\r\n01234\r\n0\r\n", 10, true, "01234", ErrBodyTruncated},
		{"broken chunks", chunks + "5\r\n01234xx", 10, false, "01234", ErrBodyBroken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body, called, err := readThrough(t, tt.max, tt.raw, tt.fin)
			if !called || body != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("called %v, %d bytes, error %v; want %d, %v", called, len(body), err, len(tt.want), tt.err)
			}
		})
	}
}

func TestABodyThatDoesNotComeInTimeIsSlow(t *testing.T) {
	for _, framing := range []string{"Content-Length: 20000", "Transfer-Encoding: chunked"} {
		result := make(chan error, 1)
		d := openDoor(t, ListenerOptions{}, func(ctx *fasthttp.RequestCtx) {
			_ = ctx.Conn().SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			_, err := ReadBody(ctx, nil, 1<<20, nil)
			result <- err
			refuse(ctx, 408)
		})
		c, err := net.Dial("tcp", d.Addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, start+framing+"\r\n\r\n2000\r\n"+strings.Repeat("x", 8192)+"\r\n")
		if err := <-result; !errors.Is(err, ErrBodySlow) {
			t.Errorf("%s: error is %v", framing, err)
		}
		_ = c.Close()
	}
}

// TestADeclaredLengthIsNotAllocated: 64 senders declare 1 GiB each and send one byte more than
// fasthttp reads ahead.
func TestADeclaredLengthIsNotAllocated(t *testing.T) {
	const senders = 64
	var reading, stop sync.WaitGroup
	reading.Add(senders)
	stop.Add(1)
	ctxs := make(chan struct{}, senders)
	d := openDoor(t, ListenerOptions{}, func(ctx *fasthttp.RequestCtx) {
		body := BodyOf(ctx)
		var free *Account
		buf, _ := free.growBuffer(nil, body.Length, 2<<30)
		n := 0
		for n < 8193 {
			if len(buf) == cap(buf) {
				buf, _ = free.growBuffer(buf, body.Length, 2<<30)
			}
			m, err := body.Reader.Read(buf[len(buf):cap(buf)])
			if err != nil {
				t.Error(err)
				break
			}
			n += m
			buf = buf[:n]
		}
		reading.Done()
		stop.Wait()
		refuse(ctx, 400)
		runtime.KeepAlive(buf)
		ctxs <- struct{}{}
	})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	payload := start + "Content-Length: 1073741824\r\n\r\n" + strings.Repeat("x", 8193)
	conns := make([]net.Conn, senders)
	for i := range conns {
		c, err := net.Dial("tcp", d.Addr)
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = c
		_, _ = io.WriteString(c, payload)
	}
	reading.Wait()
	runtime.ReadMemStats(&after)
	stop.Done()
	for range conns {
		<-ctxs
	}
	for _, c := range conns {
		_ = c.Close()
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("heap grew by %d MiB", grown>>20)
	}
}

// TestADeclaredAnswerIsNotAllocated: an upstream may lie as well.
func TestADeclaredAnswerIsNotAllocated(t *testing.T) {
	up := once(t, "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\nx")
	u := pool(t, up, func(o *Options) { o.MaxResponseBody = 2 << 30 })
	var ans Answer
	err := u.Send(new(Call), []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), nil, true, &ans)
	if !errors.Is(err, io.ErrUnexpectedEOF) || cap(ans.Body) > 64<<10 {
		t.Errorf("%v, %d bytes allocated", err, cap(ans.Body))
	}
}
