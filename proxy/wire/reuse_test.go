package wire

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/proxy/wiretest"
)

// named is an answer of a server that says what it is.
func named(server string) string {
	return "HTTP/1.1 200 OK\r\nServer: " + server + "\r\nContent-Length: 2\r\n\r\nok"
}

// careful is a pool that reuses connections with known servers.
func careful(t testing.TB, up *wiretest.Upstream, change ...func(*Options)) *Upstream {
	t.Helper()
	return pool(t, up, append([]func(*Options){func(o *Options) { o.ReuseAfterBody = ReuseKnown }}, change...)...)
}

const event = `{"a}`

// deliver sends a body and wants a 200.
func deliver(t testing.TB, u *Upstream, body string) {
	t.Helper()
	if ans, err := send(t, u, body); err != nil || ans.Status != 200 {
		t.Fatalf("%v, %+v", err, ans)
	}
}

func send(t testing.TB, u *Upstream, body string) (*Answer, error) {
	t.Helper()
	ans := new(Answer)
	head := strings.Replace(postHead, "4", itoa(len(body)), 1)
	return ans, u.Send(soon(t), []byte(head), []byte(body), u.Reuses([]byte(body)), ans)
}

func stream(t testing.TB, u *Upstream, body string) (*Answer, error) {
	t.Helper()
	ans := new(Answer)
	head := strings.Replace(postHead, "4", itoa(len(body)), 1)
	b := &RequestBody{Reader: strings.NewReader(body), Length: int64(len(body))}
	err := u.Stream(soon(t), []byte(head), b, u.ReusesBehind(len(body) > 0), ans)
	if err == nil && ans.Rest != nil {
		_, err = io.Copy(io.Discard, ans.Rest)
	}
	return ans, err
}

func TestAConnectionThatCarriedABodyIsUsedAgainOnlyWhereTheServiceIsKnownToReadIt(t *testing.T) {
	long := strings.Repeat("x", 128<<10)
	for _, tt := range []struct {
		name     string
		exchange func(testing.TB, *Upstream, string) (*Answer, error)
		body     string
		reads    Reuse
		server   string
		again    bool
	}{
		{"Send without a body", send, "", ReuseNever, "x", true},
		{"Send with a body", send, "body", ReuseNever, "nginx", false},
		{"Send with a body to a service that is said to read it", send, "body", ReuseAlways, "x", true},
		{"Send with a body to a known server", send, "body", ReuseKnown, "nginx/1.22.1", true},
		{"Send with a long body to a known server", send, long, ReuseKnown, "nginx/1.22.1", true},
		{"Send with a body to a server that is not known", send, "body", ReuseKnown, "x", false},
		{"Stream without a body", stream, "", ReuseNever, "x", true},
		{"Stream with a body", stream, "body", ReuseNever, "nginx", false},
		{"Stream with a body to a known server", stream, "body", ReuseKnown, "nginx", true},
		{"Stream with a long body to a known server", stream, long, ReuseKnown, "nginx", true},
		{"Stream with a body to a server that is not known", stream, "body", ReuseKnown, "x", false},
		{"Send with what begins a request to a known server", send, "GET /", ReuseKnown, "nginx", false},
		{"Stream with what begins a request to a known server", stream, "GET /", ReuseKnown, "nginx", false},
		{"Stream with a long body that begins a request to a known server", stream, "GET /" + long, ReuseKnown, "nginx",
			false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := pool(t, wiretest.Script(t, named(tt.server)), func(o *Options) { o.ReuseAfterBody = tt.reads })
			for i := range 2 { // the first answer says what the server is
				if ans, err := tt.exchange(t, u, tt.body); err != nil || ans.Status != 200 {
					t.Fatalf("%v, %+v", err, ans)
				}
				if again := u.idleNow() == 1; i == 1 && again != tt.again {
					t.Errorf("the connection is kept: %v, want %v", again, tt.again)
				}
			}
		})
	}
}

// Nothing is sent that is not part of a request, and what a request says of its connection is what
// happens to it.
func TestTheFirstAnswerSaysWhetherTheNextRequestsShareAConnection(t *testing.T) {
	up := wiretest.Script(t, named("Apache/2.4.62 (Debian)"))
	u := careful(t, up)
	if u.Reuses([]byte(event)) || u.ReusesBehind(true) || !u.Reuses(nil) {
		t.Error("a server is known that did not answer yet")
	}
	for range 5 {
		deliver(t, u, event)
	}
	if got := u.ReuseState(); up.Conns() != 2 || got.Reused != 3 || got.Server != "Apache/2.4.62 (Debian)" ||
		!strings.HasPrefix(got.Known, "Apache drops") || got.Ended != "" {
		t.Errorf("%d connections, %+v", up.Conns(), got)
	}
	for _, r := range up.Requests() {
		if r != postHead+event {
			t.Errorf("the service got %q", r)
		}
	}
}

func TestAServiceThatSaysThatItIsAnotherLosesTheReuse(t *testing.T) {
	var server atomic.Value
	server.Store("nginx")
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		for {
			if _, err := c.ReadRequest(); err != nil || c.Say(named(server.Load().(string))) != nil {
				return
			}
		}
	})
	u := careful(t, up)
	for range 3 {
		deliver(t, u, event)
	}
	server.Store("gunicorn")
	deliver(t, u, event)
	if got := u.ReuseState(); u.idleNow() != 0 || u.Reuses([]byte(event)) || got.Known != "" ||
		got.Server != "gunicorn" || got.Ended != "" {
		t.Errorf("%d idle, %+v", u.idleNow(), got)
	}
	server.Store("nginx")
	deliver(t, u, event)
	if !u.Reuses([]byte(event)) {
		t.Error("it is not known again")
	}
}

func TestABodyThatCouldBeginARequestIsKnown(t *testing.T) {
	for _, body := range []string{event, "a=b c", "<?xml version", `"a b"`, "", "\r\n\r\n", "word"} {
		if beginsRequest([]byte(body)) {
			t.Errorf("%q is taken for the beginning of a request", body)
		}
	}
	for _, body := range []string{"GET /", "\r\nA\t", "  x "} {
		if !beginsRequest([]byte(body)) {
			t.Errorf("%q is not taken for the beginning of a request", body)
		}
	}
}

// What the setting says holds for each body: with true also for one that a server could take for a
// request.
func TestABodyThatBeginsLikeARequestKeepsAConnectionIfEachDoes(t *testing.T) {
	for reads, want := range map[Reuse]int{ReuseNever: 3, ReuseAlways: 1, ReuseKnown: 3} {
		up := wiretest.Script(t, "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 2\r\n\r\nok")
		u := pool(t, up, func(o *Options) { o.ReuseAfterBody = reads })
		for range 3 {
			if _, err := send(t, u, "GET / HTTP/1.1\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
		}
		if got := up.Conns(); got != want {
			t.Errorf("reuse_after_body %v: %d connections, want %d", reads, got, want)
		}
	}
}

// A service may close a connection that it was to keep at any moment, and a body that was sent then
// may have arrived.
func TestABodyTakesNoConnectionThatAnEarlierRequestLeft(t *testing.T) {
	for reads, want := range map[Reuse]int{ReuseNever: 2, ReuseAlways: 1, ReuseKnown: 2} {
		up := wiretest.Script(t, okAnswer)
		u := pool(t, up, func(o *Options) { o.ReuseAfterBody = reads })
		for _, body := range []string{"", "body"} {
			if _, err := send(t, u, body); err != nil {
				t.Fatal(err)
			}
		}
		if got := up.Conns(); got != want {
			t.Errorf("reuse_after_body %v: %d connections, want %d", reads, got, want)
		}
	}
}

// refuseSecond answers the first request of each connection, and to the next one what a parser
// says.
func refuseSecond(t *testing.T, first, refusal string, behind func(*wiretest.Conn)) *wiretest.Upstream {
	return wiretest.Serve(t, func(c *wiretest.Conn) {
		if _, err := c.ReadRequest(); err != nil || c.Say(first) != nil {
			return
		}
		if _, err := c.ReadRequest(); err == nil && c.Say(refusal) == nil {
			behind(c)
		}
	})
}

// The parser of a service may have refused other bytes than those of the request, so that the
// answer says nothing of that.
func TestAnAnswerThatOnlyAParserGivesIsNoOutcome(t *testing.T) {
	closes := func(*wiretest.Conn) {}
	stays := func(c *wiretest.Conn) { _, _ = c.ReadRequest() }
	for name, tt := range map[string]struct {
		server, refusal string
		behind          func(*wiretest.Conn)
		doubted         bool
	}{
		"it says that it closes": {"x",
			"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", stays, true},
		"it closes": {"x", "HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno", closes,
			true},
		"its body ends with the connection": {"x", "HTTP/1.1 400 Bad Request\r\n\r\nno", closes, true},
		"it timed out": {"x",
			"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", stays, true},
		"it knows no such method": {"x",
			"HTTP/1.1 501 Not Implemented\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", stays, true},
		"it goes on": {"x", "HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno", stays,
			false},
		"it refuses otherwise": {"x",
			"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", stays, false},
		"a known server says that it closes": {"nginx",
			"HTTP/1.1 400 Bad Request\r\nServer: nginx\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", stays, true},
		"an application of Apache refuses it": {"Apache",
			"HTTP/1.1 400 Bad Request\r\nServer: Apache\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", stays, false},
		"Apache itself refuses it": {"Apache",
			"HTTP/1.1 400 Bad Request\r\nServer: Apache\r\nContent-Type: text/html; charset=iso-8859-1\r\nConnection: close\r\n" +
				"Content-Length: 2\r\n\r\nno", stays, true},
		"nothing says that it is Apache's application": {"Apache",
			"HTTP/1.1 400 Bad Request\r\nServer: Apache\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", stays,
			true},
	} {
		for _, mode := range []Reuse{ReuseAlways, ReuseKnown} {
			if mode == ReuseKnown && serverOf(&Answer{Fields: []Field{{[]byte("Server"), []byte(tt.server)}}}) == nil {
				continue // its connections are not used again
			}
			t.Run(name+", "+mode.String(), func(t *testing.T) {
				t.Parallel()
				up := refuseSecond(t, named(tt.server), tt.refusal, tt.behind)
				var told []string
				u := pool(t, up, func(o *Options) {
					o.ReuseAfterBody, o.OnReuseEnded = mode, func(why string) { told = append(told, why) }
				})
				for !u.Reuses([]byte(event)) || u.idleNow() == 0 {
					deliver(t, u, event)
				}
				ans, err := send(t, u, event)
				var doubt *ParserError
				if errors.As(err, &doubt) != tt.doubted ||
					tt.doubted && (doubt.Status != ans.Status || wantSent(t, err, AnswerWhole) == nil || ans.Whole) {
					t.Fatalf("%v, %+v", err, ans)
				}
				if got := u.ReuseState(); got.Ended != "" != tt.doubted || got.EndedAt.IsZero() == tt.doubted ||
					len(told) == 1 != tt.doubted || tt.doubted == u.Reuses([]byte(event)) {
					t.Errorf("%+v, told %q", got, told)
				}
			})
		}
	}
}

// On a new connection there was nothing else to refuse.
func TestARefusalOnANewConnectionIsTheAnswerToItsRequest(t *testing.T) {
	for _, mode := range []Reuse{ReuseNever, ReuseAlways, ReuseKnown} {
		u := pool(t, wiretest.Script(t,
			"HTTP/1.1 400 Bad Request\r\nServer: nginx\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
			func(o *Options) {
				o.ReuseAfterBody = mode
			})
		for range 3 {
			if ans, err := send(t, u, event); err != nil || ans.Status != 400 || u.ReuseState().Ended != "" {
				t.Fatalf("%v, %+v", err, ans)
			}
		}
	}
}

// The rest of a long answer says it at its end. What passes through has no outcome: it gets what
// came.
func TestALongAnswerOfAParserEndsWithTheDoubt(t *testing.T) {
	const refusal = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 20\r\n\r\n01234567890123456789"
	for _, passes := range []bool{false, true} {
		u := pool(t, refuseSecond(t, okAnswer, refusal, func(*wiretest.Conn) {}), func(o *Options) {
			o.MaxResponseBody = 10
		})
		deliver(t, u, event)
		if passes {
			if ans, err := stream(t, u, event); err != nil || ans.Status != 400 {
				t.Errorf("%v, %+v", err, ans)
			}
		} else {
			ans, err := send(t, u, event)
			if err != nil || ans.Rest == nil {
				t.Fatalf("%v, %+v", err, ans)
			}
			var doubt *ParserError
			if _, err = io.Copy(io.Discard, ans.Rest); !errors.As(err, &doubt) {
				t.Errorf("the rest ends with %v", err)
			}
		}
		if got := u.ReuseState(); got.Ended != "answered 400 to a request and closed the connection" {
			t.Errorf("passes %v: %+v", passes, got)
		}
	}
}

// What a service says to a body that it took for a request ends the reuse, whenever it comes.
func TestAnAnswerWithoutARequestEndsTheReuse(t *testing.T) {
	const bad, late = "HTTP/1.1 404 Not Found\r\n\r\n", "HTTP/1.1 408 Request Timeout\r\n\r\n"
	for _, network := range []string{"tcp", "unix", "tls"} {
		for name, tt := range map[string]struct {
			atOnce, later string
			ended         string
		}{
			"at once":            {atOnce: bad, ended: `sent "HTTP/1.1 404 Not Found" without a request`},
			"later":              {later: bad, ended: `sent "HTTP/1.1 404 Not Found" without a request`},
			"only to say bye":    {later: late},
			"nothing, it closes": {},
		} {
			t.Run(network+", "+name, func(t *testing.T) {
				t.Parallel()
				begin, said := make(chan struct{}), make(chan struct{})
				serve := func(c *wiretest.Conn) {
					if _, err := c.ReadRequest(); err != nil || c.Say(named("nginx")) != nil {
						return
					}
					if _, err := c.ReadRequest(); err != nil || c.Say(named("nginx")+tt.atOnce) != nil {
						return
					}
					<-begin
					_ = c.Say(tt.later)
					_ = c.Close()
					close(said)
				}
				var up *wiretest.Upstream
				switch network {
				case "unix":
					up = wiretest.ServeUnix(t, serve)
				case "tls":
					up = wiretest.ServeTLS(t, serve)
				default:
					up = wiretest.Serve(t, serve)
				}
				u := pool(t, up)
				deliver(t, u, event)
				deliver(t, u, event)
				close(begin)
				<-said
				if u.idleNow() > 0 {
					awaitFIN(t, u)
				}
				kept, reused, err := u.getConn(soon(t), false)
				if err != nil || reused {
					t.Fatalf("it is used: %v, %v", reused, err)
				}
				kept.close()
				if got := u.ReuseState(); got.Ended != tt.ended {
					t.Errorf("%+v", got)
				}
			})
		}
	}
}

// A service that closes kept connections at its own will does so with a request on its way, whose
// outcome is unknown then. A restart does it once.
func TestAKeptConnectionThatClosesUnderARequestRestsTheReuse(t *testing.T) {
	now := time.Now()
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		if _, err := c.ReadRequest(); err == nil && c.Say(named("nginx")) == nil {
			_, _ = c.ReadRequest()
		}
	})
	u := careful(t, up, func(o *Options) { o.MaxAge, o.Now = 1<<62, func() time.Time { return now } })
	for _, rest := range []time.Duration{firstRest, restGrows * firstRest} {
		for u.idleNow() == 0 {
			deliver(t, u, event)
		}
		_, err := send(t, u, event)
		wantSent(t, err, BodyWritten)
		if got := u.ReuseState(); u.Reuses([]byte(event)) || !got.RestsUntil.Equal(now.Add(rest)) || got.Ended != "" {
			t.Errorf("%+v, want a rest of %v", got, rest)
		}
		deliver(t, u, event)
		now = now.Add(rest + 1)
		if !u.Reuses([]byte(event)) {
			t.Error("the rest does not end")
		}
	}
}

// Where the kernel does not count, a request that meets the close of a connection has an unknown
// outcome.
func TestNothingIsKeptWhereTheKernelDoesNotCount(t *testing.T) {
	u := careful(t, wiretest.Script(t, okAnswer))
	ans := &Answer{Fields: []Field{{[]byte("Server"), []byte("nginx")}}}
	if u.keepsBehind(&conn{tcp: true, ahead: -1}, ans) {
		t.Error("it is kept")
	}
	if !u.keepsBehind(&conn{ahead: -1}, ans) { // a unix socket takes nothing that its peer does not get
		t.Error("a unix socket is not kept")
	}
}

func TestAKnownServerIsNamedAsAWhole(t *testing.T) {
	for server, want := range map[string]string{
		"nginx": "nginx", "nginx/1.17.7": "nginx", "nginx/1.22.1": "nginx", "nginx/2.0.0": "nginx",
		"nginx/1.18.0 (Ubuntu)": "nginx",
		"nginx/1.17.6":          "", "nginx/1.2.10": "", "nginx/0.99.99": "", "nginx/": "", "nginx/1.22": "",
		"nginx/1.22.1.1": "", "nginx/1.22.x": "", "nginx/+1.22.1": "", "nginxy": "", "Nginx": "",
		"nginx/1.22.1 + Phusion Passenger(R) 6.0.4": "", "openresty/1.21.4.1": "", "nginx (x)": "",
		"Apache": "Apache", "Apache/2.4.53": "Apache", "Apache/2.4.62 (Debian) mod_wsgi/4.9.4 Python/3.11": "Apache",
		"Apache/2.10.0": "Apache",
		"Apache/2.4.52": "", "Apache/2": "", "Apache/2.4": "", "Apache TomEE": "", "Apache-Coyote/1.1": "",
		"Apache (x)": "", "Apache/1.3.99": "",
		"": "", "gunicorn": "",
	} {
		got := ""
		if s := serverOf(&Answer{Fields: []Field{{[]byte("SERVER"), []byte(server)}}}); s != nil {
			got = s.product
		}
		if got != want {
			t.Errorf("%q is %q, want %q", server, got, want)
		}
	}
	if serverOf(&Answer{Fields: []Field{{[]byte("Server"), []byte("nginx")},
		{[]byte("Server"), []byte("nginx")}}}) != nil || serverOf(new(Answer)) != nil {
		t.Error("two, or none, are known")
	}
}

// An idle connection may hold a worker of the service.
func TestAnIdleConnectionIsClosedSoon(t *testing.T) {
	gone := make(chan struct{}, 8)
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		for {
			if _, err := c.ReadRequest(); err != nil {
				gone <- struct{}{}
				return
			}
			_ = c.Say(okAnswer)
		}
	})
	u := pool(t, up, func(o *Options) { o.MaxAge = 0 })
	began := time.Now()
	deliver(t, u, event)
	<-gone
	if took := time.Since(began); took < shortestLife || u.idleNow() != 0 {
		t.Errorf("closed after %v, %d idle", took, u.idleNow())
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.sweeps {
		t.Error("the timer goes on")
	}
}

// A service that takes long needs its workers more than we need its connections.
func TestConnectionsToASlowServiceAreNotKept(t *testing.T) {
	u := careful(t, wiretest.Script(t, okAnswer), func(o *Options) { o.MaxAge = 0 })
	ans := &Answer{Fields: []Field{{[]byte("Server"), []byte("nginx")}}}
	for _, slow := range []bool{true, false} {
		if u.learnServer(ans, slow); u.Reuses([]byte(event)) == slow {
			t.Errorf("slow: %v", slow)
		}
	}
	for _, c := range []struct {
		took, setup time.Duration
		slow        bool
	}{{slowAnswer, 0, false}, {slowAnswer + 1, 0, true}, {time.Second, 20 * time.Millisecond, false}, {time.Second + 1,
		20 * time.Millisecond, true}} {
		if (&conn{setup: c.setup}).isSlow(c.took) != c.slow {
			t.Errorf("%+v", c)
		}
	}
}

func TestAConnectionTakesNoRequestWhenItIsOld(t *testing.T) {
	now := time.Now()
	u := NewUpstream(Options{Now: func() time.Time { return now }})
	aged := func(age, setup time.Duration) bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		return u.retireIfOld(&conn{made: now.Add(-age), setup: setup}, now)
	}
	for _, c := range []struct {
		age, setup time.Duration
		retires    bool
	}{
		{shortestLife - 1, 0, false}, {shortestLife, 0, true}, {shortestLife, 10 * time.Millisecond, false},
		{200 * time.Millisecond, 10 * time.Millisecond, true},
		{longestLife - 1, time.Second, false}, {longestLife, time.Second, true},
	} {
		if got := aged(c.age, c.setup); got != c.retires {
			t.Errorf("%+v", c)
		}
	}
	closed := 0 // as many at once as a small service has workers, and then as many as there are ports
	for range 1000 {
		if aged(shortestLife, 0) {
			closed++
		}
	}
	if closed > retireAtOnce || closed < retireAtOnce-4 || aged(longestLife-1, 0) || !aged(longestLife, 0) {
		t.Errorf("%d were closed at once", closed)
	}
	now = now.Add(time.Second)
	if !aged(shortestLife, 0) {
		t.Error("none is closed later")
	}
}
