package link

import (
	"context"
	"log/slog"
)

// Releases warns of members whose release breaks a promise. It does not stop anything: an upgrade
// of etcd goes member by member, and an outage does not mend an old one.
type Releases struct {
	endpoints []string
	pool      *Pool
	log       *slog.Logger
	wake      chan struct{}
	said      map[string]string // endpoint to release
}

// NewReleases returns the check of the releases of these endpoints; Run has to be called.
func NewReleases(p *Pool, endpoints []string, log *slog.Logger) *Releases {
	return &Releases{endpoints: endpoints, pool: p, log: log, wake: make(chan struct{}, 1), said: map[string]string{}}
}

// Look asks Run to check all members; it does not wait.
func (r *Releases) Look() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run checks the members when Look asks for it, until ctx ends.
func (r *Releases) Run(ctx context.Context) {
	for {
		select {
		case <-r.wake:
			r.checkMembers(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// checkMembers asks each member once. One that does not answer is left to the next session.
func (r *Releases) checkMembers(ctx context.Context) {
	for _, endpoint := range r.endpoints {
		if version, err := r.pool.readRelease(ctx, endpoint); err == nil {
			r.warnOnce(endpoint, version)
		}
	}
}

// warnOnce warns of a member whose release breaks a promise, once for each of its releases.
func (r *Releases) warnOnce(endpoint, version string) {
	if r.said[endpoint] == version {
		return
	}
	r.said[endpoint] = version
	if err := CheckRelease(version); err != nil {
		r.log.Warn("etcd.release", "endpoint", endpoint, "release", version, "problem", err, "advice", NewEnough)
	}
}

// readRelease returns the release of the member at endpoint, over a connection of its own, which
// does not affect the one in use.
func (p *Pool) readRelease(parent context.Context, endpoint string) (string, error) {
	c, _, err := p.Current()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(parent, p.Attempt)
	defer cancel()
	status, err := c.Status(ctx, endpoint)
	if err != nil {
		return "", err
	}
	return status.Version, nil
}
