package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Why a session is not live.
var (
	errOpening     = errors.New("session is being opened")
	errSessionGone = errors.New("etcd ended the session")
	errUnheard     = errors.New("session was not renewed in time: etcd does not answer")
	errWentBack    = errors.New("etcd has gone back in time: what it had committed since is gone")
)

// session is one lease of this process and the key on it that proves to others that the process lives. Its name is never used
// again: a session that is gone stays gone.
type session struct {
	name   string
	key    string
	value  string
	holder string
	since  time.Time
	lease  clientv3.LeaseID
	ttl    time.Duration
	margin time.Duration
	clock  link.Clock

	over    chan struct{} // closed by end
	fencing chan struct{} // holds one token: who has it may fence

	mu     sync.Mutex
	epoch  int64        // the key's mod revision, as far as this process knows
	heard  int64        // what the value says of pauses: up to which revision this process has heard of them
	said   int64        // the same, as etcd has it
	sent   link.Instant // when the last renewal that etcd confirmed was sent
	reason error        // why it is over
	// vanished: etcd said that it is no more. That may come after another reason: a session that was not heard of in time is over
	// for this process long before etcd ends it.
	vanished bool
}

// remaining is how long the session may act. It counts from when the renewal was sent, not from its answer: etcd's clock for
// the lease started in between.
func (s *session) remaining() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ttl - s.margin - s.clock.Since(s.sent)
}

// err says why the session may not act, or nil.
func (s *session) err() error {
	s.mu.Lock()
	reason := s.reason
	s.mu.Unlock()
	if reason == nil && s.remaining() <= 0 {
		return errUnheard
	}
	return reason
}

func (s *session) renewed(sent link.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = sent
}

// end ends the session for this process; the first reason stays.
func (s *session) end(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vanished = s.vanished || errors.Is(reason, errSessionGone)
	if s.reason == nil {
		s.reason = reason
		close(s.over)
	}
}

func (s *session) currentEpoch() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch
}

func (s *session) setEpoch(revision, said int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch, s.said = revision, max(s.said, said)
}

// fence makes every transaction that was sent with that epoch fail from now on, if it has not been applied yet. It repeats until
// the answer is definite; a session that is gone is a definite answer, too. The error is the context's.
func (s *session) fence(ctx context.Context, p *link.Pool, epoch int64) error {
	select {
	case s.fencing <- struct{}{}:
		defer func() { <-s.fencing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for pause := link.NewBackoff(); s.currentEpoch() == epoch && !s.gone(); {
		err := s.tryFence(ctx, p, epoch)
		if err != nil && pause.Wait(ctx) != nil {
			return fmt.Errorf("fence: %w", err)
		}
	}
	return nil
}

// acknowledge says in the session's key that this process has heard of the pauses up to that revision, which is a fence. It repeats until etcd
// has it, or has ended the session. The error is the context's.
func (s *session) acknowledge(ctx context.Context, p *link.Pool, revision int64) error {
	s.mu.Lock()
	if revision > s.heard {
		s.heard, s.value = revision, protocol.EncodeSession(s.holder+"/"+s.name, s.since, revision)
	}
	s.mu.Unlock()
	for {
		s.mu.Lock()
		said, epoch := s.said, s.epoch
		s.mu.Unlock()
		if said >= revision || s.gone() {
			return nil
		}
		if err := s.fence(ctx, p, epoch); err != nil {
			return err
		}
	}
}

func (s *session) tryFence(ctx context.Context, p *link.Pool, epoch int64) error {
	s.mu.Lock()
	heard, value := s.heard, s.value
	s.mu.Unlock()
	op := protocol.Fence(protocol.Keys{S: s.key}, protocol.Seen{Epoch: epoch}, protocol.Leased{Value: []byte(value), Lease: s.lease})
	response, err := p.Commit(ctx, link.AttemptTimeout, nil, protocol.Writes{op})
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound): // and with the lease went the key
		s.end(errSessionGone)
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
		s.end(errSessionGone)
		return nil
	}
	before, _ := protocol.HeardOf(kvs[0])
	s.setEpoch(kvs[0].ModRevision, before) // an earlier fence of ours, whose answer got lost
	return nil
}

// moved learns the new epoch after a refusal that nothing else explains: this process fenced, or the session is gone.
func (s *session) moved(ctx context.Context, p *link.Pool, epoch int64) error {
	if s.currentEpoch() == epoch {
		if err := s.fence(ctx, p, epoch); err != nil {
			return err
		}
	}
	return s.err()
}

// gone reports whether etcd has said that the session is no more, so that nothing of it can be applied.
func (s *session) gone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vanished
}

// prepare makes l the lock of the live session, and its value.
func (s *core) prepare(l *idem.Lock) (*session, []byte, error) {
	session, err := s.assign(l)
	if err != nil {
		return nil, nil, err
	}
	value, err := protocol.EncodeLock(l)
	if err != nil {
		return nil, nil, unavailable(err)
	}
	return session, value, nil
}

// assign makes l the lock of the live session.
func (s *core) assign(l *idem.Lock) (*session, error) {
	session, _, err := s.keeper.current()
	if err != nil {
		return nil, unavailable(err)
	}
	if len(l.Scope.Workflow) > protocol.MaxWorkflowBytes {
		return nil, unavailable(fmt.Errorf("workflow of %d bytes, at most %d: %w", len(l.Scope.Workflow), protocol.MaxWorkflowBytes, protocol.ErrTooLarge))
	}
	if !utf8.ValidString(l.Scope.Workflow) { // its value could not spell it
		return nil, unavailable(fmt.Errorf("workflow %q: give UTF-8", l.Scope.Workflow))
	}
	l.Alive = protocol.SessionAlive(session.name)
	if l.Holder == "" {
		l.Holder = s.holder(session)
	}
	return session, nil
}

// holder names the session for people.
func (s *core) holder(session *session) string {
	if s.o.Holder == "" {
		return session.name
	}
	return s.o.Holder + "/" + session.name
}
