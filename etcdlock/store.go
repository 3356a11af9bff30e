package etcdlock

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/idem"
)

// Options say where the ledger is and how its owner wants to hear of changes.
type Options struct {
	// Endpoints of the etcd members, host:port or http(s)://host:port. Each gets a connection of its own.
	Endpoints []string
	// Client is used instead of Endpoints, for an etcd in this process. The Store does not close it.
	Client *clientv3.Client

	Username string
	Password string
	TLS      *tls.Config // nil = no TLS

	// Prefix of every key; "" = "/hooklock". Stores that share locks share it.
	Prefix string
	// SessionTTL is how long the locks of a dead process stay closed; whole seconds, at least 2 s; 0 = 15 s.
	SessionTTL time.Duration
	// Holder names this process for people, usually host/pid; the session's name is appended.
	Holder string
	Logger *slog.Logger // nil = silent

	// OnSession is called after a session has opened and after one was lost. What was known from the store before a loss may
	// be out of date afterwards. Calls do not overlap. It must not block.
	OnSession func(SessionEvent)
	// OnForget is called when somebody forgot the record of an execution. It must not block.
	OnForget func(idem.ExecutionID)
	// OnReset is called when forgets may have been missed: whoever caches records drops them all. It must not block.
	OnReset func()
}

// SessionEvent is a change in the life of this process's session.
type SessionEvent struct {
	Opened  bool   // false: it was lost
	Session string // its name
	Reason  error  // why it was lost
	Adopted int    // running locks that an opened session is going to take over from the one before
}

// Store is the ledger in etcd. It implements idem.Ledger. Make one with Open, and Close it.
type Store struct{}

var _ idem.Ledger = (*Store)(nil)

var errSkeleton = errors.Join(idem.ErrStoreUnavailable)

// Open returns at once; the session opens in the background, for as long as it takes. The error is about the options.
func Open(o Options) (*Store, error) { return &Store{}, nil }

// WaitReady waits until a session is live. Its error is the context's, with the reason why none is.
func (s *Store) WaitReady(ctx context.Context) error { return errSkeleton }

// Ready says why no session is live, or nil.
func (s *Store) Ready() error { return errSkeleton }

// SessionTTLRemaining is how long the session may still act without another renewal; 0 when there is none.
func (s *Store) SessionTTLRemaining() time.Duration { return 0 }

// Close waits until what is still unanswered is resolved, at most until ctx ends, and ends the session.
func (s *Store) Close(ctx context.Context) error { return nil }

// Claim implements idem.Ledger.
func (s *Store) Claim(ctx context.Context, l idem.Lock, prev int64) (idem.Held, *idem.Seen, error) {
	return nil, nil, errSkeleton
}

// Bury implements idem.Ledger.
func (s *Store) Bury(ctx context.Context, dead *idem.Lock) error { return errSkeleton }
