package proxy

import (
	"io"
	"net"
	"regexp"
	"strings"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
	"hooklock/proxy/wiretest"
)

var ownLines = regexp.MustCompile("(?m)^(Hooklock-.*|Idempotent-.*|Connection: close|Date: .*)\r\n")

// raw sends a request that ends its connection and returns the answer's bytes, without our own
// lines. A replay has a Date of ours.
func (r *replica) raw(t *testing.T, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return ownLines.ReplaceAllString(string(all), "")
}

// TestAnAnswerComesByteForByteAndSoDoItsReplays: from the process that has it in memory, and from
// another one.
func TestAnAnswerComesByteForByteAndSoDoItsReplays(t *testing.T) {
	etcd := etcdtest.Start(t)
	for _, tt := range []struct{ name, said, want string }{
		{
			"a value that is not UTF-8",
			"HTTP/1.1 200 OK\r\nContent-Disposition: attachment; filename=\"r\xe9sum\xe9.pdf\"\r\nX-All: \x80\xff\xc3\x28 <&>\u2028\r\nContent-Length: 2\r\n\r\nok",
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Disposition: attachment; filename=\"r\xe9sum\xe9.pdf\"\r\nX-All: \x80\xff\xc3\x28 <&>\u2028\r\n\r\nok",
		},
		{
			"two codings",
			"HTTP/1.1 200 OK\r\nContent-Encoding: a\r\nContent-Type: x/y\r\ncontent-encoding: b\r\nContent-Length: 2\r\n\r\nok",
			"HTTP/1.1 200 OK\r\nContent-Type: x/y\r\nContent-Encoding: a, b\r\nContent-Length: 2\r\n\r\nok",
		},
		{"204", "HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n", "HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n"},
		{"204 with a length", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nX-A: b\r\n\r\n",
			"HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n"},
		{"304", "HTTP/1.1 304 Not Modified\r\nETag: \"q\"\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nETag: \"q\"\r\n\r\n"},
		{"304 with a length", "HTTP/1.1 304 Not Modified\r\nETag: \"q\"\r\nContent-Length: 7\r\n\r\n",
			"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\nETag: \"q\"\r\n\r\n"},
		{"205", "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n",
			"HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			up := &service{url: wiretest.Script(t, tt.said).Addr}
			keeps := func(p *idem.Policy) { p.Keep.Add(200, 399) }
			a, b := newReplica(t, etcd, up, keeps), newReplica(t, etcd, up, keeps)
			key := strings.ReplaceAll(t.Name(), "/", "-")
			request := "POST /hooks/w HTTP/1.1\r\nHost: a\r\nConnection: close\r\nIdempotency-Key: " + key +
				"\r\nContent-Length: 0\r\n\r\n"
			if got := a.raw(t, strings.Replace(request, "/hooks/w", "/unmatched", 1)); got != tt.want {
				t.Errorf("passed through: %q\nwant %q", got, tt.want)
			}
			want := tt.want
			for i, r := range []*replica{a, a, b} {
				if got := r.raw(t, request); got != want {
					t.Errorf("answer %d: %q\nwant %q", i+1, got, want)
				}
				// it is not of the answer, but of another one
				want = strings.Replace(tt.want, "Content-Length: 7\r\n", "", 1)
			}
		})
	}
}

// TestAnAnswerToHEADSaysNoLengthThatTheServiceDidNotSay: it would be that of a GET.
func TestAnAnswerToHEADSaysNoLengthThatTheServiceDidNotSay(t *testing.T) {
	etcd := etcdtest.Start(t)
	for said, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nX-A: b\r\n\r\n":                               "HTTP/1.1 200 OK\r\nX-A: b\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n": "HTTP/1.1 200 OK\r\nX-A: b\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nX-A: b\r\n\r\n": "" +
			"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nX-A: b\r\n\r\n",
	} {
		r := newReplica(t, etcd, &service{url: wiretest.Script(t, said).Addr}, func(*idem.Policy) {})
		if got := r.raw(t,
			"HEAD /x HTTP/1.1\r\nHost: a\r\n\r\nHEAD /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); got != want+
			want {
			t.Errorf("two on one connection: got %q, want %q twice", got, want)
		}
	}
}
