package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Reuse says whether a connection is used again after it carried the body of a Send. After a Stream with a body it never is.
//
// A service that does not read a body takes it for the next request (Python's http.server, where the handler ignores a body). It then
// runs what the body says, and its answer to that, which may come at any time, would become the answer to the request of another event.
type Reuse uint8

// What Reuse can be.
const (
	// ReuseNever is for services of which nothing is known.
	ReuseNever Reuse = iota
	// ReuseAlways is for a service that reads each body to its end, or else closes the connection.
	ReuseAlways
	// ReuseProven finds out. Behind the answer, an empty line goes over the connection, which a server ignores before a request line (RFC 9112,
	// 2.2). A service that has taken the body for a request completes that request line, and answers or closes. A connection that stays
	// silent for a while (silence) is used again. The first one that does not ends the reuse, for as long as the Upstream lives.
	ReuseProven
)

// String returns the value of upstream.reuse_after_body.
func (r Reuse) String() string {
	switch r {
	case ReuseAlways:
		return "true"
	case ReuseProven:
		return "auto"
	}
	return "false"
}

const (
	// shortestSilence is what a service has at least to answer the empty line.
	shortestSilence = 20 * time.Millisecond
	longestSilence  = time.Second
	// silentTrips is how many round trips it has. One carries the empty line and brings the answer; a connect takes at least one.
	silentTrips = 8
	// firstProofs are those with a second empty line, behind the silence after the first one. Puma loses the error of a line that comes at once behind its
	// answer, and answers 400 to whatever follows: without the second line, that would be a delivery.
	firstProofs = 8
	// looksApart is the least time between two looks at the connections whose silence may be over.
	looksApart = 5 * time.Millisecond
	// briefestAge is the least age that a close of the service can reduce Upstream.maxAge to: a restart closes connections of any age.
	briefestAge = 250 * time.Millisecond
	// strikesApart is the least time between two breaks that end the reuse. Those of a restart are closer.
	strikesApart = time.Second
	// breath bounds the wait for what comes at once: what a connection that is readable has to say, and the FIN behind a close_notify.
	breath = 25 * time.Millisecond
)

var emptyLine = []byte("\r\n")

// ReuseState is what is known of the reuse of connections behind a body.
type ReuseState struct {
	Mode   Reuse
	Proven uint64 // connections that stayed silent after the empty line
	Reused uint64 // answered requests with a body, on a connection that had carried one before
	// Ended is what a connection did instead of staying silent; empty: all did. No connection is used again since then.
	Ended   string
	EndedAt time.Time
}

// ReuseState returns what is known now.
func (u *Upstream) ReuseState() ReuseState {
	u.mu.Lock()
	defer u.mu.Unlock()
	return ReuseState{Mode: u.o.ReuseAfterBody, Proven: u.proven, Reused: u.reused, Ended: u.ended, EndedAt: u.endedAt}
}

// Reuses reports whether the connection of a Send may carry another request before or after this one. If not, the request should say
// `Connection: close` (HeadOptions.Close). A body is trusted if a stranger cannot have written it: one that is the beginning of a request
// leaves the connection silent.
func (u *Upstream) Reuses(body []byte, trusted bool) bool {
	if len(body) == 0 || u.o.ReuseAfterBody == ReuseAlways {
		return true
	}
	if u.o.ReuseAfterBody == ReuseNever || !trusted || beginsRequest(body) {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ended == ""
}

// beginsRequest reports whether a server could take body for the beginning of a request: a method and a blank. JSON, XML and forms cannot be.
func beginsRequest(body []byte) bool {
	method := 0
	for _, c := range body {
		switch {
		case method == 0 && (c == '\r' || c == '\n' || c == ' ' || c == '\t'):
		case c == ' ' || c == '\t':
			return true
		case !tokenBytes[c]:
			return false
		default:
			method++
		}
	}
	return false
}

// prove sends the empty line over c, whose answer to a body is whole, and looks at it again when it had time to answer. took is how long the
// exchange took: a service that is slow to answer may be as slow to look at what it left unread.
func (u *Upstream) prove(c *conn, took time.Duration) (now time.Time) {
	now = u.o.Now()
	c.count()
	if !u.mayProve(c) {
		u.end(c)
		return time.Time{}
	}
	c.idleSince, c.answered, c.carried = now, c.wrote.n, true
	if state := c.state(unix.POLLOUT); state != unix.POLLOUT { // what it has no room for would block
		if state > 0 && state&unix.POLLIN != 0 {
			u.judge(c, false)
		}
		u.drop(c)
		return time.Time{}
	}
	if c.write(emptyLine, nil) != nil {
		u.drop(c)
		return time.Time{}
	}
	c.silence = min(max(shortestSilence, silentTrips*c.connected, took), longestSilence, u.o.IdleTimeout/4)
	if u.o.silence > 0 {
		c.silence = u.o.silence
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	c.askAgain = u.proven < firstProofs
	u.await(c)
	return now
}

// await has look see to c when it was silent for long enough. u.mu is held.
func (u *Upstream) await(c *conn) {
	c.provenAt = time.Now().Add(c.silence)
	u.proving = append(u.proving, c)
	if u.looks == nil {
		u.looks = time.AfterFunc(c.silence, u.look)
	} else if len(u.proving) == 1 {
		u.looks.Reset(c.silence)
	}
}

// ask sends c the second empty line; false: it needs none, or takes none.
func (u *Upstream) ask(c *conn) bool {
	if !c.askAgain || c.state(unix.POLLOUT) != unix.POLLOUT || c.write(emptyLine, nil) != nil {
		return false
	}
	c.askAgain = false
	u.mu.Lock()
	defer u.mu.Unlock()
	u.await(c)
	return true
}

// mayProve reserves room for c among the idle connections. As long as no connection was proven, one is enough to find out: a service that
// refuses the empty line is asked once, and not by each delivery of a burst. Over TCP the kernel must count what the peer has acknowledged: without
// that, a request that meets a connection which the service closes at that moment has an unknown outcome, on a new connection it has not.
func (u *Upstream) mayProve(c *conn) bool {
	if c.tcp && c.ahead < 0 {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || u.ended != "" || len(u.idle)+u.inProof >= u.o.MaxIdle || u.proven == 0 && u.inProof > 0 {
		return false
	}
	u.inProof++
	if c.carried {
		u.reused++
	}
	return true
}

// drop closes a connection that mayProve has let in.
func (u *Upstream) drop(c *conn) {
	u.mu.Lock()
	u.inProof--
	u.mu.Unlock()
	u.end(c)
}

// look keeps the connections that were silent for long enough.
func (u *Upstream) look() {
	u.mu.Lock()
	due, next := u.due(time.Now())
	if !next.IsZero() {
		u.looks.Reset(max(time.Until(next), looksApart))
	}
	u.mu.Unlock()
	silent := due[:0]
	for _, c := range due {
		switch quiet := c.quiet(); {
		case quiet && u.ask(c):
		case quiet && !c.askAgain:
			silent = append(silent, c)
		default:
			u.judge(c, true)
			u.drop(c)
		}
	}
	u.keep(silent)
}

// due takes out of u.proving whose time is over by now, and returns when that of the next one is; zero: there is none.
func (u *Upstream) due(now time.Time) (due []*conn, next time.Time) {
	waiting := u.proving[:0]
	for _, c := range u.proving {
		switch {
		case !c.provenAt.After(now):
			due = append(due, c)
			continue
		case next.IsZero() || c.provenAt.Before(next):
			next = c.provenAt
		}
		waiting = append(waiting, c)
	}
	clear(u.proving[len(waiting):])
	u.proving = waiting
	return due, next
}

// keep puts connections that were silent behind those that have been for longer.
func (u *Upstream) keep(silent []*conn) {
	u.mu.Lock()
	u.inProof -= len(silent)
	kept := !u.closed && u.ended == ""
	if kept {
		u.proven += uint64(len(silent))
		u.idle = append(u.idle, silent...)
	}
	u.mu.Unlock()
	if !kept {
		for _, c := range silent {
			u.end(c)
		}
	}
}

// endReuse ends the reuse behind bodies, for the reason that it is told first.
func (u *Upstream) endReuse(why string) {
	u.mu.Lock()
	if u.ended != "" {
		u.mu.Unlock()
		return
	}
	u.ended, u.endedAt = why, u.o.Now()
	idle := u.idle
	u.idle = nil
	u.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
	if u.o.OnReuseEnded != nil {
		u.o.OnReuseEnded(why)
	}
}

// says describes what came over a connection that should have been silent; closed: it was its end alone.
func (c *conn) says() (what string, closed bool) {
	if c.stray {
		return "sent a second answer", false
	}
	_ = c.raw.SetReadDeadline(time.Now().Add(breath))
	line := make([]byte, 80)
	n, err := io.ReadAtLeast(c.br, line, 1)
	switch first, _, _ := strings.Cut(string(line[:n]), "\n"); {
	case n > 0:
		return fmt.Sprintf("sent %q", strings.TrimSpace(first)), false
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return "closed the connection", true
	default:
		return fmt.Sprintf("broke the connection (%v)", err), true
	}
}

// judge ends the reuse because of c, on which a body went and which was not silent. A close alone counts behind the empty line only.
func (u *Upstream) judge(c *conn, asked bool) {
	if what, closed := c.says(); asked || !closed {
		u.endReuse(what)
	}
}

// answered looks at an answer on c. That of a server which could not read the request is not the service's.
func (u *Upstream) answered(c *conn, ans *Answer, closes bool) {
	if c.carried && closes && (ans.Status == 400 || ans.Status == 408) && u.o.ReuseAfterBody == ReuseProven {
		u.endReuse(fmt.Sprintf("answered %d to a request and closed the connection", ans.Status))
	}
}

// stale notes that the service has ended the connection c, which was idle for age. What it has said that late counts as if it had come in time.
func (u *Upstream) stale(c *conn, age time.Duration) {
	if c.carried && u.o.ReuseAfterBody == ReuseProven {
		u.judge(c, false)
	}
	u.mu.Lock()
	u.maxAge = min(u.maxAge, max(age/2, briefestAge))
	u.mu.Unlock()
	if age < briefestAge {
		u.strike(c)
	}
}

// strike notes that the service has broken the kept connection c early, or with a request on it. It ends the reuse the second time: a service that closes
// connections at any age does so with a request on its way, too, whose outcome is unknown then.
func (u *Upstream) strike(c *conn) {
	if !c.carried || u.o.ReuseAfterBody != ReuseProven {
		return
	}
	now := u.o.Now()
	u.mu.Lock()
	first := u.struck.IsZero()
	again := !first && now.Sub(u.struck) >= strikesApart
	if first {
		u.struck = now
	}
	u.mu.Unlock()
	if again {
		u.endReuse("broke connections that were to be used again")
	}
}

// announcedAge is how old an idle connection may become by the Keep-Alive field of an answer: half of its timeout, because the service may close it
// at the end of that while a request is on its way. 0: there is none.
func announcedAge(ans *Answer) time.Duration {
	for list := ans.Get("keep-alive"); len(list) > 0; {
		var element []byte
		element, list = nextListed(list)
		name, value, _ := bytes.Cut(element, []byte("="))
		if !equalFold(bytes.TrimSpace(name), "timeout") {
			continue
		}
		if seconds, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 16); err == nil {
			return max(time.Duration(seconds)*time.Second/2, time.Nanosecond)
		}
	}
	return 0
}
