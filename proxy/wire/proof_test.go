package wire

import (
	"bufio"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/proxy/wiretest"
)

// service is an upstream that takes an empty line before a request as a server does.
type service struct {
	leaves  bool                             // it does not read bodies
	onEmpty func(c *wiretest.Conn) (on bool) // what it does at an empty line; nil: it ignores it
	answer  string                           // okAnswer
	behind  func(c *wiretest.Conn) (on bool) // what it does behind an answer; nil: it goes on

	empty, bad, posts atomic.Int32 // empty lines, lines that are no request line, and requests
}

func (s *service) serve(c *wiretest.Conn) {
	br := bufio.NewReader(c)
	answer := s.answer
	if answer == "" {
		answer = okAnswer
	}
	for {
		line, err := br.ReadString('\n')
		switch {
		case err != nil:
			return
		case line == "\r\n":
			s.empty.Add(1)
			if s.onEmpty != nil && !s.onEmpty(c) {
				return
			}
			continue
		case !strings.HasSuffix(line, " HTTP/1.1\r\n") || strings.HasPrefix(line, "{"):
			s.bad.Add(1)
			_ = c.Say("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
			return
		}
		length := 0
		for line != "\r\n" {
			if line, err = br.ReadString('\n'); err != nil {
				return
			}
			if line == "Content-Length: 4\r\n" {
				length = 4
			}
		}
		if !s.leaves {
			if _, err := br.Discard(length); err != nil {
				return
			}
		}
		s.posts.Add(1)
		if c.Say(answer) != nil || s.behind != nil && !s.behind(c) {
			return
		}
	}
}

func (s *service) start(t *testing.T, network string) *wiretest.Upstream {
	t.Helper()
	switch network {
	case "unix":
		return wiretest.ServeUnix(t, s.serve)
	case "tls":
		return wiretest.ServeTLS(t, s.serve)
	}
	return wiretest.Serve(t, s.serve)
}

// proving is a pool with ReuseProven, which need not wait long.
func proving(t *testing.T, up *wiretest.Upstream, change ...func(*Options)) *Upstream {
	t.Helper()
	return pool(t, up, append([]func(*Options){func(o *Options) { o.ReuseAfterBody, o.silence = ReuseProven, time.Millisecond }}, change...)...)
}

// slow makes the proof last longer than any test.
func slow(o *Options) { o.silence = time.Hour }

// patient gives a service the time to answer that the tests' own machine may need.
func patient(o *Options) { o.silence = time.Second }

// deliver sends a body, which a sender has signed if it is trusted.
func deliver(t *testing.T, u *Upstream, body string, trusted bool) {
	t.Helper()
	var ans Answer
	if err := u.Send(soon(t), []byte(postHead), []byte(body), u.Reuses([]byte(body), trusted), &ans); err != nil || ans.Status != 200 {
		t.Fatalf("%v, %+v", err, ans)
	}
}

const event = `{"a}`

// proved waits until no connection is in the proof.
func proved(t *testing.T, u *Upstream) ReuseState {
	t.Helper()
	until(t, "the proof is over", func() bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		return u.inProof == 0
	})
	return u.ReuseState()
}

func TestAConnectionThatStaysSilentBehindTheEmptyLineIsUsedAgain(t *testing.T) {
	for _, network := range []string{"tcp", "unix", "tls"} {
		s := &service{}
		up := s.start(t, network)
		u := proving(t, up)
		for i := range 5 {
			deliver(t, u, event, true)
			if got := proved(t, u); got.Ended != "" || got.Proven != uint64(i+1) || got.Reused != uint64(i) || u.idleNow() != 1 {
				t.Fatalf("%s: %+v", network, got)
			}
		}
		until(t, "the service has read the last empty line", func() bool { return s.empty.Load() == 10 })
		if up.Conns() != 1 || s.posts.Load() != 5 {
			t.Errorf("%s: %d connections, %d requests", network, up.Conns(), s.posts.Load())
		}
	}
}

// What a service does instead ends the reuse, and it is not asked again.
func TestTheFirstConnectionThatIsNotSilentEndsTheReuse(t *testing.T) {
	on := func(f func(*wiretest.Conn)) func(*wiretest.Conn) bool {
		return func(c *wiretest.Conn) bool { f(c); return false }
	}
	const bad = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
	for name, tt := range map[string]struct {
		service func() *service
		want    string
		empty   int32
	}{
		"it leaves the body unread": {func() *service { return &service{leaves: true} }, `sent "HTTP/1.1 400 Bad Request"`, 0},
		"it refuses the empty line": {func() *service { return &service{onEmpty: on(func(c *wiretest.Conn) { _ = c.Say(bad) })} }, `sent "HTTP/1.1 400 Bad Request"`, 1},
		"it closes at it":           {func() *service { return &service{onEmpty: on(func(c *wiretest.Conn) { _ = c.Close() })} }, "closed the connection", 1},
		"it resets at it":           {func() *service { return &service{onEmpty: on(func(c *wiretest.Conn) { _ = c.Reset() })} }, "broke the connection", 1},
		"it answers twice":          {func() *service { return &service{answer: okAnswer + bad} }, `sent "HTTP/1.1 400 Bad Request"`, 0},
	} {
		for _, network := range []string{"tcp", "unix", "tls"} {
			if network == "unix" && tt.want == "broke the connection" {
				continue // a unix socket has no reset
			}
			t.Run(name+", "+network, func(t *testing.T) {
				t.Parallel()
				s := tt.service()
				up := s.start(t, network)
				var told []string
				u := proving(t, up, patient, func(o *Options) { o.OnReuseEnded = func(why string) { told = append(told, why) } })
				for range 3 {
					deliver(t, u, event, true)
					if got := proved(t, u); !strings.HasPrefix(got.Ended, tt.want) || got.EndedAt.IsZero() || got.Proven != 0 {
						t.Fatalf("%+v, want %q", got, tt.want)
					}
				}
				if len(told) != 1 || up.Conns() != 3 || u.idleNow() != 0 || u.Reuses([]byte(event), true) {
					t.Errorf("told %q, %d connections", told, up.Conns())
				}
				if s.empty.Load() != tt.empty || s.bad.Load() > 1 {
					t.Errorf("%d empty lines, %d bad ones", s.empty.Load(), s.bad.Load())
				}
			})
		}
	}
}

// Puma is silent at an empty line that comes at once, and answers 400 to what follows, whatever it is.
func TestAServiceThatRefusesWhatFollowsTheEmptyLineIsFoundOutBeforeARequestDoes(t *testing.T) {
	refused := 0
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		if _, err := c.ReadRequest(); err != nil || c.Say(okAnswer) != nil {
			return
		}
		if _, err := io.ReadFull(c, make([]byte, 2)); err != nil {
			return
		}
		if n, _ := c.Read(make([]byte, 2)); n > 0 {
			refused++
			_ = c.Say("HTTP/1.1 400 Bad Request\r\n\r\n")
		}
	})
	u := proving(t, up, patient)
	for range 3 {
		deliver(t, u, event, true)
		if got := proved(t, u); got.Ended != `sent "HTTP/1.1 400 Bad Request"` {
			t.Errorf("%+v", got)
		}
	}
	if up.Close(); refused != 1 || up.Conns() != 3 {
		t.Errorf("%d refusals on %d connections", refused, up.Conns())
	}
}

// One that is found out later than in the first proofs is not asked again.
func TestARefusedRequestOnAKeptConnectionEndsTheReuse(t *testing.T) {
	for _, status := range []string{"400", "408"} {
		up := wiretest.Serve(t, func(c *wiretest.Conn) {
			for answer := okAnswer; ; answer = "HTTP/1.1 " + status + " No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" {
				if _, err := c.ReadRequest(); err != nil || c.Say(answer) != nil {
					return
				}
			}
		})
		u := proving(t, up)
		deliver(t, u, event, true)
		proved(t, u)
		var ans Answer
		if err := u.Send(soon(t), []byte(postHead), []byte(event), true, &ans); err != nil || itoa(ans.Status) != status {
			t.Fatal(err, ans.Status)
		}
		if got := u.ReuseState(); got.Ended != "answered "+status+" to a request and closed the connection" {
			t.Errorf("%+v", got)
		}
	}
}

func TestWhatEndsBesideTheProofSaysNothingOfTheService(t *testing.T) {
	const closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
	s := &service{answer: closing}
	up := s.start(t, "tcp")
	u := proving(t, up)
	for range 3 {
		deliver(t, u, event, true)
		if got := proved(t, u); got.Ended != "" || got.Proven != 0 || u.idleNow() != 0 {
			t.Fatalf("%+v", got)
		}
	}
	if up.Conns() != 3 || s.empty.Load() != 0 {
		t.Errorf("%d connections, %d empty lines", up.Conns(), s.empty.Load())
	}
}

// A stranger's body may be the beginning of a request, which leaves a connection silent.
func TestABodyThatAStrangerMayHaveWrittenGoesOverAConnectionOfItsOwn(t *testing.T) {
	s := &service{}
	up := s.start(t, "tcp")
	u := proving(t, up)
	deliver(t, u, event, true)
	proved(t, u)
	deliver(t, u, event, false)
	deliver(t, u, "GET ", true)
	deliver(t, u, "\r\nA\t", true)
	if got := proved(t, u); up.Conns() != 4 || got.Proven != 1 || got.Reused != 0 || u.idleNow() != 1 {
		t.Errorf("%d connections, %+v", up.Conns(), got)
	}
	for _, body := range []string{event, "a=b c", "<?xml version", `"a b"`, "", "\r\n\r\n", "word"} {
		if !u.Reuses([]byte(body), true) {
			t.Errorf("%q is taken for the beginning of a request", body)
		}
	}
}

func TestABurstAsksAServiceOnce(t *testing.T) {
	var all sync.WaitGroup
	all.Add(8)
	s := &service{answer: okAnswer}
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		if _, err := c.ReadRequest(); err != nil {
			return
		}
		all.Done()
		all.Wait()
		_ = c.Say(okAnswer)
		s.serve(c)
	})
	u := proving(t, up, slow)
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() { deliver(t, u, event, true) })
	}
	senders.Wait()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.inProof != 1 || len(u.proving) != 1 || len(u.idle) != 0 {
		t.Errorf("%d in proof, %d idle", u.inProof, len(u.idle))
	}
}

func TestTheConnectionThatWasSilentForLongestIsUsedFirst(t *testing.T) {
	s := &service{}
	u := proving(t, s.start(t, "tcp"))
	deliver(t, u, event, true)
	proved(t, u)
	a, _ := u.pop()
	deliver(t, u, event, true)
	proved(t, u)
	b, _ := u.pop()
	u.inProof += 2
	u.keep([]*conn{a})
	u.keep([]*conn{b})
	if first, _ := u.pop(); first != a {
		t.Error("the newer one is used first")
	}
	if second, _ := u.pop(); second != b {
		t.Error("the newer one is gone")
	}
	a.close()
	b.close()
}

// What a service says to a body later than in the proof ends the reuse, too.
func TestALateAnswerToABodyEndsTheReuse(t *testing.T) {
	for _, network := range []string{"tcp", "unix", "tls"} {
		late, said := make(chan struct{}), make(chan struct{})
		lines := 0
		up := (&service{onEmpty: func(c *wiretest.Conn) bool {
			if lines++; lines == 2 {
				<-late
				_ = c.Say("HTTP/1.1 404 Not Found\r\n\r\n")
				close(said)
			}
			return true
		}}).start(t, network)
		u := proving(t, up)
		deliver(t, u, event, true)
		proved(t, u)
		close(late)
		<-said
		awaitFIN(t, u)
		deliver(t, u, event, true)
		if got := u.ReuseState(); got.Ended != `sent "HTTP/1.1 404 Not Found"` && got.Ended != "sent a second answer" {
			t.Errorf("%s: %+v", network, got)
		}
	}
}

func TestCloseEndsWhatIsInTheProof(t *testing.T) {
	gone := make(chan struct{})
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		(&service{}).serve(c)
		close(gone)
	})
	u := proving(t, up, slow)
	deliver(t, u, event, true)
	_ = u.Close()
	<-gone
	if proved(t, u); u.idleNow() != 0 {
		t.Error("it is kept")
	}
}

func TestAConnectionIsNotUsedNearTheEndThatTheServiceGivesIt(t *testing.T) {
	for field, want := range map[string]time.Duration{
		"timeout=5, max=100": 2500 * time.Millisecond, "max=7,timeout = 3": 1500 * time.Millisecond, "timeout=0": 1, "max=3": 0, "timeout=x": 0, "": 0,
	} {
		ans := Answer{Fields: []Field{{Name: []byte("Keep-Alive"), Value: []byte(field)}}}
		if got := announcedAge(&ans); got != want {
			t.Errorf("%q: %v, want %v", field, got, want)
		}
	}
	now := time.Now()
	s := &service{answer: "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=2\r\nContent-Length: 2\r\n\r\nok"}
	up := s.start(t, "tcp")
	u := proving(t, up, func(o *Options) { o.Now = func() time.Time { return now } })
	for i, after := range []time.Duration{0, 999 * time.Millisecond, time.Second} {
		now = now.Add(after)
		deliver(t, u, event, true)
		proved(t, u)
		if want := max(1, i); up.Conns() != want {
			t.Errorf("%d connections after %v, want %d", up.Conns(), after, want)
		}
	}
}

func TestAnIdleConnectionThatTheServiceClosedMakesOthersBeUsedYoung(t *testing.T) {
	now := time.Now()
	var over atomic.Pointer[chan struct{}]
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		for {
			if _, err := c.ReadRequest(); err != nil || c.Say(okAnswer) != nil {
				return
			}
			if end := over.Load(); end != nil {
				<-*end
				return
			}
		}
	})
	u := pool(t, up, func(o *Options) { o.Now = func() time.Time { return now } })
	end := make(chan struct{})
	over.Store(&end)
	deliver(t, u, "body", true)
	close(end)
	awaitFIN(t, u)
	over.Store(nil)
	for i, after := range []time.Duration{2 * time.Second, 999 * time.Millisecond, time.Second} {
		now = now.Add(after)
		deliver(t, u, "body", true)
		if want := []int{2, 2, 3}[i]; up.Conns() != want {
			t.Errorf("%d connections, want %d", up.Conns(), want)
		}
	}
}

// A service that closes connections at any age will do so with a request on its way. A restart does it once.
func TestAServiceThatBreaksYoungConnectionsAgainEndsTheReuse(t *testing.T) {
	now := time.Now()
	gone := make(chan struct{})
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		if _, err := c.ReadRequest(); err == nil && c.Say(okAnswer) == nil {
			_, _ = io.ReadFull(c, make([]byte, 4))
			<-gone
		}
	})
	u := proving(t, up, func(o *Options) { o.Now = func() time.Time { return now } })
	for i, c := range []struct {
		later time.Duration
		ended string
	}{{0, ""}, {strikesApart / 2, ""}, {strikesApart / 2, "broke connections that were to be used again"}} {
		now = now.Add(c.later)
		deliver(t, u, event, true)
		proved(t, u)
		gone <- struct{}{}
		awaitFIN(t, u)
		if kept, _, err := u.get(soon(t), false); err != nil { // finds out that the one which was kept is closed
			t.Fatal(err)
		} else {
			kept.close()
		}
		if got := u.ReuseState(); got.Ended != c.ended {
			t.Errorf("%d: %+v", i, got)
		}
	}
}

// Where the kernel does not count, a request that meets the close of a connection has an unknown outcome.
func TestNothingIsKeptWhereTheKernelDoesNotCount(t *testing.T) {
	s := &service{}
	u := proving(t, s.start(t, "tcp"))
	c := &conn{tcp: true, ahead: -1}
	if u.mayProve(c) {
		t.Error("it is kept")
	}
	if c.tcp = false; !u.mayProve(c) { // a unix socket takes nothing that its peer does not get
		t.Error("a unix socket is not kept")
	}
}
