package etcdlock

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
)

// keptSession is a session on a lease of its own that no watch follows, so that what its keeper does is all that happens to it.
func keptSession(tb testing.TB, e *etcdtest.Etcd, ttl time.Duration) (*keeper, *session) {
	tb.Helper()
	s := openStore(tb, Options{Endpoints: []string{e.Endpoint}})
	granted, err := e.Client.Grant(within(tb, patience), 60)
	if err != nil {
		tb.Fatal(err)
	}
	k := &keeper{pool: s.pool, layout: s.layout, clock: s.clock, change: make(chan struct{})}
	return k, &session{name: "kept", key: s.layout.Session("kept"), ttl: ttl, clock: s.clock, sent: s.clock.Instant(), lease: granted.ID, over: make(chan struct{})}
}

// The watch may be late, or hang: a renewal that finds no lease ends the session as well.
func TestASessionIsOverWhenItsRenewalFindsNoLease(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	k, s := keptSession(t, e, 40*time.Millisecond)
	if _, err := e.Client.Revoke(within(t, patience), s.lease); err != nil {
		t.Fatal(err)
	}
	ctx := within(t, patience)
	k.renew(ctx, s)
	if ctx.Err() != nil || !s.gone() || !errors.Is(s.err(), errSessionGone) {
		t.Fatalf("gone %v: %v", s.gone(), s.err())
	}
	if !closed(s.over) {
		t.Error("nobody hears that it is over")
	}
}

// A session is renewed again and again, and each time counts from before the renewal was sent: etcd's clock for the lease begins after that.
func TestARenewalProlongsTheSessionFromWhenItWasSent(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	k, s := keptSession(t, e, 40*time.Millisecond)
	ctx, cancel := context.WithCancel(within(t, patience))
	defer cancel()
	begin, n := s.sent.At, 0
	at := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Hour) }
	k.clock.Now = func() time.Time { // asked once for each renewal
		s.mu.Lock()
		defer s.mu.Unlock()
		if n > 1 && s.sent.At.Equal(at(n)) {
			cancel()
		}
		n++
		return at(n)
	}
	k.renew(ctx, s)
	if s.reason != nil || n < 3 || !s.sent.At.Equal(at(n-1)) {
		t.Errorf("%d renewals, and it counts from %v after the begin: %v", n, s.sent.At.Sub(begin), s.reason)
	}
}

func TestASessionThatWasNotHeardOfInTimeIsOverButNotGone(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	k, s := keptSession(t, e, time.Hour)
	said := make(chan *session, 2)
	k.expired = func(s *session) { said <- s }
	ctx, cancel := context.WithCancel(within(t, patience))
	cancel()
	k.expire(ctx, s)
	if s.err() != nil || len(said) != 0 {
		t.Fatalf("a session of an hour is over: %v", s.err())
	}
	s.sent.At = s.sent.At.Add(-time.Hour)
	k.expire(within(t, patience), s)
	if !errors.Is(s.err(), errUnheard) || s.gone() || len(said) != 1 || <-said != s {
		t.Fatalf("gone %v: %v", s.gone(), s.err())
	}
	if !closed(s.over) {
		t.Error("nobody hears that it is over")
	}
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
	s, short := &session{ttl: time.Minute}, &session{ttl: 2 * time.Second}
	refused, away := rpctypes.ErrPermissionDenied, context.DeadlineExceeded
	if !link.TurnedAway(refused) || link.TurnedAway(away) {
		t.Fatal("these are no examples")
	}
	for _, c := range []struct {
		s    *session
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

func TestWhoWatchesHearsOfALostSessionAndOfNoneThatWasLeft(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	o := Options{Endpoints: []string{e.Endpoint}}
	events := sessionsOf(&o)
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	first := awaitOpened(t, events)
	endSession(t, e, currentSession(t, s))
	if lost := <-events; lost.Opened || lost.Session != first.Session || !errors.Is(lost.Reason, errSessionGone) {
		t.Errorf("%+v, want the end of %s", lost, first.Session)
	}
	if next := awaitOpened(t, events); next.Session == first.Session {
		t.Errorf("%s was opened again", next.Session)
	}
	closeStore(t, s)
	for len(events) > 0 {
		if more := <-events; !more.Opened {
			t.Errorf("%+v although nothing was lost", more)
		}
	}
}

// A process that leaves takes its lease along, so that the others need not wait until it runs out.
func TestWhoLeavesTakesItsLeaseAlong(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	k, s := keptSession(t, e, time.Hour)
	if _, err := e.Client.Put(within(t, patience), s.key, "", clientv3.WithLease(s.lease)); err != nil {
		t.Fatal(err)
	}
	k.set(s, nil)
	_, change, _ := k.current()
	k.leave()
	if !closed(change) {
		t.Error("nobody hears that it has left")
	}
	if n, err := e.Count(within(t, patience), s.key); err != nil || n != 0 {
		t.Errorf("its key is still there: %v", err)
	}
	if _, _, err := k.current(); !errors.Is(err, commit.ErrClosed) || !errors.Is(s.err(), commit.ErrClosed) {
		t.Errorf("%v, %v", err, s.err())
	}
	k.leave() // there is none any more
}
