package etcdlock

import (
	"context"
	"log/slog"
)

// releases warns of members whose release breaks a promise. It does not stop anything: an upgrade of etcd goes member by member, and
// an outage does not mend an old one.
type releases struct {
	endpoints []string
	version   func(ctx context.Context, endpoint string) (string, error)
	log       *slog.Logger
	wake      chan struct{}
	said      map[string]string // endpoint to release
}

func newReleases(p *pool, endpoints []string, log *slog.Logger) *releases {
	return &releases{endpoints: endpoints, version: p.version, log: log, wake: make(chan struct{}, 1), said: map[string]string{}}
}

// look asks for a look at all members; it does not wait.
func (r *releases) look() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *releases) run(ctx context.Context) {
	for {
		select {
		case <-r.wake:
			r.check(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// check leaves a member that does not answer to the next session.
func (r *releases) check(ctx context.Context) {
	for _, endpoint := range r.endpoints {
		version, err := r.version(ctx, endpoint)
		if err != nil || r.said[endpoint] == version {
			continue
		}
		r.said[endpoint] = version
		if err := checkRelease(version); err != nil {
			r.log.Warn("etcd.release", "endpoint", endpoint, "release", version, "problem", err, "advice", newEnough)
		}
	}
}

// version is the release of the member at endpoint, over a connection made for the question: it says nothing about the one in use.
func (p *pool) version(parent context.Context, endpoint string) (string, error) {
	c, _, err := p.current()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(parent, attemptTimeout)
	defer cancel()
	status, err := c.Status(ctx, endpoint)
	if err != nil {
		return "", err
	}
	return status.Version, nil
}
