package wiretest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
)

// Conn is one connection of the upstream, seen from the upstream.
type Conn struct {
	// N counts the upstream's connections, from 1.
	Number int

	up   *Upstream
	raw  net.Conn
	conn net.Conn // raw, or TLS over it
	br   *bufio.Reader
}

func newConn(u *Upstream, raw net.Conn, config *tls.Config) *Conn {
	c := &Conn{up: u, raw: raw, conn: raw}
	if config != nil {
		c.conn = tls.Server(raw, config)
	}
	c.br = bufio.NewReader(c.conn)
	return c
}

// Read reads bytes as they come; they are not recorded.
func (c *Conn) Read(p []byte) (int, error) { return c.br.Read(p) }

// Say writes bytes as they are.
func (c *Conn) Say(s string) error {
	_, err := io.WriteString(c.conn, s)
	return err
}

// Write writes bytes as they are.
func (c *Conn) Write(p []byte) (int, error) { return c.conn.Write(p) }

// Finish ends the sending side: a FIN, behind a close_notify where there is TLS.
func (c *Conn) Finish() error {
	return c.conn.(interface{ CloseWrite() error }).CloseWrite()
}

// Cut ends the sending side of the socket, without the close_notify of TLS.
func (c *Conn) Cut() error {
	return c.raw.(interface{ CloseWrite() error }).CloseWrite()
}

// Close closes the socket. Unread bytes turn the end into a reset.
func (c *Conn) Close() error { return c.raw.Close() }

// Reset closes with a reset, as a process does that dies or does not care.
func (c *Conn) Reset() error {
	if tcp, ok := c.raw.(*net.TCPConn); ok {
		if err := tcp.SetLinger(0); err != nil {
			return err
		}
	}
	return c.raw.Close()
}

// ReadHead reads and returns a request's head, with its empty line. Empty lines before it are
// skipped (RFC 9112, 2.2). It is not recorded.
func (c *Conn) ReadHead() (string, error) {
	var head bytes.Buffer
	for {
		line, err := c.br.ReadString('\n')
		head.WriteString(line)
		if err != nil {
			return head.String(), err
		}
		if line == "\r\n" || line == "\n" {
			if head.Len() > len(line) {
				return head.String(), nil
			}
			head.Reset()
		}
	}
}

// ReadRequest reads one whole request and records it, chunks as they came. What was read of one
// that is cut off is returned but not recorded.
func (c *Conn) ReadRequest() (string, error) {
	head, err := c.ReadHead()
	if err != nil {
		return head, err
	}
	body, err := c.readBody(head)
	request := head + body
	if err == nil {
		c.up.record(request)
	}
	return request, err
}

var errFraming = errors.New("request has no framing that could be followed")

func (c *Conn) readBody(head string) (string, error) {
	length, chunked := "", false
	for line := range strings.SplitSeq(head, "\n") {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.ToLower(name) {
		case "content-length":
			length = value
		case "transfer-encoding":
			chunked = true
		}
	}
	if chunked && length != "" {
		return "", errFraming
	}
	if chunked {
		return c.readChunks()
	}
	if length == "" {
		return "", nil
	}
	n, err := strconv.Atoi(length)
	if err != nil {
		return "", errFraming
	}
	var body strings.Builder
	_, err = io.CopyN(&body, c.br, int64(n))
	return body.String(), err
}

func (c *Conn) readChunks() (string, error) {
	var body strings.Builder
	for {
		line, err := c.br.ReadString('\n')
		body.WriteString(line)
		if err != nil {
			return body.String(), err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(line), 16, 64)
		if err != nil {
			return body.String(), errFraming
		}
		if _, err := io.CopyN(&body, c.br, n+2); err != nil { // with the CRLF behind the data
			return body.String(), err
		}
		if n == 0 {
			return body.String(), nil
		}
	}
}
