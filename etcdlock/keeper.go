package etcdlock

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// keeper keeps a session open: it opens one, renews it, and opens the next when it is lost, until it is stopped.
type keeper struct {
	pool   *link.Pool
	layout protocol.Layout
	clock  link.Clock
	ttl    time.Duration
	holder string
	alone  bool // nobody else uses this etcd
	live   *live
	pauses *pauses

	// What the Store does with the news. None of them blocks for long.
	failed  func(error) // no session opens, and why; once for each reason
	opened  func(*session)
	ended   func(*session)       // over, but a running call may still be adopted by the next one
	expired func(*session)       // nobody may act for it any more
	died    func(names []string) // other sessions
	forgot  func(execution string)
	asked   func(execution string) // somebody has changed a lock that this process has
	unheld  func(execution string) // a hold is gone
	blind   func()                 // forgets and holds that went may have been missed

	mu      sync.Mutex
	session *session
	trouble error         // why there is none
	change  chan struct{} // closed at the next change of the above

	wg sync.WaitGroup
}

// margin is what the session ends before its lease could: for clocks that run differently and for the way of a first byte.
func margin(ttl time.Duration) time.Duration { return max(ttl/10, 250*time.Millisecond) }

// run works until ctx ends, and returns when all its goroutines have.
func (k *keeper) run(ctx context.Context) {
	defer k.wg.Wait()
	said := ""
	pause := link.NewSessionBackoff()
	for ctx.Err() == nil {
		s, names, revision, err := k.open(ctx)
		if err != nil {
			err = fmt.Errorf("open a session: %w", link.Explain(err))
			k.set(nil, err)
			if ctx.Err() == nil && err.Error() != said {
				said = err.Error()
				k.failed(err)
			}
			if link.TurnedAway(err) {
				_ = link.Sleep(ctx, link.LastPause)
			} else {
				_ = pause.Wait(ctx)
			}
			continue
		}
		said, pause = "", link.NewSessionBackoff()
		k.hold(ctx, s, names, revision)
	}
}

// hold keeps s until it is over.
func (k *keeper) hold(ctx context.Context, s *session, names map[string]struct{}, revision int64) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	k.died(k.live.replace(names, revision))
	k.set(s, nil)
	k.opened(s)
	k.wg.Go(func() { k.watch(watching, s, revision) })
	k.wg.Go(func() { k.expire(ctx, s) })
	k.wg.Go(func() { k.pauses.acknowledge(watching, s, k.pool) })
	k.renew(ctx, s)
	if ctx.Err() == nil {
		k.set(nil, s.err())
		k.ended(s)
	}
}

// open makes a session and learns in the same transaction who else is there. After an error the lease, if there is one, runs out
// by itself: the name is used for this attempt only.
func (k *keeper) open(ctx context.Context) (*session, map[string]struct{}, int64, error) {
	s := &session{name: newSessionName(), ttl: k.ttl, margin: margin(k.ttl), clock: k.clock, since: k.clock.Now(), holder: k.holder, over: make(chan struct{}), fencing: make(chan struct{}, 1)}
	s.key = k.layout.Session(s.name)
	s.value = protocol.EncodeSession(k.holder+"/"+s.name, s.since, 0)
	s.sent = k.clock.Instant()
	err := k.pool.Try(ctx, link.AttemptTimeout, func(ctx context.Context, c *clientv3.Client) (err error) {
		s.lease, err = link.GrantLease(ctx, c, link.NewLeaseID(), k.ttl)
		return err
	})
	if err != nil {
		return nil, nil, 0, err
	}
	if err := k.clear(ctx); err != nil {
		return nil, nil, 0, err
	}
	response, err := k.pool.Commit(ctx, link.AttemptTimeout, protocol.Compares{protocol.Absent(s.key)}, protocol.Writes{
		protocol.Put(s.key, protocol.Leased{Value: []byte(s.value), Lease: s.lease}),
		link.Read(clientv3.OpGet(k.layout.Sessions(), clientv3.WithPrefix(), clientv3.WithKeysOnly())),
		link.Read(clientv3.OpGet(k.layout.Pauses(), clientv3.WithPrefix())),
	})
	switch {
	case err != nil:
		return nil, nil, 0, err
	case !response.Succeeded:
		return nil, nil, 0, errors.New("the new session's name is taken")
	}
	s.epoch = response.Header.Revision
	k.pauses.replace(response.Responses[2].GetResponseRange().Kvs, s.epoch)
	names := map[string]struct{}{}
	for _, kv := range response.Responses[1].GetResponseRange().Kvs {
		names[strings.TrimPrefix(string(kv.Key), k.layout.Sessions())] = struct{}{}
	}
	return s, names, s.epoch, nil
}

// clear ends the sessions that an earlier process has left. Only who is alone knows that it is dead; others wait for its lease.
func (k *keeper) clear(ctx context.Context) error {
	if !k.alone {
		return nil
	}
	return k.pool.Try(ctx, link.AttemptTimeout, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Delete(ctx, k.layout.Sessions(), clientv3.WithPrefix())
		return err
	})
}

func newSessionName() string {
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

// renew prolongs the lease every quarter of its life, until the session is over or ctx ends.
func (k *keeper) renew(ctx context.Context, s *session) {
	for wait := s.ttl / 4; ; {
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-s.over:
			t.Stop()
			return
		case <-ctx.Done():
			t.Stop()
			return
		}
		sent := k.clock.Instant()
		err := k.pool.Try(ctx, link.AttemptTimeout, func(ctx context.Context, c *clientv3.Client) error {
			return link.RenewLease(ctx, c, s.lease)
		})
		switch {
		case err == nil:
			s.renewed(sent)
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			s.end(errSessionGone)
		}
		wait = s.untilRenewal(err)
	}
}

// untilRenewal is how long the next renewal waits after one with that result.
func (s *session) untilRenewal(err error) time.Duration {
	switch {
	case err == nil:
		return s.ttl / 4
	case link.TurnedAway(err):
		return min(s.ttl/4, link.LastPause)
	}
	return 50 * time.Millisecond // the next attempt asks another member
}

// expire waits until the session may not act any more, says so, and ends. A timer does not see a suspended machine, so it looks
// every second.
func (k *keeper) expire(ctx context.Context, s *session) {
	for {
		left := s.remaining()
		if left <= 0 {
			s.end(errUnheard)
			k.expired(s)
			return
		}
		if link.Sleep(ctx, min(left, time.Second)) != nil {
			return
		}
	}
}

func (k *keeper) set(s *session, trouble error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.session, k.trouble = s, trouble
	close(k.change)
	k.change = make(chan struct{})
}

// current is the live session and what is closed when that changes, or why there is none.
func (k *keeper) current() (*session, <-chan struct{}, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session == nil {
		return nil, k.change, k.trouble
	}
	if err := k.session.err(); err != nil {
		return nil, k.change, err
	}
	return k.session, k.change, nil
}

// leave ends the session for everybody, so that nobody has to wait until its lease runs out. It is the last call, after run.
func (k *keeper) leave() {
	s, _, _ := k.current()
	k.set(nil, commit.ErrClosed)
	if s == nil {
		return
	}
	s.end(commit.ErrClosed)
	_ = k.pool.Try(context.Background(), link.AttemptTimeout, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Revoke(ctx, s.lease)
		return err
	})
}
