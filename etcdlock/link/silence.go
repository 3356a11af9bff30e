package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
)

// A request that gets no answer ends with its time, and gRPC then says no more than that. silence
// knows more: whether there is a connection, why the last attempt to make one failed, and whether
// the member has a leader.

// silence is what is known of a member that does not answer. It is safe for concurrent use. The
// zero value knows nothing.
type silence struct {
	dial       atomic.Pointer[error] // of the latest attempt to connect; nil = it succeeded, or there was none
	leaderless atomic.Bool           // it has said so, and answered nothing since
}

// errSilent is the end of a request that got no answer: its outcome is unknown.
type errSilent struct {
	text  string
	cause error // context.DeadlineExceeded, beside rpctypes.ErrNoLeader where that is the reason
}

func (e *errSilent) Error() string { return e.text }
func (e *errSilent) Unwrap() error { return e.cause }

// dialOption connects as gRPC does by itself, and remembers why that fails.
func (s *silence) dialOption() grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", address)
		if s.dial.Store(nil); err != nil {
			s.dial.Store(&err)
		}
		return c, err
	})
}

// explainSilence says why a request to c, at endpoint, got no answer within limit. Other errors
// stay as they are.
func (s *silence) explainSilence(err error, c *clientv3.Client, endpoint string, limit time.Duration) error {
	if err == nil {
		s.leaderless.Store(false)
		return nil
	}
	if codeOf(err) != codeName(codes.DeadlineExceeded) || c.ActiveConnection() == nil {
		return err
	}
	err = errors.Join(context.DeadlineExceeded, err) // of a lease, it is one of gRPC
	why := s.dial.Load()
	switch connected := c.ActiveConnection().GetState() == connectivity.Ready; {
	case !connected && why != nil:
		return &errSilent{fmt.Sprintf("no connection to etcd at %s: %v", endpoint, *why), err}
	case !connected:
		return &errSilent{fmt.Sprintf("no connection to etcd at %s: it, or what is before it, takes none; hooklock "+
			"doctor tries each step", endpoint), err}
	case s.leaderless.Load():
		return &errSilent{fmt.Sprintf("etcd at %s has no leader", endpoint), errors.Join(rpctypes.ErrNoLeader, err)}
	}
	return &errSilent{fmt.Sprintf("etcd at %s has not answered within %v, which etcd.request_timeout sets", endpoint,
		limit), err}
}

// noteWatchEnd notes what the end of a watch says of the leader.
func (s *silence) noteWatchEnd(err error) {
	if Says(err, rpctypes.ErrNoLeader) {
		s.leaderless.Store(true)
	}
}

// Because returns err, or why etcd does not answer if err is the end of a caller's time.
func (p *Pool) Because(err error) error {
	if latest := p.latest.Load(); latest != nil && errors.Is(err, context.DeadlineExceeded) {
		return *latest
	}
	return err
}

// WhySilent asks each member that is connected whether it has a leader, where err says that one has
// not answered. It returns err, or that there is none.
func (p *Pool) WhySilent(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*errSilent](err); !ok {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.Attempt)
	defer cancel()
	for _, m := range p.members {
		c := m.connectedClient()
		if c == nil {
			continue
		}
		status, failed := pb.NewMaintenanceClient(c.ActiveConnection()).Status(ctx, &pb.StatusRequest{})
		if failed == nil && status.Leader == 0 {
			m.leaderless.Store(true)
			return m.explainSilence(context.DeadlineExceeded, c, m.endpoint, p.Attempt)
		}
	}
	return err
}

// connectedClient returns the client of a member that has a connection, or nil.
func (m *member) connectedClient() *clientv3.Client {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client == nil || m.client.ActiveConnection() == nil ||
		m.client.ActiveConnection().GetState() != connectivity.Ready {
		return nil
	}
	return m.client
}
