package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
)

// Limits bound single requests to etcd. A hung member must cost less than a session's life, and a
// far one must have the time to answer.
type Limits struct {
	// Attempt bounds one renewal, grant or read.
	Attempt time.Duration
	// Txn bounds one transaction. It is longer: giving up too early makes an answer ambiguous that
	// was merely late.
	Txn time.Duration
	// connect bounds one attempt to connect: one that was begun while packets got lost is given up
	// before the system's own pauses grow.
	connect time.Duration
}

// LimitsFor returns the limits for a caller that waits for etcd for request in all; 0 = 2 s. They
// never get shorter than for 2 s, because a slow disk answers late whatever a caller wants. etcd's
// own limit is 7 s, and behind it the client repeats writes by itself (etcd-io/etcd#18424).
func LimitsFor(request time.Duration) Limits {
	const least, most = 2 * time.Second, 10 * time.Second
	request = min(max(request, least), most)
	return Limits{Attempt: request * 35 / 100, Txn: request / 2, connect: request}
}

// connectParams bound the pauses between attempts to reach a member. gRPC's own pauses grow to two
// minutes, and a member that is back would be unused for as long.
func (l Limits) connectParams() grpc.ConnectParams {
	return grpc.ConnectParams{
		Backoff: grpcbackoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
			MaxDelay: 300 * time.Millisecond},
		MinConnectTimeout: l.connect,
	}
}

// Pool has one connection for each etcd member and uses one of them until it fails. etcd's own
// balancer rotates over all of them, so that a hung member gets its share of the requests for as
// long as it hangs.
type Pool struct {
	// Limits bound its requests. They never change.
	Limits
	members []*member
	owned   bool
	latest  atomic.Pointer[error] // why the latest request got no answer; nil = it got one
	onBack  func(before, now int64)

	mu    sync.Mutex
	used  int           // the member that is used
	moved chan struct{} // closed at the next change of used, and when etcd has gone back
	at    moment
	ages  ages
}

// member is one etcd endpoint. It is connected to when it is first used: with a user name the
// client asks for a token before it exists, and Open must not need etcd.
type member struct {
	silence
	target     *Target
	attempt    time.Duration // bounds the fetch of a token
	endpoint   string        // as configured; "" for an etcd in this process, as host and port are
	host, port string
	report     func(Operation) // nil = nothing is measured

	mu     sync.Mutex
	client *clientv3.Client
	waits  clientv3.Watcher // with a user name only; see watching.go
}

func (m *member) openClient() (*clientv3.Client, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client == nil {
		c, err := m.dialClient()
		if err != nil {
			return nil, fmt.Errorf("%w: connect to etcd: %w", ErrNotSent, err)
		}
		m.client = c
	}
	return m.client, nil
}

func (m *member) dialClient() (c *clientv3.Client, err error) {
	if m.target.Username == "" {
		return Dial(m.target, m.endpoint, m.attempt, m.dialOption())
	}
	err = m.measureRequest(opAuthenticate, func() error {
		c, err = Dial(m.target, m.endpoint, m.attempt, m.dialOption())
		return err
	})
	return c, err
}

// Target is an etcd, and the user to use it as.
type Target struct {
	// Endpoints of the members, host:port or http(s)://host:port. Each gets a connection of its
	// own.
	Endpoints []string
	// Client is used instead of Endpoints, for an etcd in this process. This package does not close
	// it.
	Client *clientv3.Client

	// RequestTimeout is for how long a caller waits for etcd, which LimitsFor derives the limits of
	// single requests from; 0 = 2 s.
	RequestTimeout time.Duration

	Username string // "" = none, or the name in the client certificate
	Password string
	TLS      *tls.Config // nil = no TLS

	// Clock measures the age of revisions; the zero value is SystemClock.
	Clock Clock
	// OnOperation is called after each request, but for watches. It must not block. Nil measures
	// nothing.
	OnOperation func(Operation)
	// OnBack is called when etcd answers with a smaller revision than before: what it had committed
	// since is gone. Afterwards every watch ends, so that its owner reads again. It must not block.
	// Nil = not called.
	OnBack func(before, now int64)
}

// OpenPool returns a pool. It needs no network yet. Its error is about o.
func OpenPool(o *Target) (*Pool, error) {
	p := &Pool{Limits: LimitsFor(o.RequestTimeout), moved: make(chan struct{}), onBack: o.OnBack,
		ages: ages{clock: o.Clock}}
	if o.Clock.Now == nil {
		p.ages.clock = SystemClock()
	}
	if o.Client != nil {
		if _, ok := o.Client.KV.(Committer); !ok && o.Client.ActiveConnection() == nil {
			return nil, errors.New("the client has no connection, and its KV is no link.Committer: take the one of " +
				"package embedded")
		}
		p.members = []*member{{client: o.Client, report: o.OnOperation}}
		return p, nil
	}
	if len(o.Endpoints) == 0 {
		return nil, errors.New("give etcd endpoints, or a client")
	}
	p.owned = true
	for _, endpoint := range o.Endpoints {
		m := &member{target: o, attempt: p.Attempt, report: o.OnOperation, endpoint: endpoint}
		m.host, m.port = HostPort(endpoint)
		if o.Username == "" {
			if _, err := m.openClient(); err != nil { // no network yet: the endpoint is malformed
				_ = p.Close()
				return nil, err
			}
		}
		p.members = append(p.members, m)
	}
	return p, nil
}

// Dial connects to one endpoint in the background. With a user name it fetches a token first,
// within limit.
func Dial(o *Target, endpoint string, limit time.Duration, more ...grpc.DialOption) (*clientv3.Client, error) {
	var config *tls.Config
	if o.TLS != nil {
		config = o.TLS.Clone()
	}
	return clientv3.New(clientv3.Config{
		Endpoints:   []string{endpoint},
		DialTimeout: limit,
		// A dead connection is found after 13 s, and after 3 s where the system reports unanswered
		// packets. Renewals find it sooner.
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		MaxUnaryRetries: 1, // a retry of our own goes to another member
		Username:        o.Username, Password: o.Password, TLS: config,
		Logger: zap.NewNop(),
		DialOptions: append(more, grpc.WithConnectParams(LimitsFor(o.RequestTimeout).connectParams()),
			grpc.WithNoProxy()),
	})
}

// Current returns the client in use, with the number that failOverFrom needs.
func (p *Pool) Current() (*clientv3.Client, int, error) {
	p.mu.Lock()
	at := p.used
	p.mu.Unlock()
	c, err := p.members[at].openClient()
	return c, at, err
}

// failOverFrom moves on from member from, unless another call already did.
func (p *Pool) failOverFrom(from int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used != from || len(p.members) == 1 {
		return
	}
	p.used = (p.used + 1) % len(p.members)
	p.wakeOnMoveLocked()
}

func (p *Pool) wakeOnMoveLocked() {
	close(p.moved)
	p.moved = make(chan struct{})
}

// memberLeft returns what is closed when member at is no longer current, or etcd has gone back.
func (p *Pool) memberLeft(at int) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used != at {
		gone := make(chan struct{})
		close(gone)
		return gone
	}
	return p.moved
}

// tryRequest sends one request to the current member, which is measured by its name; if that member
// does not answer, the next one goes to another.
func (p *Pool) tryRequest(parent context.Context, name string, limit time.Duration,
	request func(context.Context, *clientv3.Client) error) error {
	c, at, err := p.Current()
	if err != nil {
		p.failOverFrom(at)
		return err
	}
	ctx, cancel := context.WithTimeout(parent, limit)
	defer cancel()
	m := p.members[at]
	once := func() error {
		err := request(ctx, c)
		if parent.Err() == nil {
			err = m.explainSilence(err, c, m.endpoint, limit)
		}
		return err
	}
	if err = m.measureRequest(name, once); staleToken(err) {
		err = m.measureRequest(name, once)
	}
	if parent.Err() == nil {
		p.noteSilence(err)
	}
	if err != nil && parent.Err() == nil && !Definite(err) {
		p.failOverFrom(at)
	}
	return err
}

// noteSilence remembers why a request got no answer, until one gets it.
func (p *Pool) noteSilence(err error) {
	var silent *errSilent
	switch {
	case errors.As(err, &silent):
		p.latest.Store(&err)
	case p.latest.Load() != nil:
		p.latest.Store(nil)
	}
}

// Commit sends a transaction once that does ops if all compares hold.
func (p *Pool) Commit(parent context.Context, limit time.Duration, compares []*pb.Compare,
	ops []*pb.RequestOp) (response *pb.TxnResponse, err error) {
	txn, before := &pb.TxnRequest{Compare: compares, Success: ops}, p.currentMoment()
	err = p.tryRequest(parent, opTxn, limit, func(ctx context.Context, c *clientv3.Client) (err error) {
		response, err = Commit(ctx, c, txn)
		return err
	})
	if err == nil && ofAll(ops) {
		p.compareRevision(before, response.Header.Revision)
	}
	return response, err
}

// Get reads keys once.
func (p *Pool) Get(ctx context.Context, key string, o ...clientv3.OpOption) (answer *clientv3.GetResponse, err error) {
	err = p.tryRequest(ctx, opRange, p.Attempt, func(ctx context.Context, c *clientv3.Client) (err error) {
		answer, err = c.Get(ctx, key, o...)
		return err
	})
	return answer, err
}

// Delete deletes keys that no transaction compares, once.
func (p *Pool) Delete(ctx context.Context, key string, o ...clientv3.OpOption) error {
	return p.tryRequest(ctx, opDelete, p.Attempt, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Delete(ctx, key, o...)
		return err
	})
}

// Close closes the connections that OpenPool has made.
func (p *Pool) Close() error {
	var errs []error
	for _, m := range p.members {
		m.mu.Lock()
		if m.waits != nil {
			_ = m.waits.Close() // nothing is lost with a watch
		}
		if m.client != nil && p.owned {
			if err := m.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
				errs = append(errs, err)
			}
		}
		m.mu.Unlock()
	}
	return errors.Join(errs...)
}
