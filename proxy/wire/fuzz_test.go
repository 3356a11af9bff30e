package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// FuzzHead: whatever fasthttp and ParseHead accept is, as it goes to the upstream, exactly one
// request for net/http, with the same framing and no more header lines than were kept.
func FuzzHead(f *testing.F) {
	for _, v := range vectors {
		f.Add([]byte(v.raw))
	}
	f.Add([]byte(benchHead))
	f.Add([]byte(upgradeRequest))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var h fasthttp.RequestHeader
		if h.Read(bufio.NewReaderSize(bytes.NewReader(raw), 16<<10)) != nil {
			return
		}
		var head Head
		if ParseHead(&h, &head) != nil {
			return
		}
		for _, streamed := range []bool{false, true} {
			o := HeadOptions{Length: 5, Streamed: streamed, Upgrade: true, Host: []byte("given"),
				ForwardedFor: []byte("9.9.9.9")}
			checkOneRequest(t, &head, o)
		}
	})
}

func checkOneRequest(t *testing.T, head *Head, o HeadOptions) {
	t.Helper()
	length := o.Length
	if o.Streamed {
		length = head.length
	}
	if !head.framed {
		length = 0
	}
	body := strings.Repeat("x", int(max(0, min(length, 1<<10))))
	if length < 0 {
		body = "5\r\nxxxxx\r\n0\r\n\r\n"
	}
	// net/http parses the target, which is not what is tested here.
	sent := head.AppendTo(nil, o)
	line := append(append([]byte{}, head.method...), ' ')
	rest, ok := bytes.CutPrefix(sent, append(append([]byte{}, line...), head.target...))
	if !ok || bytes.ContainsAny(head.target, " \r\n\t\x00") {
		t.Fatalf("request line of %q", sent)
	}
	br := bufio.NewReader(io.MultiReader(bytes.NewReader(append(append(line, '/'), rest...)), strings.NewReader(body)))
	r, err := http.ReadRequest(br)
	if err != nil {
		t.Fatalf("net/http refuses %q: %v", sent, err)
	}
	if r.ContentLength != length || (length < 0) != (len(r.TransferEncoding) == 1) {
		t.Fatalf("net/http reads the length %d (%v), not %d, of %q", r.ContentLength, r.TransferEncoding, length, sent)
	}
	if length > 1<<10 {
		return
	}
	if got, err := io.ReadAll(r.Body); err != nil || len(got) != max(int(length), 5*btoi(length < 0)) {
		t.Fatalf("net/http reads a body of %d bytes, %v, of %q", len(got), err, sent)
	}
	if n, _ := io.Copy(io.Discard, br); n > 0 {
		t.Fatalf("net/http finds a second request behind %q", sent)
	}
	if r.Header.Get("Proxy") != "" || r.Header.Get("Keep-Alive") != "" || r.Header.Get("Te") != "" {
		t.Fatalf("hop-by-hop lines are left in %q", sent)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// FuzzAnswer: the parser never panics, and where net/http accepts an answer, too, both read the
// same.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		okAnswer, switching, refusal,
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nX: 1\r\n\r\n",
		"HTTP/1.0 200\r\n\r\nabc", "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\nX:\r\n\r\nabc",
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, isHead bool) {
		status, body, err := parseAnswer(raw, isHead)
		if err != nil || status == 101 {
			return
		}
		method := "GET"
		if isHead {
			method = "HEAD"
		}
		br := bufio.NewReader(bytes.NewReader(raw))
		for {
			resp, err := http.ReadResponse(br, &http.Request{Method: method})
			if err != nil {
				return
			}
			if resp.StatusCode/100 == 1 {
				continue
			}
			theirs, err := io.ReadAll(resp.Body)
			if err != nil {
				return
			}
			if resp.StatusCode != status || string(theirs) != string(body) {
				t.Fatalf("%q is %d %q, for net/http %d %q", raw, status, body, resp.StatusCode, theirs)
			}
			return
		}
	})
}

func parseAnswer(raw []byte, isHead bool) (int, []byte, error) {
	var ans Answer
	br := bufio.NewReaderSize(bytes.NewReader(raw), 512)
	if err := readAnswerHead(br, 4<<10, &ans); err != nil {
		return 0, nil, err
	}
	fields := ans.EndToEnd(nil)
	for _, f := range fields {
		if !isToken(f.Name) || !isText(f.Value) {
			panic("a field that no header may have")
		}
	}
	f, err := parseFraming(&ans, isHead)
	if err != nil {
		return 0, nil, err
	}
	r := newBodyReader(br, f, 4<<10)
	body, err := io.ReadAll(&r)
	return ans.Status, body, err
}

// FuzzStrict: however the bytes are cut, the same ones are let through; and of what is, net/http
// and fasthttp find the same ends of requests.
func FuzzStrict(f *testing.F) {
	for _, v := range vectors {
		f.Add([]byte(v.raw), uint8(3))
	}
	f.Add([]byte(benchHead+strings.Repeat("x", 1024)+benchHead), uint8(7))
	f.Add([]byte(upgradeRequest+"early "), uint8(200))
	// as long as it may be, and one more
	for _, size := range []string{"3;" + strings.Repeat("a", chunkLine-2), "3;" + strings.Repeat("a", chunkLine-1)} {
		for _, end := range []string{"\r\n", "\n", "\r\r\n"} {
			f.Add([]byte(start+"Transfer-Encoding: chunked\r\n\r\n"+size+end+"abc\r\n0\r\n\r\n"), uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, step uint8) {
		ends, err := strictly(raw, 1)
		start := 0
		for _, end := range ends {
			checkEnd(t, raw[start:], end-start)
			start = end
		}
		for _, step := range []int{int(step) + 1, len(raw)} {
			if _, again := strictly(raw, step); !errors.Is(again, err) {
				t.Fatalf("%q: %v, and in pieces of %d %v", raw, err, step, again)
			}
		}
	})
}

// strictly returns where the requests in raw end and why it is refused, io.EOF where it is not,
// when step bytes come at a time.
func strictly(raw []byte, step int) (ends []int, err error) {
	var s strict
	from := bytes.NewReader(raw)
	buf := make([]byte, max(step, 1))
	for passed := 0; ; {
		n, err := s.read(from, buf)
		passed += n
		if n > 0 && s.scan == nil {
			ends = append(ends, passed)
		}
		if err != nil {
			return ends, err
		}
	}
}

// checkEnd fails where a parser that takes the request at the beginning of raw finds another end of
// it than n.
func checkEnd(t *testing.T, raw []byte, n int) {
	t.Helper()
	from := bytes.NewReader(raw)
	br := bufio.NewReaderSize(from, 16<<10)
	read := func() int { return len(raw) - from.Len() - br.Buffered() }
	var r fasthttp.Request
	var head Head
	if r.Header.Read(br) != nil || ParseHead(&r.Header, &head) != nil {
		return // refused behind strict
	}
	if err := r.ContinueReadBody(br, 1<<20, false); err == nil && read() != n {
		t.Fatalf("for fasthttp the first request of %q ends at %d, not %d", raw, read(), n)
	}
	from.Reset(raw)
	br.Reset(from)
	theirs, err := http.ReadRequest(br)
	if err != nil {
		return
	}
	if _, err := io.Copy(io.Discard, theirs.Body); err == nil && read() != n {
		t.Fatalf("for net/http the first request of %q ends at %d, not %d", raw, read(), n)
	}
}
