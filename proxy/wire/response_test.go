package wire

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"hooklock/proxy/wiretest"
)

// once starts an upstream that answers each connection's first request with exactly these bytes and
// ends.
func once(t testing.TB, answer string) *wiretest.Upstream {
	t.Helper()
	return wiretest.Serve(t, func(c *wiretest.Conn) {
		if _, err := c.ReadRequest(); err != nil {
			return
		}
		_ = c.Say(answer)
	})
}

func TestReadsEveryFramingOfAnAnswer(t *testing.T) {
	tests := []struct {
		name, method, answer string
		status               int
		body                 string
		pooled               bool // not where the connection ends with the answer
	}{
		{"length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, "abc", true},
		{"length given twice", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 200,
			"abc", true},
		{"empty", "GET", "HTTP/1.1 500 \r\nContent-Length: 0\r\n\r\n", 500, "", true},
		{"no reason and no space", "GET", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200, "", true},
		{"chunks", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nab\r\n1  \r\nc\r\n0\r\n\r\n", 200,
			"abc", true},
		{"chunks with extension and trailers", "GET",
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=\"y\"\r\nabc\r\n00\r\nX: 1\r\nY: 2\r\n\r\n", 200,
			"abc", true},
		{"to the end", "GET", "HTTP/1.1 200 OK\r\n\r\nabc", 200, "abc", false},
		{"HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, "abc", false},
		{"close", "GET", "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 3\r\n\r\nabc", 200, "abc", false},
		{"HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", 200, "", true},
		{"HEAD with chunks", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200, "", true},
		{"204", "GET", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", true},
		{"304", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", 304, "", true},
		{"interim answers", "GET",
			"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, "abc", true},
		{"bytes behind the answer", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd", 200, "abc", false},
		{"bytes behind 204", "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 1\r\n\r\nx", 204, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			up := wiretest.Serve(t, func(c *wiretest.Conn) {
				if _, err := c.ReadRequest(); err != nil {
					return
				}
				_ = c.Say(tt.answer)
				if tt.pooled {
					_, _ = c.ReadRequest()
				}
			})
			u := pool(t, up)
			var ans Answer
			if err := u.Send(soon(t), []byte(tt.method+" / HTTP/1.1\r\nHost: a\r\n\r\n"), nil, true, &ans); err != nil {
				t.Fatal(err)
			}
			if ans.Status != tt.status || string(ans.Body) != tt.body || !ans.Whole || ans.Evidence != AnswerWhole ||
				ans.Rest != nil {
				t.Errorf("answer is %+v", ans)
			}
			if idle := u.idleNow(); idle != 0 != tt.pooled {
				t.Errorf("%d idle connections", idle)
			}
		})
	}
}

func TestWhatOneConnectionReadIsNothingToTheNext(t *testing.T) {
	answers := []string{"first", "other", "third"}
	var conns atomic.Int32
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		own := answers[conns.Add(1)-1]
		if _, err := c.ReadRequest(); err != nil {
			return
		}
		_ = c.Say("HTTP/1.1 200 OK\r\nX-Name: " + own + "\r\nContent-Length: 5\r\n\r\n" + own +
			"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
		_, _ = c.ReadRequest()
	})
	u := pool(t, up)
	got := make([]Answer, len(answers))
	for i := range got {
		if err := u.Send(soon(t), []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), nil, true, &got[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i, own := range answers {
		if a := got[i]; a.Status != 200 || string(a.Body) != own || string(a.Get("x-name")) != own {
			t.Errorf("answer %d is %d, %q, named %q", i, a.Status, a.Body, a.Get("x-name"))
		}
	}
}

func TestNeverTakesACutOrBrokenAnswerForAWholeOne(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	tests := []struct {
		name, answer string
		want         error // nil: any
	}{
		{"nothing", "", io.EOF},
		{"cut in the status line", "HTTP/1.1 20", io.ErrUnexpectedEOF},
		{"cut in the header", ok + "X: 1\r\n", io.ErrUnexpectedEOF},
		{"cut before the body", ok + "Content-Length: 3\r\n\r\n", io.ErrUnexpectedEOF},
		{"cut in the body", ok + "Content-Length: 3\r\n\r\nab", io.ErrUnexpectedEOF},
		{"cut before a chunk", ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", io.ErrUnexpectedEOF},
		{"cut in a chunk", ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nab", io.ErrUnexpectedEOF},
		{"cut behind a chunk", ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc", io.ErrUnexpectedEOF},
		{"cut before the last CRLF", ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n", io.ErrUnexpectedEOF},
		{"cut in the trailers", ok + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: 1\r\n", io.ErrUnexpectedEOF},
		{"garbage", "SSH-2.0-OpenSSH\r\n\r\n", ErrStatusLine},
		{"blank line first", "\r\n" + ok + "Content-Length: 0\r\n\r\n", ErrStatusLine},
		{"HTTP/2", "HTTP/2.0 200 OK\r\n\r\n", ErrStatusLine},
		{"lower case", "http/1.1 200 OK\r\n\r\n", ErrStatusLine},
		{"status of two digits", "HTTP/1.1 20 OK\r\n\r\n", ErrStatusLine},
		{"status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", ErrStatusLine},
		{"status 099", "HTTP/1.1 099 OK\r\n\r\n", ErrStatusLine},
		{"status with a sign", "HTTP/1.1 +20 OK\r\n\r\n", ErrStatusLine},
		{"NUL in the reason", "HTTP/1.1 200 O\x00K\r\n\r\n", ErrStatusLine},
		{"bare LF", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", ErrAnswerLine},
		{"bare LF in the header", ok + "X: 1\nContent-Length: 0\r\n\r\n", ErrAnswerLine},
		{"folded line", ok + "X: 1\r\n 2\r\nContent-Length: 0\r\n\r\n", ErrAnswerLine},
		{"space before the colon", ok + "Content-Length : 0\r\n\r\n", ErrAnswerLine},
		{"NUL in a value", ok + "X: \x00\r\nContent-Length: 0\r\n\r\n", ErrAnswerLine},
		{"CR in a value", ok + "X: a\rb\r\nContent-Length: 0\r\n\r\n", ErrAnswerLine},
		{"no colon", ok + "X\r\nContent-Length: 0\r\n\r\n", ErrAnswerLine},
		{"header too large", ok + "X: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", ErrAnswerHead},
		{"length and chunks", ok + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc", ErrAnswerFraming},
		{"chunks and length", ok + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc", ErrAnswerFraming},
		{"two lengths", ok + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", ErrAnswerFraming},
		{"length over int64", ok + "Content-Length: 9223372036854775808\r\n\r\nabc", ErrAnswerFraming},
		{"length with a sign", ok + "Content-Length: +3\r\n\r\nabc", ErrAnswerFraming},
		{"unknown encoding", ok + "Transfer-Encoding: gzip, chunked\r\n\r\nabc", ErrAnswerFraming},
		{"encoding given twice", ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			ErrAnswerFraming},
		{"chunks over HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ErrAnswerFraming},
		{"chunk size with prefix", ok + "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n", ErrAnswerChunk},
		{"empty chunk size", ok + "Transfer-Encoding: chunked\r\n\r\n\r\n", ErrAnswerChunk},
		{"chunk size over int64", ok + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc", ErrAnswerChunk},
		{"endless chunk size", ok + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("0", 20<<10), ErrAnswerChunk},
		{"bare LF behind a chunk size", ok + "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", ErrAnswerChunk},
		{"no CRLF behind a chunk", ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", ErrAnswerChunk},
		{"malformed trailer", ok + "Transfer-Encoding: chunked\r\n\r\n0\r\nX Y: 1\r\n\r\n", ErrAnswerChunk},
		{"endless trailers", ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n" +
			strings.Repeat("X: 1234567890\r\n", 6000) + "\r\n", ErrAnswerChunk},
		{"endless interim answers", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 200), ErrInterim},
		{"101", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", ErrSwitched},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			up := once(t, tt.answer)
			u := pool(t, up)
			var ans Answer
			err := u.Send(soon(t), []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), nil, true, &ans)
			want := AnswerBegun
			if tt.answer == "" {
				want = BodyWritten
			}
			serr := wantSent(t, err, want)
			if !errors.Is(err, tt.want) || serr.Timeout || !serr.Sent() || ans.Evidence != want || ans.Whole {
				t.Errorf("error is %v, want %v; answer %+v", err, tt.want, ans)
			}
			if up.Conns() != 1 || u.idleNow() != 0 {
				t.Errorf("%d connections, %d idle", up.Conns(), u.idleNow())
			}
		})
	}
}

func TestAResetInTheBodyIsACut(t *testing.T) {
	for _, head := range []string{"", "Content-Length: 9\r\n", "Transfer-Encoding: chunked\r\n"} {
		begun := make(chan struct{})
		up := wiretest.Serve(t, func(c *wiretest.Conn) {
			_, _ = c.ReadHead()
			_ = c.Say("HTTP/1.1 200 OK\r\n" + head + "\r\n3\r\nab")
			<-begun
			_ = c.Reset()
		})
		u := pool(t, up, func(o *Options) { o.MaxResponseBody = 1 })
		var ans Answer
		if err := u.Send(soon(t), []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), nil, true, &ans); err != nil {
			t.Fatal(err)
		}
		close(begun)
		_, err := io.Copy(io.Discard, ans.Rest)
		wantSent(t, err, AnswerBegun)
		_ = ans.Rest.Close()
	}
}

// TestATLSEndWithoutCloseNotifyIsACut: an attacker on the way can forge a FIN, but not a
// close_notify.
func TestATLSEndWithoutCloseNotifyIsACut(t *testing.T) {
	for _, honest := range []bool{true, false} {
		up := wiretest.ServeTLS(t, func(c *wiretest.Conn) {
			_, _ = c.ReadHead()
			_ = c.Say("HTTP/1.1 200 OK\r\n\r\nabc")
			if honest {
				_ = c.Finish()
			} else {
				_ = c.Cut()
			}
		})
		u := pool(t, up)
		var ans Answer
		err := u.Send(soon(t), []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), nil, true, &ans)
		if honest && (err != nil || string(ans.Body) != "abc" || !ans.Whole) {
			t.Errorf("honest end: %v, %+v", err, ans)
		}
		if !honest && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut: error is %v, answer %+v", err, ans)
		}
	}
}

func TestNeverReusesAConnectionThatTalksOutOfTurn(t *testing.T) {
	for _, secure := range []bool{false, true} {
		said := make(chan struct{}, 4)
		talk := make(chan struct{}, 4)
		serve := func(c *wiretest.Conn) {
			for {
				if _, err := c.ReadRequest(); err != nil {
					return
				}
				_ = c.Say(okAnswer)
				if c.Number == 1 {
					<-talk
					_ = c.Say("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL")
					said <- struct{}{}
				}
			}
		}
		up := wiretest.Serve(t, serve)
		if secure {
			up = wiretest.ServeTLS(t, serve)
		}
		u := pool(t, up)
		var ans Answer
		if err := post(t, u, &ans); err != nil {
			t.Fatal(err)
		}
		talk <- struct{}{}
		<-said
		awaitFIN(t, u)
		if err := post(t, u, &ans); err != nil || string(ans.Body) != "ok" {
			t.Fatalf("body is %q, %v", ans.Body, err)
		}
		if up.Conns() != 2 {
			t.Errorf("%d connections", up.Conns())
		}
	}
}

// TestFindsUnaskedBytesThatTLSHasAlreadyRead: they came in the same record as the end of the
// answer.
func TestFindsUnaskedBytesThatTLSHasAlreadyRead(t *testing.T) {
	big := strings.Repeat("x", readBuffer)
	up := wiretest.ServeTLS(t, func(c *wiretest.Conn) {
		for {
			if _, err := c.ReadRequest(); err != nil {
				return
			}
			_ = c.Say("HTTP/1.1 200 OK\r\nContent-Length: " + itoa(len(big)) + "\r\n\r\n")
			_ = c.Say(big + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL")
		}
	})
	u := pool(t, up)
	var ans Answer
	for range 3 {
		if err := post(t, u, &ans); err != nil || string(ans.Body) != big {
			t.Fatalf("body has %d bytes, %v", len(ans.Body), err)
		}
	}
	if up.Conns() != 3 {
		t.Errorf("%d connections", up.Conns())
	}
}

func TestHandsOverWhatIsLongerThanTheLimit(t *testing.T) {
	body := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	tests := []struct{ name, answer string }{
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: " + itoa(len(body)) + "\r\n\r\n" + body},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n80000\r\n" + body[:1<<19] + "\r\n80000\r\n" +
			body[1<<19:] + "\r\n0\r\n\r\n"},
		{"to the end", "HTTP/1.1 200 OK\r\n\r\n" + body},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			up := once(t, tt.answer)
			u := pool(t, up, func(o *Options) { o.MaxResponseBody = 1000 })
			var ans Answer
			if err := post(t, u, &ans); err != nil {
				t.Fatal(err)
			}
			if ans.Whole || ans.Rest == nil || ans.Evidence != AnswerBegun || len(ans.Body) > 1001 ||
				cap(ans.Body) > 4<<10 {
				t.Fatalf("answer has %d bytes, whole %v, %v", len(ans.Body), ans.Whole, ans.Evidence)
			}
			rest, err := io.ReadAll(ans.Rest)
			if err != nil || string(ans.Body)+string(rest) != body {
				t.Errorf("%d and %d bytes, %v", len(ans.Body), len(rest), err)
			}
			if ans.Rest.evidence() != AnswerWhole || ans.Rest.Close() != nil {
				t.Errorf("evidence is %v", ans.Rest.evidence())
			}
		})
	}
}

func TestABodyOfExactlyTheLimitIsWhole(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\nabcde",
	} {
		u := pool(t, once(t, answer), func(o *Options) { o.MaxResponseBody = 5 })
		var ans Answer
		if err := post(t, u, &ans); err != nil || !ans.Whole || string(ans.Body) != "abcde" {
			t.Errorf("%q: %v, %+v", answer, err, ans)
		}
	}
}

func TestARestThatIsCutOrLeftIsNotWhole(t *testing.T) {
	answer := "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 50000)
	u := pool(t, once(t, answer), func(o *Options) { o.MaxResponseBody = 10 })
	var ans Answer
	if err := post(t, u, &ans); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(ans.Rest)
	wantSent(t, err, AnswerBegun)
	if len(rest) != 50000 || !errors.Is(err, io.ErrUnexpectedEOF) || ans.Rest.Close() != nil {
		t.Errorf("%d bytes, %v", len(rest), err)
	}
	if _, again := ans.Rest.Read(make([]byte, 1)); again != err {
		t.Errorf("the error is not kept: %v", again)
	}
	left := new(Answer)
	if err := post(t, u, left); err != nil {
		t.Fatal(err)
	}
	_, _ = left.Rest.Read(make([]byte, 10))
	for range 2 {
		if err := left.Rest.Close(); err != nil || left.Rest.evidence() != AnswerBegun {
			t.Errorf("evidence is %v, %v", left.Rest.evidence(), err)
		}
	}
	if n, err := left.Rest.Read(make([]byte, 1)); n != 0 || err == nil || err == io.EOF {
		t.Errorf("read %d, %v after Close", n, err)
	}
	if u.idleNow() != 0 {
		t.Errorf("a connection in the middle of an answer was pooled")
	}
}

func TestFiltersWhatBelongsToTheUpstreamsConnection(t *testing.T) {
	up := once(t,
		"HTTP/1.1 200 OK\r\nServer: x\r\nConnection: X-Gone, keep-alive\r\nx-gone: 1\r\nKeep-Alive: 5\r\nProxy-Authenticate: x\r\n"+
			"Upgrade: h2\r\nTrailer: X\r\nContent-Length: 0\r\nSet-Cookie: a\r\nset-cookie: b\r\n\r\n")
	var ans Answer
	if err := post(t, pool(t, up), &ans); err != nil {
		t.Fatal(err)
	}
	if got := fieldsText(ans.EndToEnd(nil)); got != "Server=x|Set-Cookie=a|set-cookie=b" ||
		string(ans.Get("x-gone")) != "1" {
		t.Errorf("fields are %s", got)
	}
}

// TestFindsTheBeginningOfARecordThatTLSHasAlreadyRead: nobody asked for what will be in it, and the
// rest of it may come with the next request.
func TestFindsTheBeginningOfARecordThatTLSHasAlreadyRead(t *testing.T) {
	server, client := wiretest.Certify(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer l.Close()
	serving.Go(func() {
		for first := true; ; first = false {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer raw.Close()
				var sent bytes.Buffer
				h := &holder{Conn: raw}
				c := tls.Server(h, server)
				br := bufio.NewReader(c)
				_, _ = http.ReadRequest(br)
				h.held = &sent
				_, _ = io.WriteString(c, okAnswer)
				if first {
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray")
					_, _ = raw.Write(sent.Next(sent.Len() - 10))
					_, _ = http.ReadRequest(br)
				}
				_, _ = raw.Write(sent.Bytes())
				_, _ = io.Copy(io.Discard, raw)
			})
		}
	})
	u := NewUpstream(Options{Addr: l.Addr().String(), TLS: client, MaxIdle: 1})
	defer u.Close()
	for range 2 {
		var ans Answer
		if err := u.Send(soon(t), []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), nil, true, &ans); err != nil ||
			string(ans.Body) == "stray" {
			t.Errorf("%v, %q", err, ans.Body)
		}
	}
}

// holder keeps what is written, where held is not nil.
type holder struct {
	net.Conn
	held *bytes.Buffer
}

func (h *holder) Write(p []byte) (int, error) {
	if h.held != nil {
		return h.held.Write(p)
	}
	return h.Conn.Write(p)
}
