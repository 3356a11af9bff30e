package wire

import (
	"strings"
	"testing"
)

// vector is one request that some parser in the world reads differently.
type vector struct {
	name string
	raw  string
	want string // what the upstream must get; empty: refused, and nothing reaches it
}

const (
	start = "POST / HTTP/1.1\r\nHost: a\r\n"
	got3  = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
)

var vectors = []vector{
	// Framing.
	{"length, then chunks", start + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", ""},
	{"chunks, then length", start + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n", ""},
	{"two equal lengths", start + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", ""},
	{"two lengths", start + "Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde", ""},
	{"list of lengths", start + "Content-Length: 3, 3\r\n\r\nabc", ""},
	{"length with plus", start + "Content-Length: +3\r\n\r\nabc", ""},
	{"negative length", start + "Content-Length: -1\r\n\r\nabc", ""},
	{"hex length", start + "Content-Length: 0x3\r\n\r\nabc", ""},
	{"empty length", start + "Content-Length: \r\n\r\nabc", ""},
	{"length over int64", start + "Content-Length: 18446744073709551619\r\n\r\nabc", ""},
	{"length with zeros", start + "Content-Length: 003\r\n\r\nabc", got3},
	{"length between tab and space", start + "Content-Length:\t3 \r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:3\r\n\r\nabc"},
	{"space before the colon of the length", start + "Content-Length : 3\r\n\r\nabc", ""},
	{"space before the colon of the encoding", start + "Transfer-Encoding : chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", ""},
	{"space inside the name of the length", start + "Content Length: 3\r\n\r\nabc", ""},
	{"space inside the name of the encoding", start + "Transfer Encoding: chunked\r\n\r\n0\r\n\r\n", ""},
	{"xchunked", start + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", ""},
	{"chunked, identity", start + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", ""},
	{"gzip, chunked", start + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", ""},
	{"VT before chunked", start + "Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n", ""},
	{"two encodings", start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ""},
	{"chunked and identity", start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", ""},
	{"identity", start + "Transfer-Encoding: identity\r\n\r\n", ""},
	{"identity and length", start + "Transfer-Encoding: identity\r\nContent-Length: 3\r\n\r\nabc", ""},
	{"CHUNKED", start + "Transfer-Encoding: CHUNKED\r\n\r\n3\r\nabc\r\n0\r\n\r\n", got3},
	{"content_length", start + "content_length: 9\r\n\r\n", ""},
	{"Transfer_Encoding", start + "Transfer_Encoding: chunked\r\n\r\n", ""},
	{"Content.Length beside the length", start + "Content.Length: 9\r\nContent-Length: 3\r\n\r\nabc", ""},
	{"HTTP/1.0 with chunks", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ""},
	{"HTTP/9.9 with chunks", "POST / HTTP/9.9\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ""},
	// Lines.
	{"folded value", start + "X: a\r\n b\r\nContent-Length: 3\r\n\r\nabc", ""},
	{"folded encoding", start + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", ""},
	{"fold that hides the encoding", start + "X: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc", ""},
	{"first line begins with a space", "POST / HTTP/1.1\r\n Host: a\r\n\r\n", ""},
	{"bare LF between headers", start + "X: a\nContent-Length: 3\r\n\r\nabc", ""},
	{"bare LF before the end of the block", start + "Content-Length: 3\r\nX: a\n\r\nabc", ""},
	{"bare LF as the end of the block", start + "X: a\r\n\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n", ""},
	{"bare CR in a value", start + "X: a\rY: b\r\n\r\n", ""},
	{"CR in a name", start + "X\rY: b\r\n\r\n", ""},
	{"NUL in a value", start + "X: a\x00b\r\n\r\n", ""},
	{"NUL in a name", start + "X\x00Y: b\r\n\r\n", ""},
	{"name not in ASCII", start + "X\xe9: b\r\n\r\n", ""},
	{"empty name", start + ": b\r\n\r\n", ""},
	{"no colon", start + "X\r\n\r\n", ""},
	// Request line.
	{"request line ended by bare LF", "GET / HTTP/1.1\nHost: a\r\n\r\n", ""},
	{"bare LF before the request line", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", ""},
	{"request line of HTTP/1.0 ended by bare LF", "GET / HTTP/1.0\n\r\n", ""},
	{"http in lower case", "GET / http/1.1\r\nHost: a\r\n\r\n", ""},
	{"HTTP/0.9", "GET /\r\n\r\n", ""},
	{"HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", ""},
	{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""},
	{"two spaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", ""},
	{"tab for a space", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", ""},
	{"space in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", ""},
	{"leading CRLFs", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
	{"CONNECT", "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", ""},
	{"TRACE", "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", ""},
	{"asterisk for GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", ""},
	{"absolute target", "GET http://u:p@b/ HTTP/1.1\r\nHost: a\r\n\r\n", ""},
	{"no Host", "GET / HTTP/1.1\r\nX: a\r\n\r\n", ""},
	{"two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", ""},
	{"Host with a slash", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", ""},
	{"Host with a space", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", ""},
	// Chunks.
	{"chunk size 0x3", start + "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n", ""},
	{"chunk size +3", start + "Transfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n", ""},
	{"chunk size too long", start + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("0", 40) +
		"3\r\nabc\r\n0\r\n\r\n", ""},
	{"chunk size near 2^59", start + "Transfer-Encoding: chunked\r\n\r\n7ffffffffffffff\r\nabc\r\n0\r\n\r\n", ""},
	{"chunk extension", start + "Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n", got3},
	{"chunk size with a space behind", start + "Transfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n0\r\n\r\n", got3},
	{"last chunk 00", start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n00\r\n\r\n", got3},
	{"NUL in a chunk extension", start + "Transfer-Encoding: chunked\r\n\r\n3;a\x00b\r\nabc\r\n0\r\n\r\n", ""},
	{"ESC in the last chunk's extension", start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0;\x1b\r\n\r\n", ""},
	{"endless chunk extension", start + "Transfer-Encoding: chunked\r\n\r\n3;" + strings.Repeat("a", 5000) +
		"\r\nabc\r\n0\r\n\r\n", ""},
	{"LF in a chunk extension", start + "Transfer-Encoding: chunked\r\n\r\n3;a\nb\r\nabc\r\n0\r\n\r\n", ""},
	{"CR in a chunk extension", start + "Transfer-Encoding: chunked\r\n\r\n3;a\rb\r\nabc\r\n0\r\n\r\n", ""},
	{"chunk lines with LF only", start + "Transfer-Encoding: chunked\r\n\r\n3\nabc\n0\n\n", ""},
	{"no CRLF behind a chunk", start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc0\r\n\r\n", ""},
	{"trailer Content-Length", start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nContent-Length: 9\r\n\r\n",
		""},
	{"trailer Host", start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nHost: b\r\n\r\n", ""},
	{"trailer X-Forwarded-For", start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Forwarded-For: b\r\n\r\n",
		""},
	{"trailer Set-Cookie", start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nSet-Cookie: b\r\n\r\n", ""},
	{"trailer", start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: b\r\n\r\n", got3},
	{"trailers ended by bare LF", start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: b\r\n\n", ""},
	{"no trailers, ended by bare LF", start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\n", ""},
	{"trailer with a space before the colon",
		start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX : b\r\n\r\n", ""},
	{"folded trailer", start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: b\r\n c\r\n\r\n", ""},
	{"trailer with a NUL", start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: b\x00\r\n\r\n", ""},
	{"trailer without a colon", start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX\r\n\r\n", ""},
	{"trailer ended by bare LF", start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: b\n\r\n", ""},
	// Other.
	{"GET with a body that is a request",
		"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 31\r\n\r\nGET /2 HTTP/1.1\r\nHost: abcd\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 31\r\n\r\nGET /2 HTTP/1.1\r\nHost: abcd\r\n\r\n"},
	{"Connection lists Content-Length", start + "Connection: Content-Length\r\nContent-Length: 3\r\n\r\nabc", got3},
	{"Upgrade to h2c",
		start +
			"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\nContent-Length: 3\r\n\r\nabc", got3},
	{"cut short", start + "Content-Length: 5\r\n\r\nabc", ""},
	{"chunks cut short", start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", ""},
}

func TestRefusesWhatTwoParsersCouldReadDifferently(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			status, requests := received(t, v.raw, HeadOptions{})
			if v.want == "" {
				if len(requests) != 0 {
					t.Fatalf("upstream got %q", requests)
				}
				if status != 0 && (status < 400 || status > 499) {
					t.Fatalf("status is %d", status)
				}
				return
			}
			if status != 200 || len(requests) != 1 || requests[0] != v.want {
				t.Fatalf("status %d, upstream got %q,\nwant %q", status, requests, v.want)
			}
		})
	}
}
