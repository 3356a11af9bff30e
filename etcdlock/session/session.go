package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
)

// Why a session is not live.
var (
	ErrOpening  = errors.New("session is being opened")
	ErrGone     = errors.New("etcd ended the session")
	ErrUnheard  = errors.New("session was not renewed in time: etcd does not answer")
	ErrWentBack = errors.New("etcd has gone back in time: what it had committed since is gone")
)

// Session is one lease of this process, and the key on it that proves to others that the process is
// alive. Its name is never used again: a session that is gone stays gone. It is safe for concurrent
// use.
type Session struct {
	Name  string           // in its key
	Key   string           // in etcd
	Lease clientv3.LeaseID // what its key, its locks and its queue entries live on
	Over  chan struct{}    // closed by End

	value  string
	holder string
	since  time.Time
	ttl    time.Duration
	margin time.Duration
	clock  link.Clock

	fencing chan struct{} // holds a token while a fence is under way: one at a time

	mu     sync.Mutex
	epoch  int64        // the key's mod revision, as far as this process knows
	heard  int64        // revision up to which this process knows the pauses, to be written into the key
	said   int64        // the same, as the key in etcd has it
	sent   link.Instant // when the last renewal that etcd confirmed was sent
	reason error        // why it is over
	// vanished: etcd said that the session has ended. That may come after another reason: a session
	// that was not renewed in time is over for this process long before etcd ends it.
	vanished bool
}

// Holder returns the name of the session that operators see.
func (s *Session) Holder() string {
	if s.holder == "" {
		return s.Name
	}
	return s.holder + "/" + s.Name
}

// Remaining returns for how long the session may act. It counts from when the renewal was sent, not
// from its answer: etcd's clock for the lease started in between.
func (s *Session) Remaining() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remainingLocked()
}

func (s *Session) remainingLocked() time.Duration { return s.ttl - s.margin - s.clock.Since(s.sent) }

// Err returns why the session may not act, or nil.
func (s *Session) Err() error {
	s.mu.Lock()
	reason := s.reason
	s.mu.Unlock()
	if reason == nil && s.Remaining() <= 0 {
		return ErrUnheard
	}
	return reason
}

// noteRenewal counts from sent on. It reports whether the session may act again that could not.
func (s *Session) noteRenewal(sent link.Instant) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := s.remainingLocked() <= 0
	s.sent = sent
	return late && s.reason == nil
}

// End ends the session for this process; the first reason stays.
func (s *Session) End(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vanished = s.vanished || errors.Is(reason, ErrGone)
	if s.reason == nil {
		s.reason = reason
		close(s.Over)
	}
}

// Confirmed returns when the last renewal that etcd has confirmed was sent.
func (s *Session) Confirmed() link.Instant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// Epoch returns the mod revision of the session's key, as far as this process knows. Transactions
// that create something compare it.
func (s *Session) Epoch() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch
}

func (s *Session) setEpoch(revision, said int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch, s.said = revision, max(s.said, said)
}

// Fence makes every transaction with that epoch fail from now on, unless it has been applied
// already. It repeats until the answer is definite, which includes that the session is gone. It
// returns the error of ctx.
func (s *Session) Fence(ctx context.Context, p *link.Pool, epoch int64) error {
	select {
	case s.fencing <- struct{}{}:
		defer func() { <-s.fencing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for pause := link.NewBackoff(); s.Epoch() == epoch && !s.Gone(); {
		err := s.tryFence(ctx, p, epoch)
		if err != nil && pause.Wait(ctx) != nil {
			return fmt.Errorf("fence: %w", err)
		}
	}
	return nil
}

// Acknowledge writes into the session's key that this process knows the pauses up to that revision;
// the write is a fence. It repeats until etcd has it, or has ended the session. It returns the
// error of ctx.
func (s *Session) Acknowledge(ctx context.Context, p *link.Pool, revision int64) error {
	s.mu.Lock()
	if revision > s.heard {
		s.heard, s.value = revision, protocol.EncodeSession(s.holder+"/"+s.Name, s.since, revision)
	}
	s.mu.Unlock()
	for {
		s.mu.Lock()
		said, epoch := s.said, s.epoch
		s.mu.Unlock()
		if said >= revision || s.Gone() {
			return nil
		}
		if err := s.Fence(ctx, p, epoch); err != nil {
			return err
		}
	}
}

func (s *Session) tryFence(ctx context.Context, p *link.Pool, epoch int64) error {
	s.mu.Lock()
	heard, value := s.heard, s.value
	s.mu.Unlock()
	op := protocol.Fence(protocol.Keys{Session: s.Key}, protocol.Revisions{Epoch: epoch},
		protocol.Leased{Value: []byte(value), Lease: s.Lease})
	response, err := p.Commit(ctx, p.Attempt, nil, protocol.Writes{op})
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound): // and with the lease went the key
		s.End(ErrGone)
		return nil
	case err != nil:
		return err
	}
	answer := response.Responses[0].GetResponseTxn()
	if answer.Succeeded {
		s.setEpoch(response.Header.Revision, heard)
		return nil
	}
	kvs := answer.Responses[0].GetResponseRange().Kvs
	if len(kvs) == 0 {
		s.End(ErrGone)
		return nil
	}
	before, _ := protocol.HeardOf(kvs[0])
	s.setEpoch(kvs[0].ModRevision, before) // an earlier fence of this session, whose answer got lost
	return nil
}

// LearnEpoch learns the new epoch after a refusal that nothing else explains: this process has
// fenced, or the session is gone. It returns the error of ctx, or why the session may not act.
func (s *Session) LearnEpoch(ctx context.Context, p *link.Pool, epoch int64) error {
	if s.Epoch() == epoch {
		if err := s.Fence(ctx, p, epoch); err != nil {
			return err
		}
	}
	return s.Err()
}

// Gone reports whether etcd has said that the session has ended, so that no transaction of it can
// be applied.
func (s *Session) Gone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vanished
}
