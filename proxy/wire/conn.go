package wire

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const readBuffer = 8 << 10

// oneRecord is what TLS sends in one record.
const oneRecord = 16 << 10

// conn is one connection to the upstream. It has one user at a time.
type conn struct {
	nc    net.Conn // what is read and written: plain, or TLS
	raw   net.Conn // the socket underneath
	tls   *tls.Conn
	fd    syscall.RawConn
	tcp   bool
	br    *bufio.Reader
	wrote *socket // bytes handed to the kernel since the connection was made

	made    time.Time     // when it was ready for its first request
	setup   time.Duration // what that took
	carried bool          // a body
	until   time.Time     // when it is closed although its service did not; see closeAfterPeer
	stray   []byte        // what quietTLS has found, of unasked bytes

	vec    [2][]byte
	bufs   net.Buffers
	record []byte // head and body of a short request, for TLS

	poll [1]unix.PollFd
	got  int16            // what doLook finds; -1 after an error
	look func(fd uintptr) // bound once: no closure per request
	info struct {
		acked uint64
		ok    bool
	}
	readInfo func(fd uintptr)
	// ahead is by how much the kernel's count of acknowledged bytes is ahead of c.wrote, because it
	// counts the SYN, too; -1: not known yet.
	ahead int64
}

// socket counts what the kernel took and notes the peer's FIN. Under TLS it sits below the records,
// so zero means that not even a part of a record went out. It also follows the records that come
// in, of which TLS may hold a part.
type socket struct {
	net.Conn
	written int64
	fin     bool
	header  []byte // of the record that comes in, as far as it came
	left    int    // bytes of that record which are still to come behind its header
}

// recordHeader is type, version and length of a record (RFC 8446, 5.1).
const recordHeader = 5

func (s *socket) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	s.written += int64(n)
	return n, err
}

func (s *socket) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.fin = s.fin || err == io.EOF
	s.trackRecords(p[:n])
	return n, err
}

func (s *socket) trackRecords(p []byte) {
	for len(p) > 0 {
		n := min(s.left, len(p))
		if s.left -= n; n == 0 {
			n = min(recordHeader-len(s.header), len(p))
			s.header = append(s.header, p[:n]...)
			if len(s.header) == recordHeader {
				s.left, s.header = int(binary.BigEndian.Uint16(s.header[3:])), s.header[:0]
			}
		}
		p = p[n:]
	}
}

// inRecord reports whether a record has begun to come in, and not ended.
func (s *socket) inRecord() bool { return s.left > 0 || len(s.header) > 0 }

// plaintext reads from TLS. A FIN without close_notify is a cut, but crypto/tls forgives it between
// two records.
type plaintext struct{ conn *conn }

func (p plaintext) Read(b []byte) (int, error) {
	n, err := p.conn.tls.Read(b)
	if err == io.EOF && p.conn.wrote.fin {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// newConn takes ownership of br.
func newConn(raw net.Conn, br *bufio.Reader) *conn {
	c := &conn{nc: raw, raw: raw, wrote: &socket{Conn: raw}, ahead: -1}
	if sc, ok := raw.(syscall.Conn); ok {
		c.fd, _ = sc.SyscallConn()
	}
	_, c.tcp = raw.(*net.TCPConn)
	c.look, c.readInfo = c.doLook, c.doReadInfo
	c.br = br
	c.br.Reset(raw)
	return c
}

// startTLS puts TLS on the connection; the handshake is still to come.
func (c *conn) startTLS(config *tls.Config) {
	c.tls = tls.Client(c.wrote, config)
	c.nc = c.tls
	c.br.Reset(plaintext{c})
}

// writeHeadAndBody sends head and body with one system call where it can, and counts in c.wrote how
// many bytes the kernel took.
func (c *conn) writeHeadAndBody(head, body []byte) (err error) {
	switch {
	case c.tls != nil && len(body) > 0 && len(head)+len(body) <= oneRecord:
		c.record = append(append(c.record[:0], head...), body...)
		_, err = c.tls.Write(c.record)
	case c.tls != nil:
		if _, err = c.tls.Write(head); err == nil && len(body) > 0 {
			_, err = c.tls.Write(body)
		}
	case len(body) == 0:
		_, err = c.wrote.Write(head)
	default:
		var n int64
		c.vec[0], c.vec[1] = head, body
		c.bufs = c.vec[:]
		n, err = c.bufs.WriteTo(c.raw) // writev
		c.vec = [2][]byte{}
		c.wrote.written += n
	}
	return err
}

// isQuiet reports whether an idle connection is fit for use: no FIN, no error, and no unrequested
// byte, which would become the answer to the next request.
func (c *conn) isQuiet() bool {
	if c.br.Buffered() > 0 || c.fd == nil {
		return false
	}
	c.got = -1
	if c.fd.Control(c.look) != nil || c.got != 0 {
		return false
	}
	return c.tls == nil || c.quietTLS()
}

// doLook asks poll(2) what is there at once: something to read, a FIN or an error. 0: nothing.
func (c *conn) doLook(fd uintptr) {
	for {
		c.poll[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN | halfClosed}
		_, err := unix.Poll(c.poll[:], 0)
		if err == unix.EINTR {
			continue
		}
		if err == nil {
			c.got = c.poll[0].Revents
		}
		return
	}
}

// quietTLS finds what TLS already took from the socket, where no poll can see it: plaintext, or a
// part of a record.
func (c *conn) quietTLS() bool {
	if c.tls.SetReadDeadline(past) != nil {
		return false
	}
	var b [1]byte
	n, err := c.tls.Read(b[:])
	var nerr net.Error
	c.stray = append(c.stray, b[:n]...)
	if n > 0 || !errors.As(err, &nerr) || !nerr.Timeout() || c.wrote.inRecord() {
		return false
	}
	return c.tls.SetReadDeadline(time.Time{}) == nil
}

// readAckedBytes returns tcpi_bytes_acked, the bytes that the peer's kernel has acknowledged. False
// where the kernel does not count: the counter must cover what was written and answered before, or
// it proves nothing (Linux before 4.2 and some sandboxes report 0; other systems have none).
func (c *conn) readAckedBytes(atLeast int64) (bytes uint64, ok bool) {
	if !c.tcp || c.fd == nil {
		return 0, false
	}
	c.info.ok = false
	if c.fd.Control(c.readInfo) != nil || !c.info.ok || atLeast <= 0 || c.info.acked < uint64(atLeast) {
		return 0, false
	}
	return c.info.acked, true
}

// compareCounts compares the kernel's count with ours, when the answer to all that was written is
// there. Once is enough.
func (c *conn) compareCounts() {
	if c.ahead >= 0 {
		return
	}
	if acked, ok := c.readAckedBytes(c.wrote.written); ok {
		c.ahead = int64(acked) - c.wrote.written //nolint:gosec // no connection carries that many bytes
	}
}

// expectedAcked returns the result of readAckedBytes for an idle connection that has written so
// many bytes and got its answers; false if it is not known.
func (c *conn) expectedAcked(wrote int64) (acked uint64, ok bool) {
	return uint64(wrote + c.ahead), c.ahead >= 0 //nolint:gosec // of no use where it is negative
}

func (c *conn) doReadInfo(fd uintptr) {
	c.info.acked, _, c.info.ok = tcpInfo(int(fd))
}

// finFirst reports whether err says that the peer's FIN came before anything else. ECONNRESET never
// does: a reset may follow a request that was read.
func finFirst(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE)
}

// finBehind reports whether the peer's FIN follows its close_notify at once. A reset does not take
// a FIN back that has come.
func (c *conn) finBehind() bool {
	if c.raw.SetReadDeadline(time.Now().Add(readableWait)) != nil {
		return false
	}
	var b [1]byte
	n, _ := c.wrote.Read(b[:])
	return n == 0 && c.wrote.fin
}

// close ends a connection that is at a message boundary.
func (c *conn) close() { _ = c.nc.Close() }

// hangUp closes the connection at once, whatever it is in the middle of.
func (c *conn) hangUp() { _ = c.raw.Close() }
