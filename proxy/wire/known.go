package wire

import (
	"bytes"
	"strconv"
)

// knownServer is a server behind whose answers a connection may be used again although it has
// carried a body: tests with the real one (deploy/test/behind) show that it reads or drops each
// body that its application leaves unread, or closes the connection.
type knownServer struct {
	product string // of its Server field: that is `product`, or `product/version` with more behind a blank
	// since is its first release without a known flaw in that. Where a server does not say its
	// release, it is taken for one of those: if it is none, see needsOwnConn and checkParserAnswer.
	since [3]int
	// comment is what the rest of the field must begin with; empty: with anything. A module that
	// answers by itself names itself there.
	comment string
	does    string // with an unread body, for people
	// byApplication reports whether an answer that closes the connection is an application's, not
	// the parser's; nil: none of its applications' answers closes it.
	byApplication func(*Answer) bool
}

// knownServers are all of them. The field must match as a whole: "Apache-Coyote/1.1" and "Apache
// TomEE" are Tomcat, and "nginx/1.22.1 + Phusion Passenger(R) 6.0" answers with code of its own.
var knownServers = []*knownServer{
	// Before 1.17.7 a redirect by error_page left the body unread (CVE-2019-20372).
	{product: "nginx", since: [3]int{1, 17, 7}, comment: "(",
		does: "nginx drops what is left of a body before it reads the next request"},
	// Before 2.4.53 an error while it dropped a body left the connection open (CVE-2022-22720). It
	// closes behind each 400, 408 and 501, also behind those of applications, but its own have a
	// content type that those of today do not.
	{product: "Apache", since: [3]int{2, 4, 53},
		does: "Apache drops what is left of a body before it reads the next request, or closes",
		byApplication: func(ans *Answer) bool {
			kind := ans.Get("content-type")
			return len(kind) > 0 && !equalFold(kind, "text/html; charset=iso-8859-1")
		}},
}

// KnownServer returns what the server does with a body that it does not need, by the Server field
// of its answers; empty: that is not known.
func KnownServer(said string) (does string) {
	if s := serverOf(&Answer{Fields: []Field{{[]byte("Server"), []byte(said)}}}); s != nil {
		return s.does
	}
	return ""
}

// serverOf returns the known server that an answer names; nil: none, or more than one.
func serverOf(ans *Answer) *knownServer {
	var said []byte
	for _, f := range ans.Fields {
		if equalFold(f.Name, "server") {
			if said != nil {
				return nil
			}
			said = f.Value
		}
	}
	for _, s := range knownServers {
		if s.matchesField(said) {
			return s
		}
	}
	return nil
}

func (s *knownServer) matchesField(said []byte) bool {
	if len(said) < len(s.product) || string(said[:len(s.product)]) != s.product {
		return false
	}
	rest := said[len(s.product):]
	if len(rest) == 0 {
		return true
	}
	version, behind, more := bytes.Cut(rest[1:], []byte(" "))
	return rest[0] == '/' && isSince(version, s.since) && (!more || bytes.HasPrefix(behind, []byte(s.comment)))
}

// isSince reports whether version is three numbers that are not before least.
func isSince(version []byte, least [3]int) bool {
	after := false
	for i, want := range least {
		part, rest, more := bytes.Cut(version, []byte("."))
		n, err := strconv.ParseUint(string(part), 10, 16)
		if err != nil || more != (i < len(least)-1) || !after && int(n) < want {
			return false
		}
		after = after || int(n) > want
		version = rest
	}
	return true
}
