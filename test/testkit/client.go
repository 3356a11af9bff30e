package testkit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Answer is a whole answer as a sender sees it.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// Raw is every byte of it, from the status line on.
	Raw string
	// Cut says why the answer is not whole; nil for one that is.
	Cut error
}

// Decision is what Hooklock says it decided.
func (a *Answer) Decision() string { return a.Header.Get("Hooklock-Decision") }

// Execution is the execution that the answer names.
func (a *Answer) Execution() string { return a.Header.Get("Hooklock-Execution") }

// JSON is the body as a JSON object; nil where it is none.
func (a *Answer) JSON() map[string]any {
	var v map[string]any
	if json.Unmarshal(a.Body, &v) != nil {
		return nil
	}
	return v
}

// String shows an answer in a failure.
func (a *Answer) String() string { return fmt.Sprintf("%s [cut: %v]", a.Raw, a.Cut) }

// Conn is a sender's connection, in raw bytes.
type Conn struct {
	net.Conn
	tb  testing.TB
	br  *bufio.Reader
	raw bytes.Buffer // what came since the last answer
}

// Dial connects to addr; the connection ends with the test. Everything on it has a deadline of
// Patience from now on.
func Dial(tb testing.TB, addr string) *Conn {
	tb.Helper()
	nc, err := net.DialTimeout("tcp", addr, Patience)
	if err != nil {
		tb.Fatalf("connect: %v", err)
	}
	return NewConn(tb, nc)
}

// NewConn is Dial on a connection that is there already.
func NewConn(tb testing.TB, nc net.Conn) *Conn {
	tb.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(Patience))
	c := &Conn{Conn: nc, tb: tb}
	c.br = bufio.NewReader(io.TeeReader(nc, &c.raw))
	return c
}

// Say writes raw bytes. An error fails nothing: a server may answer and close before it has read
// everything.
func (c *Conn) Say(s string) { _, _ = io.WriteString(c.Conn, s) }

// Reader reads what comes.
func (c *Conn) Reader() *bufio.Reader { return c.br }

// Answer reads one answer to a request with this method. An answer without a whole head fails the
// test.
func (c *Conn) Answer(method string) *Answer {
	c.tb.Helper()
	a, err := c.TryAnswer(method)
	if err != nil {
		c.tb.Fatalf("read answer: %v", err)
	}
	return a
}

// TryAnswer is Answer that returns the error of the head.
func (c *Conn) TryAnswer(method string) (*Answer, error) {
	c.raw.Next(c.raw.Len() - c.br.Buffered())
	res, err := http.ReadResponse(c.br, &http.Request{Method: method})
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	a := &Answer{Status: res.StatusCode, Header: res.Header}
	a.Body, a.Cut = io.ReadAll(res.Body)
	a.Raw = string(c.raw.Bytes()[:c.raw.Len()-c.br.Buffered()])
	return a, nil
}

// Exchange sends one raw request on a connection of its own and returns the answer.
func Exchange(tb testing.TB, addr, request string) *Answer {
	tb.Helper()
	c := Dial(tb, addr)
	defer c.Close()
	c.Say(request)
	method, _, _ := strings.Cut(request, " ")
	return c.Answer(method)
}

// Request is a POST of body to target as raw bytes; lines are header lines such as
// "Idempotency-Key: k".
func Request(target, body string, lines ...string) string {
	return RequestWith("POST", target, body, lines...)
}

// RequestWith is Request with another method.
func RequestWith(method, target, body string, lines ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: hooks.example.com\r\n", method, target)
	for _, line := range lines {
		b.WriteString(line + "\r\n")
	}
	if body != "" || method == "POST" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return b.String()
}

// Post delivers body to target at addr.
func Post(tb testing.TB, addr, target, body string, lines ...string) *Answer {
	tb.Helper()
	return Exchange(tb, addr, Request(target, body, lines...))
}

// GoPost is Post in the background. The test may not end before it has received the answer; nil
// means that none came.
func GoPost(tb testing.TB, addr, target, body string, lines ...string) <-chan *Answer {
	tb.Helper()
	answer := make(chan *Answer, 1)
	c := Dial(tb, addr)
	go func() {
		defer c.Close()
		c.Say(Request(target, body, lines...))
		a, _ := c.TryAnswer("POST")
		answer <- a
	}()
	return answer
}
