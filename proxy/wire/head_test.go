package wire

import (
	"bufio"
	"errors"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// parse reads a head as the server does.
func parse(t testing.TB, raw string) (*Head, error) {
	t.Helper()
	var h fasthttp.RequestHeader
	if err := h.Read(bufio.NewReader(strings.NewReader(raw))); err != nil {
		t.Fatalf("fasthttp refuses the head: %v", err)
	}
	head := new(Head)
	return head, ParseHead(&h, head)
}

func rebuild(t testing.TB, raw string, o HeadOptions) string {
	t.Helper()
	head, err := parse(t, raw)
	if err != nil {
		t.Fatal(err)
	}
	return string(head.AppendTo(nil, o))
}

// TestForwardsByteForByte is the table of what other proxies change.
func TestForwardsByteForByte(t *testing.T) {
	same := []struct{ name, raw string }{
		{"order",
			"POST / HTTP/1.1\r\nX-B: 1\r\nContent-Length: 0\r\nA: 2\r\nUser-Agent: u\r\nHost: a\r\nContent-Type: t\r\n\r\n"},
		{"case of names",
			"GET / HTTP/1.1\r\nhOST: a\r\nStripe-signature: s\r\nETAG: e\r\nuser-agent: u\r\ncontent-TYPE: t\r\n\r\n"},
		{"spacing", "GET / HTTP/1.1\r\nHost: a\r\nX:  a  \r\nY:\ta\r\nZ:a\r\n\r\n"},
		{"duplicates",
			"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nX: 2\r\nContent-Type: a\r\nContent-Type: b\r\nUser-Agent: 1\r\nUser-Agent: 2\r\n\r\n"},
		{"empty headers", "GET / HTTP/1.1\r\nHost: a\r\nX:\r\nUser-Agent: \r\nContent-Type:\r\n\r\n"},
		{"no User-Agent, no Content-Type", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"},
		{"case of the Host", "GET / HTTP/1.1\r\nHost: EXAMPLE.com:80\r\n\r\n"},
		{"userinfo in the Host", "GET / HTTP/1.1\r\nHost: u:p@h\r\n\r\n"},
		{"double slash", "GET //a HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"escaped slash", "GET /a%2Fb%7E/../c/./\\d HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"bytes beyond ASCII in a value", "GET /%c3%a9 HTTP/1.1\r\nHost: a\r\nX: \xff\xe9\r\n\r\n"},
		{"empty query", "GET /a? HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"fragment", "GET /a?b#frag HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"path that looks like a URL", "GET //evil.com://x/y HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"query", "GET /?a=%20+b&&c HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"custom method", "pOsT / HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"POST without body", "POST / HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"OPTIONS of the server", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"GET with a body", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"},
		{"multipart body",
			"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 63\r\n\r\n--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n--x--\r\n\r\n\r\n"},
		{"urlencoded body",
			"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\nb=%20&a=+"},
		{"cookies", "GET / HTTP/1.1\r\nHost: a\r\nCookie: b=1;a=2\r\ncookie: c=\r\n\r\n"},
		{"names that only begin alike", "GET / HTTP/1.1\r\nHost: a\r\nHooklocker: 1\r\nProxying: 2\r\nTEA: 3\r\n\r\n"},
	}
	for _, tt := range same {
		t.Run(tt.name, func(t *testing.T) {
			if _, requests := received(t, tt.raw, HeadOptions{}); len(requests) != 1 || requests[0] != tt.raw {
				t.Errorf("upstream got %q,\nwant %q", requests, tt.raw)
			}
		})
	}
}

func TestChangesOnlyWhatBelongsToTheConnection(t *testing.T) {
	tests := []struct{ name, raw, want string }{
		{"chunks become a length in their place",
			"POST / HTTP/1.1\r\nA: 1\r\ntransfer-encoding: chunked\r\nHost: a\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
			"POST / HTTP/1.1\r\nA: 1\r\nContent-Length: 3\r\nHost: a\r\n\r\nabc"},
		{"empty chunked body", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"},
		{"Expect", "POST / HTTP/1.1\r\nHost: a\r\nexpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", got3},
		{"HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nX: 1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\n"},
		{"HTTP/1.0 without Host", "GET / HTTP/1.0\r\nX: 1\r\n\r\n", "GET / HTTP/1.1\r\nHost: given\r\nX: 1\r\n\r\n"},
		{"HTTP/1.0 without headers", "GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: given\r\n\r\n"},
		{"hop-by-hop",
			"GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\nProxy-Authorization: x\r\nProxy-Authenticate: x\r\nTrailer: X\r\nUpgrade: x\r\nHTTP2-Settings: x\r\nConnection: close\r\nX: 1\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\n"},
		{"listed by Connection",
			"GET / HTTP/1.1\r\nHost: a\r\nX-One: 1\r\nconnection: close, x-one\r\nX-Two: 2\r\nConnection:,X-TWO ,\r\nX-Three: 3\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: a\r\nX-Three: 3\r\n\r\n"},
		{"what Connection cannot take away",
			"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: 1\r\nCookie: 2\r\nContent-Type: 3\r\nX-Forwarded-For: 4\r\nX-Forwarded-Proto: 5\r\nX-Forwarded-Host: 6\r\nConnection: host, authorization, cookie, content-type, x-forwarded-for, x-forwarded-proto, x-forwarded-host\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: 1\r\nCookie: 2\r\nContent-Type: 3\r\nX-Forwarded-For: 4\r\nX-Forwarded-Proto: 5\r\nX-Forwarded-Host: 6\r\n\r\n"},
		{"what a CGI program could read as ours",
			"GET / HTTP/1.1\r\nHost: a\r\nHooklock-Execution: 1\r\nhooklock_key: 2\r\nHOOKLOCK-x: 3\r\nHooklock.Y: 4\r\nHooklock-: 5\r\nproxy: 6\r\nProxy: 7\r\nX: 8\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: a\r\nX: 8\r\n\r\n"},
		{"leading blank lines", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, requests := received(t, tt.raw, HeadOptions{Host: []byte("given")})
			if len(requests) != 1 || requests[0] != tt.want {
				t.Errorf("upstream got %q,\nwant %q", requests, tt.want)
			}
		})
	}
}

func TestAddsWhatARouteAdds(t *testing.T) {
	o := HeadOptions{
		ForwardedFor:   []byte("9.9.9.9"),
		ForwardedProto: []byte("https"),
		ForwardedHost:  []byte("h"),
		Traceparent:    []byte("00-t"),
		Extra:          []byte("Hooklock-Key: k\r\nHooklock-Attempt: 1\r\n"),
	}
	const extra = "Hooklock-Key: k\r\nHooklock-Attempt: 1\r\n\r\n"
	tests := []struct{ name, lines, want string }{
		{"all absent", "",
			"X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: h\r\nTraceparent: 00-t\r\n" +
				extra},
		{"all there",
			"x-forwarded-for:  1.1.1.1 \r\nX-FORWARDED-PROTO: http\r\nx-forwarded-host:\r\nTraceParent: 00-s\r\n",
			"x-forwarded-for:  1.1.1.1, 9.9.9.9 \r\nX-FORWARDED-PROTO: http\r\nx-forwarded-host:\r\nTraceParent: 00-s\r\n" + extra},
		{"only the last X-Forwarded-For grows",
			"X-Forwarded-For: 1\r\nX-Forwarded-For:2\r\nTraceparent: 1\r\nX-Forwarded-Host: 1\r\nX-Forwarded-Proto: 1\r\n",
			"X-Forwarded-For: 1\r\nX-Forwarded-For:2, 9.9.9.9\r\nTraceparent: 1\r\nX-Forwarded-Host: 1\r\nX-Forwarded-Proto: 1\r\n" + extra},
		{"an empty X-Forwarded-For is filled",
			"X-Forwarded-For: \r\nTraceparent: 1\r\nX-Forwarded-Host: 1\r\nX-Forwarded-Proto: 1\r\n",
			"X-Forwarded-For: 9.9.9.9\r\nTraceparent: 1\r\nX-Forwarded-Host: 1\r\nX-Forwarded-Proto: 1\r\n" + extra},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const line = "GET / HTTP/1.1\r\nHost: a\r\n"
			if got := rebuild(t, line+tt.lines+"\r\n", o); got != line+tt.want {
				t.Errorf("got %q,\nwant %q", got, line+tt.want)
			}
			if got := rebuild(t, line+tt.lines+"\r\n", HeadOptions{}); got != line+tt.lines+"\r\n" {
				t.Errorf("without options got %q", got)
			}
		})
	}
}

func TestAFieldNeverBeginsAnotherLine(t *testing.T) {
	got := string(AppendField([]byte("A: b\r\n"), "Hooklock-Workflow", []byte("a/b\r\nHost: evil\x00\xc3\xa9 100%")))
	if want := "A: b\r\nHooklock-Workflow: a/b%0D%0AHost: evil%00%C3%A9 100%\r\n"; got != want {
		t.Errorf("got %q", got)
	}
}

func TestKeepsTheFramingOfAStreamedBody(t *testing.T) {
	for _, framing := range []string{"Content-Length: 3", "content-length:3", "transfer-encoding: chunked"} {
		raw := "POST / HTTP/1.1\r\nHost: a\r\n" + framing + "\r\nX: 1\r\n\r\n"
		if got := rebuild(t, raw, HeadOptions{Streamed: true}); got != raw {
			t.Errorf("got %q, want %q", got, raw)
		}
	}
}

func TestSaysWhatAHeadDeclares(t *testing.T) {
	head, err := parse(t,
		"POST /x?y HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\nExpect: 100-Continue\r\nX:  v \r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	if string(head.Method()) != "POST" || string(head.Target()) != "/x?y" || head.HTTP10() || !head.HasBody() ||
		(head.length < 0) ||
		head.length != 7 || !head.expects || head.Upgrade() != nil || string(fieldValue(head.fields, "x")) != "v" ||
		len(head.Fields()) != 4 {
		t.Errorf("head is %+v", head)
	}
	head, err = parse(t, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
	if err != nil || !head.HasBody() || !(head.length < 0) || head.length != -1 {
		t.Errorf("head is %+v, %v", head, err)
	}
	head, err = parse(t, "GET / HTTP/1.0\r\nContent-Length: 0\r\n\r\n")
	if err != nil || head.HasBody() || head.length != 0 || !head.HTTP10() {
		t.Errorf("head is %+v, %v", head, err)
	}
}

func TestOffersOnlyUpgradesThatCanBeTunnelled(t *testing.T) {
	tests := []struct{ version, lines, want string }{
		{"1.1", "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n", "websocket"},
		{"1.1", "Upgrade: websocket\r\n", ""},
		{"1.1", "Connection: Upgrade\r\n", ""},
		{"1.1", "Connection: Upgrade\r\nUpgrade:\r\n", ""},
		{"1.1", "Connection: Upgrade\r\nUpgrade: h2c\r\n", ""},
		{"1.1", "Connection: Upgrade\r\nUpgrade: websocket, H2C\r\n", ""},
		{"1.1", "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: TLS/1.0\r\n", ""},
		{"1.1", "Connection: Upgrade\r\nUpgrade: HTTP/2.0\r\n", ""},
		{"1.0", "Connection: Upgrade\r\nUpgrade: websocket\r\n", ""},
	}
	for _, tt := range tests {
		head, err := parse(t, "GET / HTTP/"+tt.version+"\r\nHost: a\r\n"+tt.lines+"\r\n")
		if err != nil || string(head.Upgrade()) != tt.want {
			t.Errorf("%q: offered %q, %v, want %q", tt.lines, head.Upgrade(), err, tt.want)
		}
		want := "GET / HTTP/1.1\r\nHost: a\r\n"
		if tt.want != "" {
			want += "Connection: Upgrade\r\nUpgrade: websocket\r\n"
		}
		if got := string(head.AppendTo(nil, HeadOptions{Upgrade: true})); got != want+"\r\n" {
			t.Errorf("%q: sent %q", tt.lines, got)
		}
	}
}

func TestNamesWhyAHeadIsRefused(t *testing.T) {
	tests := []struct {
		raw  string
		want error
	}{
		{"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", ErrMethod},
		{"trace / HTTP/1.1\r\nHost: a\r\n\r\n", ErrMethod},
		{"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", ErrMethod},
		{"GET / HTTP/1.2\r\nHost: a\r\n\r\n", ErrVersion},
		{"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", ErrTarget},
		{"POST /guarded\xa0 HTTP/1.1\r\nHost: a\r\n\r\n", ErrTarget},
		{"POST /a?\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n", ErrTarget},
		{"POST /guarded#x HTTP/1.1\r\nHost: a\r\n\r\n", ErrTarget},
		{"POST /guarded#?x HTTP/1.1\r\nHost: a\r\n\r\n", ErrTarget},
		{"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", ErrLine},
		{"GET / HTTP/1.1\r\nHost: a\r\nA B: c\r\n\r\n", ErrLine},
		{"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", ErrFraming},
		{"GET / HTTP/1.1\r\nHost: a\r\nConnection: " + strings.Repeat("a,", 17) + "\r\n\r\n", ErrConnection},
		{"GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("Connection: a\r\n", 17) + "\r\n", ErrConnection},
	}
	for _, tt := range tests {
		if _, err := parse(t, tt.raw); !errors.Is(err, tt.want) {
			t.Errorf("%q: error is %v, want %v", tt.raw, err, tt.want)
		}
	}
}

// TestRefusesHostsThatFasthttpWouldNotLetThrough checks what fasthttp refuses itself, unless told
// to leave headers alone.
func TestRefusesHostsThatFasthttpWouldNotLetThrough(t *testing.T) {
	for _, raw := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
	} {
		var h fasthttp.RequestHeader
		h.DisableSpecialHeader()
		if err := h.Read(bufio.NewReader(strings.NewReader(raw))); err != nil {
			t.Fatal(err)
		}
		if err := ParseHead(&h, new(Head)); !errors.Is(err, ErrHost) {
			t.Errorf("%q: error is %v", raw, err)
		}
	}
}

func TestAReusedHeadAllocatesNothing(t *testing.T) {
	var h fasthttp.RequestHeader
	if err := h.Read(bufio.NewReader(strings.NewReader(benchHead))); err != nil {
		t.Fatal(err)
	}
	var head Head
	var dst []byte
	n := testing.AllocsPerRun(100, func() {
		if err := ParseHead(&h, &head); err != nil {
			t.Fatal(err)
		}
		dst = head.AppendTo(dst[:0], HeadOptions{Length: 3, ForwardedFor: head.target, Extra: head.target})
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAnotherValueLeavesTheRestOfItsLineAlone(t *testing.T) {
	const before, after = "POST /a HTTP/1.1\r\nhOST: a\r\nX-Other: b\r\n", "x-other: \t c\r\nContent-Length: 0\r\n\r\n"
	for _, tt := range []struct{ line, want string }{
		{"X-Sig: old", "X-Sig: new"},
		{"x-sIG:old", "x-sIG:new"},
		{"X-Sig: \t old\t ", "X-Sig: \t new\t "},
		{"X-Sig:", "X-Sig:new"},
		{"X-Sig: ", "X-Sig: new"},
		{"X-Sig: x-sig: X-Sig", "X-Sig: new"},
		{"X-Sig: a longer one than it was", "X-Sig: new"},
	} {
		head, err := parse(t, before+tt.line+"\r\n"+after)
		if err != nil {
			t.Fatal(err)
		}
		head.SetValue(2, []byte("new"))
		if got := string(head.AppendTo(nil, HeadOptions{})); got != before+tt.want+"\r\n"+after {
			t.Errorf("%q became %q", tt.line, got)
		}
		head.SetValue(2, []byte("another"))
		if f := head.Fields()[2]; string(f.Value) != "another" || !equalFold(f.Name, "x-sig") {
			t.Errorf("the field is %s: %s", f.Name, f.Value)
		}
		if got := string(head.AppendTo(nil, HeadOptions{})); got != before+strings.Replace(tt.want, "new", "another",
			1)+"\r\n"+after {
			t.Errorf("%q became %q", tt.line, got)
		}
	}
}

func TestADroppedLineStaysDroppedWithAnotherValue(t *testing.T) {
	head, err := parse(t, "POST / HTTP/1.1\r\nHost: a\r\nConnection: x-sig\r\nX-Sig: old\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	head.SetValue(2, []byte("new"))
	if got := string(head.AppendTo(nil, HeadOptions{})); strings.Contains(got, "new") {
		t.Errorf("sent: %q", got)
	}
}
