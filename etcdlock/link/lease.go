package link

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// GrantLease grants a lease once, with the ID that the caller chose, so that a repeated request
// finds the lease of the first one instead of leaving it behind. An etcd in this process loses no
// answers and chooses the ID itself.
func (p *Pool) GrantLease(ctx context.Context, id clientv3.LeaseID, ttl time.Duration) (clientv3.LeaseID, error) {
	err := p.tryRequest(ctx, opGrant, p.Attempt, func(ctx context.Context, c *clientv3.Client) error {
		if c.ActiveConnection() == nil {
			granted, err := c.Grant(ctx, LeaseSeconds(ttl))
			if err == nil {
				id = granted.ID
			}
			return err
		}
		_, err := clientv3.RetryLeaseClient(c).LeaseGrant(ctx,
			&pb.LeaseGrantRequest{ID: int64(id), TTL: LeaseSeconds(ttl)})
		if err = rpctypes.Error(err); errors.Is(err, rpctypes.ErrLeaseExist) {
			return nil
		}
		return err
	})
	return id, err
}

// Renew prolongs a lease once.
func (p *Pool) Renew(ctx context.Context, id clientv3.LeaseID) error {
	return p.tryRequest(ctx, opRenew, p.Attempt, func(ctx context.Context, c *clientv3.Client) error {
		return RenewLease(ctx, c, id)
	})
}

// RenewLease prolongs a lease once over c. The client's own KeepAliveOnce repeats without a pause
// while nothing listens.
func RenewLease(ctx context.Context, c *clientv3.Client, id clientv3.LeaseID) error {
	if c.ActiveConnection() == nil {
		_, err := c.KeepAliveOnce(ctx, id)
		return err
	}
	ctx, cancel := context.WithCancel(ctx) // ends the stream
	defer cancel()
	stream, err := clientv3.RetryLeaseClient(c).LeaseKeepAlive(ctx)
	if err != nil {
		return rpctypes.Error(err)
	}
	if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(id)}); err != nil {
		return rpctypes.Error(err)
	}
	answer, err := stream.Recv()
	switch {
	case err != nil:
		return rpctypes.Error(err)
	case answer.TTL <= 0:
		return rpctypes.ErrLeaseNotFound
	}
	return nil
}

// NewLeaseID returns a random ID, so that two processes do not choose the same.
func NewLeaseID() clientv3.LeaseID {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return clientv3.LeaseID(max(1, binary.BigEndian.Uint64(b[:])&math.MaxInt64))
}

// MaxLease is below etcd's largest TTL, 9,000,000,000 s.
const MaxLease = 100 * 365 * 24 * time.Hour

// LeaseSeconds returns ttl as etcd counts it: rounded up to whole seconds, at least one.
func LeaseSeconds(ttl time.Duration) int64 {
	return max(1, int64((min(ttl, MaxLease)+time.Second-1)/time.Second))
}

// NewLease grants a lease and repeats until the answer is definite.
func (p *Pool) NewLease(ctx context.Context, ttl time.Duration) (clientv3.LeaseID, error) {
	id := NewLeaseID()
	for pause := NewBackoff(); ; {
		granted, err := p.GrantLease(ctx, id, ttl)
		switch {
		case err == nil:
			return granted, nil
		case Refuses(err), pause.Wait(ctx) != nil:
			return 0, fmt.Errorf("grant lease: %w", err)
		}
	}
}

// Lease returns how long a lease lives on, and what o asks for. It repeats until etcd answers; it
// returns the error of ctx.
func (p *Pool) Lease(ctx context.Context, id clientv3.LeaseID,
	o ...clientv3.LeaseOption) (lease *clientv3.LeaseTimeToLiveResponse, err error) {
	for pause := NewBackoff(); ; {
		err := p.tryRequest(ctx, opTimeToLive, p.Attempt, func(ctx context.Context, c *clientv3.Client) (err error) {
			lease, err = c.TimeToLive(ctx, id, o...)
			return err
		})
		if err == nil {
			return lease, nil
		}
		if pause.Wait(ctx) != nil {
			return nil, fmt.Errorf("read a lease: %w", err)
		}
	}
}

// EndLease ends a lease, and the keys that are on it, once. It is no error if there is no such
// lease.
func (p *Pool) EndLease(ctx context.Context, id clientv3.LeaseID) error {
	return p.tryRequest(ctx, opRevoke, p.Attempt, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Revoke(ctx, id)
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return nil
		}
		return err
	})
}

// Drop ends a lease that no key is on any more and that no transaction names. If that fails, the
// lease expires.
func (p *Pool) Drop(ctx context.Context, id clientv3.LeaseID) { _ = p.EndLease(ctx, id) }
