package wire

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Reuse says whether a connection is used again after it carried the body of a request.
//
// A service that does not read a body takes it for the next request (Python's http.server, where
// the handler ignores a body). It then runs what the body says, and its answer to that, which may
// come at any time, would become the answer to the request of another event. Nothing that goes over
// the connection finds that out: a service that is busy is as silent as one that has read
// everything.
type Reuse uint8

// What Reuse can be.
const (
	// ReuseNever is for services of which nothing is known.
	ReuseNever Reuse = iota
	// ReuseAlways is for a service that reads each body to its end, or else closes the connection.
	ReuseAlways
	// ReuseKnown goes by the Server field of each answer: a connection is used again behind that of
	// a known server (knownServers).
	ReuseKnown
)

// String returns the value of upstream.reuse_after_body.
func (r Reuse) String() string {
	switch r {
	case ReuseAlways:
		return "true"
	case ReuseKnown:
		return "auto"
	}
	return "false"
}

// readableWait bounds the wait for what comes at once: the FIN behind a close_notify, and what a
// readable connection has to say.
const readableWait = 25 * time.Millisecond

// parting bounds the wait for the close behind a 400, 408 or 501 that does not announce one.
const parting = 100 * time.Millisecond

// longestServer is how much of a Server field is remembered, in bytes.
const longestServer = 120

// ReuseState is what is known of the reuse of connections behind a body.
type ReuseState struct {
	Mode Reuse
	// the Server field of the latest answer, at most 120 bytes of it; empty: it had none, or there
	// was no answer
	Server string
	Known  string // what that server does with a body that it does not need; empty: that is not known
	Reused uint64 // answered requests with a body, on a connection that had carried one before
	// Ended is what the service did that only one which reads bodies wrongly does; empty: nothing.
	// Since then no connection is used again behind a body.
	Ended   string
	EndedAt time.Time
	// RestsUntil is until when no connection is used again behind a body, because the service
	// closed one with a request on its way; zero, or in the past: they are.
	RestsUntil time.Time
}

// ReuseState returns what is known now.
func (u *Upstream) ReuseState() ReuseState {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := ReuseState{Mode: u.options.ReuseAfterBody, Server: u.server, Reused: u.reused, Ended: u.ended,
		EndedAt:    u.endedAt,
		RestsUntil: u.rests}
	if u.known != nil {
		s.Known = u.known.does
	}
	return s
}

// Reuses reports whether the connection of a request with that body may carry another request
// before or after this one. If not, the request should say `Connection: close` (HeadOptions.Close).
func (u *Upstream) Reuses(body []byte) bool {
	return u.ReusesBehind(len(body) > 0) && !u.needsOwnConn(body)
}

// ReusesBehind is Reuses before the body is there.
func (u *Upstream) ReusesBehind(body bool) bool {
	if !body {
		return true
	}
	if u.options.ReuseAfterBody == ReuseNever {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ended == "" && !u.slow && (u.options.ReuseAfterBody == ReuseAlways || u.known != nil) &&
		(u.rests.IsZero() || u.options.Now().After(u.rests))
}

// needsOwnConn reports whether body goes over a connection of its own although the server is known.
// If that one left a body unread after all, its parser must refuse what it finds, so that no answer
// comes that could be another request's.
func (u *Upstream) needsOwnConn(body []byte) bool {
	return u.options.ReuseAfterBody == ReuseKnown && beginsRequest(body)
}

// beginsRequest reports whether a server could take body for the beginning of a request: a method
// and a blank. JSON, XML and forms cannot be.
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

// learnServer remembers what the service says of itself, and whether it is worth keeping
// connections to it.
func (u *Upstream) learnServer(ans *Answer, slow bool) {
	said := ans.Get("server")
	said = said[:min(len(said), longestServer)]
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.server != string(said) || u.server == "" {
		u.server, u.known = string(said), serverOf(ans)
	}
	u.slow = slow && u.options.MaxAge == 0
}

// keepsBehind reports whether c may be used again behind ans, the answer to a request with a body.
// Over TCP the kernel must count what the peer has acknowledged: without that, a request that meets
// a connection which the service closes at that moment has an unknown outcome, on a new connection
// it has not.
func (u *Upstream) keepsBehind(c *conn, ans *Answer) bool {
	switch u.options.ReuseAfterBody {
	case ReuseAlways:
		return true
	case ReuseKnown:
		return serverOf(ans) != nil && (!c.tcp || c.ahead >= 0)
	}
	return false
}

const (
	// firstRest is for how long no connection is used again behind a body after the service has
	// closed one with a request on its way. A restart does so once; Apache's event MPM does
	// whenever its workers are all busy, and each time an outcome may be unknown that would be
	// known without the reuse.
	firstRest = 10 * time.Minute
	// restGrows is how many times as long the next rest is.
	restGrows = 8
)

// suspendReuse lets no connection be used again for a while.
func (u *Upstream) suspendReuse() {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.options.Now()
	if u.options.ReuseAfterBody == ReuseNever || now.Before(u.rests) {
		return
	}
	u.lastRest = min(max(firstRest, restGrows*u.lastRest), 30*24*time.Hour)
	u.rests = now.Add(u.lastRest)
}

// endReuse ends the reuse behind bodies, for the reason that it is told first.
func (u *Upstream) endReuse(why string) {
	u.mu.Lock()
	if u.ended != "" || u.options.ReuseAfterBody == ReuseNever {
		u.mu.Unlock()
		return
	}
	u.ended, u.endedAt = why, u.options.Now()
	idle := u.idle
	u.idle = nil
	u.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
	if u.options.OnReuseEnded != nil {
		u.options.OnReuseEnded(why)
	}
}

// hearUnasked ends the reuse if c, which carried a body, says more than the answers to its
// requests: an answer to what was left of the body. A close is none, and a 408 (RFC 9110, 15.5.9)
// is the announcement of one.
func (u *Upstream) hearUnasked(c *conn) {
	if !c.carried {
		return
	}
	_ = c.raw.SetReadDeadline(time.Now().Add(readableWait))
	said := append(make([]byte, 0, 80), c.stray...)
	n, _ := io.ReadAtLeast(c.br, said[len(said):cap(said)], 1)
	line, _, _ := strings.Cut(string(said[:len(said)+n]), "\n")
	line = strings.TrimSpace(line)
	if version, rest, _ := strings.Cut(line, " "); line != "" &&
		!(strings.HasPrefix(version, "HTTP/1.") && strings.HasPrefix(rest, "408")) {
		u.endReuse(fmt.Sprintf("sent %q without a request", line))
	}
}

// ParserError is why a whole answer says nothing of its request. A parser that has taken something
// else for a request refuses that, and closes the connection; whether the service runs the request,
// too, nothing tells.
type ParserError struct{ Status int }

// Error says what came.
func (e *ParserError) Error() string {
	return fmt.Sprintf("it answered %d and closed a connection that had carried a request before: its parser does "+
		"so, which may have refused other bytes than "+
		"those of the request", e.Status)
}

// checkParserAnswer returns a *ParserError if the whole answer may be a parser's; nil: it is the
// service's. It ends the reuse. What passes through has no outcome that could be wrong.
func (e *exchange) checkParserAnswer() error {
	status := e.answer.Status
	if !e.reused || status != 400 && status != 408 && status != 501 {
		return nil
	}
	server := serverOf(e.answer)
	if server != nil && (!e.close || server.byApplication != nil && server.byApplication(e.answer)) ||
		!e.close && !e.closesNow() {
		return nil
	}
	e.close = true
	e.upstream.endReuse(fmt.Sprintf("answered %d to a request and closed the connection", status))
	if !e.event {
		return nil
	}
	return &ParserError{Status: status}
}

// closesNow reports whether the service closes the connection behind a whole answer that does not
// announce it.
func (e *exchange) closesNow() bool {
	e.limitRead(time.Now().Add(parting))
	defer e.limitRead(time.Time{})
	_, err := e.conn.br.Peek(1)
	return !errors.Is(err, os.ErrDeadlineExceeded)
}
