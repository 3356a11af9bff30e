package session

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
)

// keptSession is a session on a lease of its own that no watch follows, so that what its keeper
// does is all that happens to it.
func keptSession(tb testing.TB, e *etcdtest.Etcd, ttl time.Duration) (*Keeper, *Session) {
	tb.Helper()
	pool, err := link.OpenPool(&link.Target{Endpoints: []string{e.Endpoint}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = pool.Close() })
	layout, clock := protocol.NewLayout("/hooklock"), link.SystemClock()
	granted, err := e.Client.Grant(within(tb, patience), 60)
	if err != nil {
		tb.Fatal(err)
	}
	k := NewKeeper(Options{Pool: pool, Layout: layout, Clock: clock})
	return k, &Session{Name: "kept", Key: layout.Alive(protocol.SessionAlive("kept")), ttl: ttl, clock: clock,
		sent: clock.Instant(), Lease: granted.ID, Over: make(chan struct{})}
}

// The watch may be late, or hang: a renewal that finds no lease ends the session as well.
func TestASessionIsOverWhenItsRenewalFindsNoLease(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	k, s := keptSession(t, e, 40*time.Millisecond)
	if _, err := e.Client.Revoke(within(t, patience), s.Lease); err != nil {
		t.Fatal(err)
	}
	ctx := within(t, patience)
	k.renewUntilOver(ctx, s)
	if ctx.Err() != nil || !s.Gone() || !errors.Is(s.Err(), ErrGone) {
		t.Fatalf("gone %v: %v", s.Gone(), s.Err())
	}
	if !closed(s.Over) {
		t.Error("nobody hears that it is over")
	}
}

// A session is renewed again and again, and each time counts from before the renewal was sent:
// etcd's clock for the lease begins after that.
func TestARenewalProlongsTheSessionFromWhenItWasSent(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	k, s := keptSession(t, e, 40*time.Millisecond)
	ctx, cancel := context.WithCancel(within(t, patience))
	defer cancel()
	begin, n := s.sent.At, 0
	at := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Hour) }
	k.options.Clock.Now = func() time.Time { // asked once for each renewal
		s.mu.Lock()
		defer s.mu.Unlock()
		if n > 1 && s.sent.At.Equal(at(n)) {
			cancel()
		}
		n++
		return at(n)
	}
	k.renewUntilOver(ctx, s)
	if s.reason != nil || n < 3 || !s.sent.At.Equal(at(n-1)) {
		t.Errorf("%d renewals, and it counts from %v after the begin: %v", n, s.sent.At.Sub(begin), s.reason)
	}
}

// expiries hears of sessions that expired.
type expiries struct {
	Listener
	said chan<- *Session
}

func (e expiries) OnExpired(s *Session) { e.said <- s }

func TestASessionThatWasNotConfirmedInTimeIsOverButNotGone(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	k, s := keptSession(t, e, time.Hour)
	said := make(chan *Session, 2)
	k.options.On = expiries{said: said}
	ctx, cancel := context.WithCancel(within(t, patience))
	cancel()
	k.awaitExpiry(ctx, s)
	if s.Err() != nil || len(said) != 0 {
		t.Fatalf("a session of an hour is over: %v", s.Err())
	}
	s.sent.At = s.sent.At.Add(-time.Hour)
	k.awaitExpiry(within(t, patience), s)
	if !errors.Is(s.Err(), ErrUnheard) || s.Gone() || len(said) != 1 || <-said != s {
		t.Fatalf("gone %v: %v", s.Gone(), s.Err())
	}
	if !closed(s.Over) {
		t.Error("nobody hears that it is over")
	}
}

// A renewal may come late, but before the session has ended: on a machine that was suspended, the
// timer that ends it has not run yet.
func TestARenewalThatComesLateIsHeardOf(t *testing.T) {
	t.Parallel()
	k, s := keptSession(t, etcdtest.Start(t), 40*time.Millisecond)
	k.session, s.sent.At = s, s.sent.At.Add(-time.Hour)
	_, change, err := k.Current()
	if !errors.Is(err, ErrUnheard) {
		t.Fatalf("the session is late, not %v", err)
	}
	ctx, cancel := context.WithCancel(within(t, patience))
	go func() { k.renewUntilOver(ctx, s); cancel() }()
	select {
	case <-change:
		s.End(ErrGone)
	case <-ctx.Done():
		t.Fatal("whoever waits for a live session waits for ever")
	}
	<-ctx.Done()
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestTheNextRenewalIsEarlyEnoughForASecondAttempt(t *testing.T) {
	s, short := &Session{ttl: time.Minute}, &Session{ttl: 2 * time.Second}
	refused, away := rpctypes.ErrPermissionDenied, context.DeadlineExceeded
	if !link.TurnedAway(refused) || link.TurnedAway(away) {
		t.Fatal("these are no examples")
	}
	for _, c := range []struct {
		s    *Session
		err  error
		want time.Duration
	}{
		{s, nil, 15 * time.Second},
		{short, nil, 500 * time.Millisecond},
		{s, away, 50 * time.Millisecond},
		{s, refused, link.LastPause}, // each attempt is one at the password
		{short, refused, 500 * time.Millisecond},
	} {
		if got := c.s.untilRenewal(c.err); got != c.want {
			t.Errorf("after %v with a TTL of %v: %v, want %v", c.err, c.s.ttl, got, c.want)
		}
	}
}

// A process that leaves takes its lease along, so that the others need not wait until it runs out.
func TestAProcessThatLeavesRevokesItsLease(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	k, s := keptSession(t, e, time.Hour)
	if _, err := e.Client.Put(within(t, patience), s.Key, "", clientv3.WithLease(s.Lease)); err != nil {
		t.Fatal(err)
	}
	k.setSession(s, nil)
	_, change, _ := k.Current()
	k.Leave()
	if !closed(change) {
		t.Error("nobody hears that it has left")
	}
	if n, err := e.Count(within(t, patience), s.Key); err != nil || n != 0 {
		t.Errorf("its key is still there: %v", err)
	}
	if _, _, err := k.Current(); !errors.Is(err, commit.ErrClosed) || !errors.Is(s.Err(), commit.ErrClosed) {
		t.Errorf("%v, %v", err, s.Err())
	}
	k.Leave() // there is none any more
}
