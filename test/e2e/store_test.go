package e2e

import (
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// alone is a Hooklock with an etcd of its own, which may be stopped.
func alone(t *testing.T, top string) (*testkit.Hooklock, *testkit.Member) {
	t.Helper()
	member := testkit.StartEtcd(t, etcdProgram, 1)[0]
	config := strings.Replace(shared.config("alone", top), shared.etcd.Endpoint, member.Endpoint, 1)
	config = strings.Replace(config, "request_timeout: 10s", "request_timeout: 1s", 1)
	return own(t, config+`
  - {name: forward, path: "/forward/{w}", workflow: "forward/{path.w}", on_store_down: forward}
  - {name: forward-observe, path: "/forward-observe/{w}", workflow: "fo/{path.w}", mode: observe}
`), member
}

func TestWhileEtcdCannotDecideDeliveriesAreRefusedOrForwardedAndBurnNothing(t *testing.T) {
	t.Parallel()
	h, etcd := alone(t, "")
	path, forward, observe := at(t, "plain"), at(t, "forward"), at(t, "forward-observe")
	testkit.Post(t, h.Addr, path, "{}", key("settled"))
	etcd.Freeze(t)
	refused{503, "store_unavailable", "no", "store_unavailable"}.check(t, testkit.Post(t, h.Addr, path, "{}", key("1")))
	passed(t, testkit.Post(t, h.Addr, forward, "{}", key("1")), 200, "done", "bypassed; would=store_unavailable")
	passed(t, testkit.Post(t, h.Addr, observe, "{}", key("1")), 200, "done", "bypassed; would=store_unavailable")
	// a known answer needs no etcd
	passed(t, testkit.Post(t, h.Addr, path, "{}", key("settled")), 200, "done", "replayed")
	reached(t, path, 1)
	etcd.Thaw(t)
	var a *testkit.Answer
	testkit.Until(t, "etcd decides again", func() bool {
		a = testkit.Post(t, h.Addr, path, "{}", key("1"))
		return a.Status != 503
	})
	// The claim that was not answered may have been carried out: then the lock is given back, or
	// the event may run again.
	if a.Decision() != "executed" && a.Status != 409 {
		t.Errorf("%v", a)
	}
	testkit.Until(t, "the event runs", func() bool {
		a = testkit.Post(t, h.Addr, path, "{}", key("1"))
		return a.Status == 200
	})
}

// TestEtcdIsNotAskedThroughTheProxyOfTheEnvironment: such a variable is for the way out, and often
// does not except what is near.
func TestEtcdIsNotAskedThroughTheProxyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			c, err := proxy.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_ = c.Close()
		}
	}()
	defer func() { _ = proxy.Close(); <-over }()
	config := strings.Replace(shared.config("proxy", ""), shared.etcd.Endpoint, "http://etcd.invalid:2379", 1)
	h := testkit.StartServe(t, hooklockProgram, config, "HTTPS_PROXY=http://"+proxy.Addr().String())
	h.AwaitLine(t, h.Stderr, `"msg":"session.unavailable"`)
	leave(t, h.Process)
	if n := asked.Load(); n != 0 {
		t.Errorf("the proxy was asked %d times", n)
	}
}

func TestAnOutcomeThatCannotBeRecordedIsSaidSoAndRecordedLater(t *testing.T) {
	t.Parallel()
	h, etcd := alone(t, "")
	path := at(t, "plain")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, h.Addr, path, "{}", key("1"))
	work.await(t)
	etcd.Freeze(t)
	work.answer <- testkit.OK("true answer")
	a := testkit.Receive(t, "the answer", first)
	passed(t, a, 200, "true answer", "executed")
	if a.Header.Get("Hooklock-Recorded") != "false" {
		t.Errorf("%v", a)
	}
	etcd.Thaw(t)
	var again *testkit.Answer
	testkit.Until(t, "the outcome is recorded", func() bool {
		again = testkit.Post(t, h.Addr, path, "{}", key("1"))
		return !undecided(again)
	})
	passed(t, again, 200, "true answer", "replayed")
	reached(t, path, 1)
}

// Whoever ends it waits for so long, as docs/kubernetes.md and systemd are told, and kills it then.
func TestWhileEtcdIsAwayAnEndTakesNoLongerThanIsSaid(t *testing.T) {
	t.Parallel()
	const shutdown, request = 5 * time.Second, time.Second
	h, etcd := alone(t, "")
	path := at(t, "plain")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, h.Addr, path, "{}", key("1"))
	work.await(t)
	etcd.Freeze(t)
	h.Signal(t, syscall.SIGTERM)
	began := time.Now()
	if a := testkit.Receive(t, "the answer", first); a.Status != 502 {
		t.Errorf("%v", a)
	}
	h.ExitCode(t)
	if took := time.Since(began); took > shutdown+request+10*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestAShortOutageOfEtcdDoesNotFlipReadyz(t *testing.T) {
	t.Parallel()
	h, etcd := alone(t, "")
	etcd.Freeze(t)
	refused{503, "store_unavailable", "no", "store_unavailable"}.check(t,
		testkit.Post(t, h.Addr, at(t, "plain"), "{}", key("1")))
	if a := testkit.Exchange(t, h.Admin, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"); a.Status != 200 {
		t.Errorf("%v", a)
	}
	etcd.Thaw(t)
}

func TestWithoutEtcdHooklockStartsAndIsReadyWhenEtcdComes(t *testing.T) {
	t.Parallel()
	member := testkit.StartEtcd(t, etcdProgram, 1)[0]
	member.Kill()
	h := testkit.StartServe(t, hooklockProgram, strings.Replace(shared.config("early", ""), shared.etcd.Endpoint,
		member.Endpoint, 1))
	t.Cleanup(func() { leave(t, h.Process) })
	started := h.AwaitLine(t, h.Stderr, `"msg":"started"`)
	admin, _, _ := strings.Cut(strings.SplitAfter(started, `"admin":"`)[1], `"`)
	if a := testkit.Exchange(t, admin, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"); a.Status != 200 {
		t.Errorf("%v", a)
	}
	if a := testkit.Exchange(t, admin, "GET /readyz?verbose HTTP/1.1\r\nHost: localhost\r\n\r\n"); a.Status != 503 {
		t.Errorf("%v", a)
	}
	member.Restart(t)
	h.AwaitReady(t)
	passed(t, testkit.Post(t, h.Addr, at(t, "plain"), "{}", key("1")), 200, "done", "executed")
}

// A front that looks at the port alone sends as soon as it is open.
func TestADeliveryThatComesBeforeTheFirstSessionWaitsForIt(t *testing.T) {
	t.Parallel()
	member := testkit.StartEtcd(t, etcdProgram, 1)[0]
	member.Freeze(t)
	h := testkit.StartServe(t, hooklockProgram, strings.Replace(shared.config("before", ""), shared.etcd.Endpoint,
		member.Endpoint, 1))
	t.Cleanup(func() { leave(t, h.Process) })
	started := h.AwaitLine(t, h.Stderr, `"msg":"started"`)
	where := func(name string) string { return strings.Split(strings.SplitAfter(started, `"`+name+`":"`)[1], `"`)[0] }
	sender := testkit.Dial(t, where("listen"))
	sender.Say(testkit.Request(at(t, "plain"), "{}", key("1")))
	if a := testkit.Exchange(t, where("admin"), "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"); a.Status != 503 {
		t.Errorf("%v", a)
	}
	member.Thaw(t)
	passed(t, sender.Answer("POST"), 200, "done", "executed")
}

// Nobody has told what became of the claim: the process asks for as long as a supervisor lets it,
// and then says who did not answer.
func TestAnEndWhileEtcdIsSilentSaysThatItIsEtcd(t *testing.T) {
	t.Parallel()
	h, etcd := alone(t, "")
	etcd.Freeze(t)
	defer etcd.Thaw(t)
	refused{503, "store_unavailable", "no", "store_unavailable"}.check(t,
		testkit.Post(t, h.Addr, at(t, "plain"), "{}", key("1")))
	h.Signal(t, syscall.SIGTERM)
	h.Stderr.AwaitRecord(t, "stopped", nil)
	if code := h.ExitCode(t); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if said := h.Stderr.String(); !strings.Contains(said, "does etcd answer?") || strings.Contains(said, "disk") {
		t.Errorf("it said %s", said)
	}
}
