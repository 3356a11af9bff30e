package session

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/predecessor"
	"hooklock/etcdlock/protocol"
)

// Options are what a keeper works with.
type Options struct {
	Pool   *link.Pool      // reads and watches etcd
	Layout protocol.Layout // spells the keys
	Clock  link.Clock      // measures elapsed time
	// TTL of the session's lease: whole seconds.
	TTL time.Duration
	// Holder names this process for operators; "" = it has no name.
	Holder string
	// Alone says that no other process uses this etcd: sessions that are there at the start are
	// dead.
	Alone bool
	// Predecessors are other processes on the same data directory: the sessions of those that are
	// dead are ended. Nil: there are none.
	Predecessors *predecessor.Predecessors
	// Live is the set of sessions that the keeper maintains.
	Live *Set
	// Pauses is called with the pauses in etcd.
	Pauses Pauses
	// On is told what becomes of sessions.
	On Listener
}

// Listener is told what becomes of sessions. None of its methods may block for long.
type Listener interface {
	// OnFailed is called once for each reason why no session opens.
	OnFailed(why error)
	// OnOpened is called with each new session.
	OnOpened(s *Session)
	// OnEnded is called when a session is over. The next one may still adopt a running call.
	OnEnded(s *Session)
	// OnExpired is called when the locks of a session may be taken over: nothing may act for it any
	// more.
	OnExpired(s *Session)
	// OnDied is called with other sessions that have gone.
	OnDied(names []string)
	// OnForgot is called with each execution whose record was forgotten.
	OnForgot(execution string)
	// OnAsked is called when another process has changed the lock of an execution of this process.
	OnAsked(execution string)
	// OnUnheld is called when a hold is gone, since revision.
	OnUnheld(execution string, revision int64)
	// OnMissed is called when nothing is watched (0: forgets and ends of holds are missed from now
	// on), and when everything is watched again: those up to a revision may have been missed.
	OnMissed(upTo int64)
}

// Keeper keeps a session open: it opens one, renews it, and opens the next when it is lost, until
// it is stopped.
type Keeper struct {
	options Options

	mu      sync.Mutex
	session *Session
	trouble error         // why there is none
	change  chan struct{} // closed at the next change of the two, and when a session that was late may act again

	wg sync.WaitGroup
}

// NewKeeper returns a keeper that has no session yet; Run opens it.
func NewKeeper(o Options) *Keeper {
	return &Keeper{options: o, trouble: ErrOpening, change: make(chan struct{})}
}

// Pauses is called with the pauses in etcd.
type Pauses interface {
	// Replace is called with all pauses as of revision.
	Replace(kvs []*mvccpb.KeyValue, revision int64)
	// Events is called with the changes that one answer of the watch brought, in their order.
	Events(changes []*clientv3.Event)
	// Acknowledge writes into the key of s that this process knows the pauses, each time that they
	// change, until ctx ends.
	Acknowledge(ctx context.Context, s *Session, p *link.Pool)
}

// Margin returns how long before its lease a session ends: for clocks that run differently and for
// the way of a first byte.
func Margin(ttl time.Duration) time.Duration { return max(ttl/10, 250*time.Millisecond) }

// Run works until ctx ends, and returns when all its goroutines have.
func (k *Keeper) Run(ctx context.Context) {
	defer k.wg.Wait()
	said, former := "", ""
	pause := link.NewSessionBackoff()
	for ctx.Err() == nil {
		s, names, revision, err := k.openSession(ctx, former)
		if err != nil {
			err = fmt.Errorf("open a session: %w", link.Explain(k.options.Pool.WhySilent(ctx, err)))
			k.setSession(nil, err)
			if ctx.Err() == nil && err.Error() != said {
				said = err.Error()
				k.options.On.OnFailed(err)
			}
			if link.TurnedAway(err) {
				_ = link.Sleep(ctx, link.LastPause)
			} else {
				_ = pause.Wait(ctx)
			}
			continue
		}
		said, pause = "", link.NewSessionBackoff()
		k.keepSession(ctx, s, names, revision)
		former = s.Name
	}
}

// keepSession keeps s until it is over.
func (k *Keeper) keepSession(ctx context.Context, s *Session, names map[string]struct{}, revision int64) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	k.options.On.OnDied(k.options.Live.Replace(names, revision))
	k.setSession(s, nil)
	k.options.On.OnOpened(s)
	k.wg.Go(func() { k.runReflector(watching, s, revision) })
	k.wg.Go(func() { k.awaitExpiry(ctx, s) })
	k.wg.Go(func() { k.options.Pauses.Acknowledge(watching, s, k.options.Pool) })
	k.renewUntilOver(ctx, s)
	if ctx.Err() == nil {
		k.setSession(nil, s.Err())
		k.options.On.OnEnded(s)
	}
}

// openSession makes a session and reads the others in the same transaction. After an error the
// lease, if there is one, runs out by itself: the name is used for this attempt only. former is the
// session before, whose locks it is to adopt; "" = there was none.
func (k *Keeper) openSession(ctx context.Context, former string) (*Session, map[string]struct{}, int64, error) {
	s := &Session{Name: NewName(), ttl: k.options.TTL, margin: Margin(k.options.TTL), clock: k.options.Clock,
		since:  k.options.Clock.Now(),
		holder: k.options.Holder, Over: make(chan struct{}), fencing: make(chan struct{}, 1)}
	cluster, err := k.refuseOlder(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	s.Key = k.options.Layout.Alive(protocol.SessionAlive(s.Name))
	s.value = protocol.EncodeSession(k.options.Holder+"/"+s.Name, s.since, 0)
	k.options.Predecessors.Opening(ctx, cluster, s.Name, former)
	s.sent = k.options.Clock.Instant()
	if s.Lease, err = k.options.Pool.GrantLease(ctx, link.NewLeaseID(), k.options.TTL); err != nil {
		return nil, nil, 0, err
	}
	if err := k.clearSessions(ctx); err != nil {
		return nil, nil, 0, err
	}
	response, err := k.options.Pool.Commit(ctx, k.options.Pool.Attempt, protocol.Compares{protocol.Absent(s.Key)},
		protocol.Writes{
			protocol.Put(s.Key, protocol.Leased{Value: []byte(s.value), Lease: s.Lease}),
			link.Read(clientv3.OpGet(k.options.Layout.All(protocol.KindSessions), clientv3.WithPrefix(),
				clientv3.WithKeysOnly())),
			link.Read(clientv3.OpGet(k.options.Layout.All(protocol.KindPauses), clientv3.WithPrefix())),
		})
	switch {
	case err != nil:
		return nil, nil, 0, err
	case !response.Succeeded:
		return nil, nil, 0, errors.New("the new session's name is taken")
	}
	s.epoch = response.Header.Revision
	k.options.Pauses.Replace(response.Responses[2].GetResponseRange().Kvs, s.epoch)
	return s, k.sessionNames(response.Responses[1]), s.epoch, nil
}

// sessionNames returns the names of the sessions in an answer.
func (k *Keeper) sessionNames(answer *pb.ResponseOp) map[string]struct{} {
	names := map[string]struct{}{}
	for _, kv := range answer.GetResponseRange().Kvs {
		names[strings.TrimPrefix(string(kv.Key), k.options.Layout.All(protocol.KindSessions))] = struct{}{}
	}
	return names
}

// refuseOlder returns an error if etcd has records of a release that stored them elsewhere: their
// events would run again. Otherwise it returns the ID of the etcd cluster.
func (k *Keeper) refuseOlder(ctx context.Context) (cluster uint64, err error) {
	older, err := k.options.Pool.Get(ctx, k.options.Layout.All(protocol.KindOlderRecords), clientv3.WithPrefix(),
		clientv3.WithCountOnly())
	switch {
	case err != nil:
		return 0, err
	case older.Count > 0:
		return 0, fmt.Errorf("records below %s: %w", k.options.Layout.All(protocol.KindOlderRecords), protocol.ErrOlder)
	}
	return older.Header.ClusterId, nil
}

// clearSessions ends the sessions that an earlier process has left, if this process is alone;
// Predecessors knows of those that shared its directory, and others end with their leases.
func (k *Keeper) clearSessions(ctx context.Context) error {
	if !k.options.Alone {
		return nil
	}
	return k.options.Pool.Delete(ctx, k.options.Layout.All(protocol.KindSessions), clientv3.WithPrefix())
}

// NewName returns a random name: 16 letters and digits that are never used again.
func NewName() string {
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

// renewUntilOver prolongs the lease every quarter of its life, until the session is over or ctx
// ends.
func (k *Keeper) renewUntilOver(ctx context.Context, s *Session) {
	for wait := s.ttl / 4; ; {
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-s.Over:
			t.Stop()
			return
		case <-ctx.Done():
			t.Stop()
			return
		}
		sent := k.options.Clock.Instant()
		err := k.options.Pool.Renew(ctx, s.Lease)
		switch {
		case err == nil:
			if s.noteRenewal(sent) {
				k.announceChange()
			}
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			s.End(ErrGone)
		}
		wait = s.untilRenewal(err)
	}
}

// untilRenewal returns how long the next renewal waits after one with that result.
func (s *Session) untilRenewal(err error) time.Duration {
	switch {
	case err == nil:
		return s.ttl / 4
	case link.TurnedAway(err):
		return min(s.ttl/4, link.LastPause)
	}
	return 50 * time.Millisecond // the next attempt asks another member
}

// awaitExpiry waits until the session may not act any more, reports it, and returns. A timer does
// not see a suspended machine, so it looks every second.
func (k *Keeper) awaitExpiry(ctx context.Context, s *Session) {
	for {
		left := s.Remaining()
		if left <= 0 {
			s.End(ErrUnheard)
			k.options.On.OnExpired(s)
			return
		}
		if link.Sleep(ctx, min(left, time.Second)) != nil {
			return
		}
	}
}

func (k *Keeper) setSession(s *Session, trouble error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.session, k.trouble = s, trouble
	k.announceChangeLocked()
}

func (k *Keeper) announceChange() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.announceChangeLocked()
}

func (k *Keeper) announceChangeLocked() {
	close(k.change)
	k.change = make(chan struct{})
}

// Current returns the live session and a channel that is closed when that changes, or why there is
// none.
func (k *Keeper) Current() (*Session, <-chan struct{}, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session == nil {
		return nil, k.change, k.trouble
	}
	if err := k.session.Err(); err != nil {
		return nil, k.change, err
	}
	return k.session, k.change, nil
}

// WaitReady waits until a session is live. It returns the error of ctx, with the reason why there
// is none, or commit.ErrClosed.
func (k *Keeper) WaitReady(ctx context.Context) error {
	for {
		_, change, err := k.Current()
		if err == nil || errors.Is(err, commit.ErrClosed) {
			return err
		}
		select {
		case <-change:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// Leave deletes the session, so that no process has to wait until its lease expires. It reports
// whether etcd has ended it. It is the last call, after Run.
func (k *Keeper) Leave() (ended bool) {
	s, _, _ := k.Current()
	k.setSession(nil, commit.ErrClosed)
	if s == nil {
		return false
	}
	s.End(commit.ErrClosed)
	return k.options.Pool.EndLease(context.Background(), s.Lease) == nil
}

// Lose ends the session that is live, if there is one; the next one is opened at once.
func (k *Keeper) Lose(reason error) {
	k.mu.Lock()
	s := k.session
	k.mu.Unlock()
	if s != nil {
		s.End(reason)
	}
}
