package etcdlock

import (
	"bytes"
	"crypto/tls"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// life uses every transaction and every request of a Store once: claim, settle, release, queue,
// wait, an unknown outcome, the reaping of a dead lock of a dead process's lock, the sweep, the
// list and the watch of sessions.
func life(t *testing.T, e *etcdtest.Etcd, o Options) {
	t.Helper()
	forgotten := make(chan struct{})
	o.OnForget = func(idem.ExecutionID) { close(forgotten) }
	s := openStore(t, o)
	o.OnForget = nil
	other := openStore(t, o)
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	place := mustEnqueue(t, other, lockFor("w", "two"))
	turn := make(chan error, 1)
	go func() {
		_, err := place.Await(within(t, patience), 0)
		turn <- err
	}()
	mustSettle(t, held)
	if err := <-turn; err != nil {
		t.Fatalf("wait: %v", err)
	}
	next, _, err := place.ClaimHead(within(t, patience), place.Lock, 0)
	if err != nil || next == nil {
		t.Fatalf("claim as head: %v", err)
	}
	if err := next.Release(within(t, patience)); err != nil {
		t.Fatalf("release: %v", err)
	}
	left := mustEnqueue(t, other, lockFor("w", "three"))
	if err := left.Leave(within(t, patience)); err != nil {
		t.Fatalf("leave: %v", err)
	}
	cooling := lockFor("cooling", "one")
	cooling.ReleaseDelay = time.Minute
	unknown := idem.End{Status: idem.Failed, Outcome: idem.Unknown, FinishedAt: time.Now(),
		Error: &idem.Failure{Code: "upstream_failed"}}
	if _, err := mustClaim(t, s, cooling, 0).Settle(within(t, patience), unknown); err != nil {
		t.Fatalf("settle with a delay: %v", err)
	}
	running, lost := mustClaim(t, s, lockFor("adopted", "one"), 0), mustClaim(t, other, lockFor("reaped", "one"), 0)
	lost.Stop(idem.ErrLockLost) // its process is gone: it adopts nothing
	endSession(t, e, currentSession(t, other))
	eventually(t, "the dead process's lock is reaped", func() bool {
		st, err := history.Look(within(t, patience), s.pool, s.layout.Keys(lost.Lock()))
		return err == nil && st.Record != nil
	})
	if err := other.Close(within(t, patience)); err != nil { // it would race for what is adopted now, and reap it
		t.Fatalf("close: %v", err)
	}
	before := currentSession(t, s)
	endSession(t, e, before)
	eventually(t, "the running lock is adopted", func() bool {
		return running.Lock().Alive != protocol.SessionAlive(before.Name)
	})
	mustSettle(t, running)
	if _, err := e.Client.Put(within(t, patience), s.layout.All(protocol.KindForgets)+"exec_x", ""); err != nil {
		t.Fatal(err)
	}
	select {
	case <-forgotten:
	case <-time.After(patience):
		t.Fatal("the forget did not arrive")
	}
}

func withUser(e *etcdtest.Etcd) Options {
	return Options{Endpoints: []string{e.Endpoint}, Username: etcdtest.User, Password: etcdtest.Password,
		Prefix: "/locks"}
}

func TestAUserThatMayTouchThePrefixAloneIsEnough(t *testing.T) {
	e := etcdtest.StartWithUsers(t, "/locks")
	life(t, e, withUser(e))
}

func TestAClientCertificateThatMayTouchThePrefixAloneIsEnough(t *testing.T) {
	a := etcdtest.NewAuthority(t)
	e := etcdtest.StartWithCertificates(t, a, "/locks")
	life(t, e, Options{Endpoints: []string{"https://" + e.Endpoint}, TLS: a.Client(a.Issue(etcdtest.User)),
		Prefix: "/locks"})
}

func TestTokensThatHaveRunOutAreFetchedAgainWithoutALostRequest(t *testing.T) {
	e := etcdtest.StartWithUsers(t, "/locks")
	o := withUser(e)
	o.SessionTTL = time.Minute // renewals, which fetch a token too, are far away
	s := openStore(t, o)
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	client, _, err := s.pool.Current()
	if err != nil {
		t.Fatal(err)
	}
	runOut(t, e, client)
	if _, _, err := tryClaim(t, s, lockFor("w2", "one"), 0); err != nil {
		t.Errorf("claim: %v", err)
	}
	runOut(t, e, client)
	if _, err := held.Settle(within(t, patience), success("")); err != nil {
		t.Errorf("settle: %v", err)
	}
}

// runOut waits until etcd has forgotten the tokens that were in use, and until the client has met
// that. It fetches none itself. Where the store asks something of its own in between, the client
// has a new one already and meets nothing: then etcd forgets that one, too.
func runOut(t *testing.T, e *etcdtest.Etcd, c *clientv3.Client) {
	t.Helper()
	eventually(t, "the client meets a token that etcd has forgotten", func() bool {
		e.ForgetTokens(t)
		_, err := c.Get(within(t, patience), "/locks/x")
		if err != nil && !errors.Is(err, rpctypes.ErrInvalidAuthToken) {
			t.Fatalf("got %v", err)
		}
		return err != nil
	})
	e.ForgetTokens(t) // the one that the client has fetched since
}

func TestWhatIsWrongWithAUserIsSaidWithWhatToDo(t *testing.T) {
	plain := etcdtest.StartWithUsers(t, "/locks")
	a := etcdtest.NewAuthority(t)
	secure := etcdtest.StartWithCertificates(t, a, "/locks")
	for _, c := range []struct {
		name string
		o    Options
		says string
	}{
		{"wrong password", Options{Endpoints: []string{plain.Endpoint}, Username: etcdtest.User, Password: "guess",
			Prefix: "/locks"}, "correct etcd.username and its password"},
		{"unknown user", Options{Endpoints: []string{plain.Endpoint}, Username: "nobody", Password: "guess",
			Prefix: "/locks"}, "correct etcd.username and its password"},
		{"no user", Options{Endpoints: []string{plain.Endpoint}, Prefix: "/locks"},
			"set etcd.username and its password, or a client certificate"},
		{"another prefix", Options{Endpoints: []string{plain.Endpoint}, Username: etcdtest.User,
			Password: etcdtest.Password, Prefix: "/other"}, "grant-permission ROLE readwrite --prefix=true"},
		{"a certificate of another user", Options{Endpoints: []string{"https://" + secure.Endpoint},
			TLS: a.Client(a.Issue("nobody")), Prefix: "/locks"}, "grant-permission ROLE readwrite --prefix=true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			c.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			s, err := Open(c.o)
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "the reason", func() bool { return strings.Contains(s.Ready().Error(), c.says) })
			_, _, err = tryClaim(t, s, lockFor("w", "one"), 0)
			if !errors.Is(err, idem.ErrStoreUnavailable) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("claim: %v", err)
			}
			closeStore(t, s)
			if !strings.Contains(log.String(), "session.unavailable") || !strings.Contains(log.String(), c.says) ||
				strings.Contains(log.String(), "guess") {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}

func TestWithoutAUserEtcdIsNotAskedForAToken(t *testing.T) {
	e := etcdtest.Start(t)
	o := withUser(e) // etcd has no users: the name is not wanted, and that is fine
	s := openStore(t, o)
	if err := mustClaim(t, s, lockFor("w", "one"), 0).Release(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	var none *tls.Config
	if s.options.TLS != none {
		t.Fatal("TLS without being asked")
	}
}
