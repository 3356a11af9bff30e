package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
)

// probeHeader and the query parameter probeQuery name a probe. A front may strip one of them.
const (
	probeHeader = "Hooklock-Probe"
	probeQuery  = "hooklock_probe"
)

// arrival holds the requests of one probe.
type arrival struct {
	method, target, host string
	header               http.Header
	body                 []byte
	bodyErr              error
}

// probeListener takes Hooklock's place during a probe. It recognises doctor's requests by their
// names, and refuses others so that a sender retries.
type probeListener struct {
	doors   []*probeDoor // one for each replica that doctor replaces
	health  *probeDoor   // at health.listen, for fronts with health checks; nil if another process has it
	maxBody int64

	mu       sync.Mutex
	answers  map[string]http.HandlerFunc
	arrivals map[string][]arrival
	others   int
}

// probeDoor is one address at which a probeListener listens.
type probeDoor struct {
	server *http.Server
	served chan error
}

// openProbe listens on each of the addresses, with TLS where the configuration has it. close waits
// for its end.
func openProbe(ctx context.Context, setting string, addresses []string, c *config.Config) (*probeListener, error) {
	secure, err := wiring.ServerTLS("listen.tls", &c.Listen.TLS, nil)
	if err != nil {
		return nil, err
	}
	l := &probeListener{maxBody: int64(c.Limits.RequestBody) + 1, answers: map[string]http.HandlerFunc{},
		arrivals: map[string][]arrival{}}
	for _, address := range addresses {
		ln, err := wiring.Listen(ctx, setting, address)
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		if secure != nil {
			ln = tls.NewListener(ln, secure)
		}
		l.doors = append(l.doors, openDoor(ln, l))
	}
	// it dies: what a front sends on an open connection may have arrived, which is no fault
	if last := len(l.doors) - 1; last > 0 {
		l.doors[last].server.SetKeepAlivesEnabled(false)
	}
	if c.Health.Listen != "" {
		if ln, err := wiring.Listen(ctx, "health.listen", c.Health.Listen); err == nil {
			l.health = openDoor(ln, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "ok\n")
			}))
		}
	}
	return l, nil
}

func openDoor(ln net.Listener, h http.Handler) *probeDoor {
	d := &probeDoor{served: make(chan error, 1), server: &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 1 << 20,
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, requestsKey{}, new(atomic.Int32))
		},
	}}
	go func() { d.served <- d.server.Serve(ln) }()
	return d
}

// requestsKey is the key of a connection's number of requests in its context.
type requestsKey struct{}

// close closes the listener and its connections.
func (d *probeDoor) close() error {
	err := d.server.Close()
	if end := <-d.served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

func (l *probeListener) close() error {
	var errs []error
	for _, d := range l.doors {
		errs = append(errs, d.close())
	}
	if l.health != nil {
		errs = append(errs, l.health.close())
	}
	return errors.Join(errs...)
}

// setAnswer sets the answer to the probe with this name.
func (l *probeListener) setAnswer(name string, answer http.HandlerFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers[name] = answer
}

// arrivalsOf returns what has arrived of a probe so far.
func (l *probeListener) arrivalsOf(name string) []arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.arrivals[name]
}

// strangerCount returns the number of requests that were not doctor's own.
func (l *probeListener) strangerCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.others
}

// ServeHTTP implements http.Handler.
func (l *probeListener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if n, ok := r.Context().Value(requestsKey{}).(*atomic.Int32); ok {
		n.Add(1)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, l.maxBody))
	a := arrival{method: r.Method, target: r.RequestURI, host: r.Host, header: r.Header, body: body, bodyErr: err}
	l.mu.Lock()
	answer := l.answers[a.probeName()]
	if answer == nil {
		l.others++
	} else {
		l.arrivals[a.probeName()] = append(l.arrivals[a.probeName()], a)
	}
	l.mu.Unlock()
	if answer == nil {
		writeProblem(w, http.StatusServiceUnavailable,
			"hooklock doctor stands here for some seconds; nothing was executed, send it again")
		return
	}
	answer(w, r)
}

// probeName returns the name of the probe, from the header or the query.
func (a *arrival) probeName() string {
	if name := a.header.Get(probeHeader); name != "" {
		return name
	}
	_, rest, _ := strings.Cut(a.target, probeQuery+"=")
	name, _, _ := strings.Cut(rest, "&")
	return name
}

// writeProblem answers like a refusal of Hooklock.
func writeProblem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	if status == http.StatusConflict || status == http.StatusTooManyRequests ||
		status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "7")
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, problemText(status, detail)) // the client may be gone
}

func problemText(status int, detail string) string {
	return fmt.Sprintf(`{"type":"about:blank","title":%q,"status":%d,"detail":%q,"executed":"no"}`,
		http.StatusText(status), status, detail)
}

// takeIt answers 200.
func takeIt(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

// hangUp closes the connection of a request that was read, without an answer.
func hangUp(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

// hangUpIfReused hangs up on a request that is not the first one of its connection, and answers 200
// to a first one.
func hangUpIfReused(w http.ResponseWriter, r *http.Request) {
	if n, ok := r.Context().Value(requestsKey{}).(*atomic.Int32); ok && n.Load() > 1 {
		hangUp(w, r)
	}
}
