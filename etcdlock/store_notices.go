package etcdlock

import (
	"context"
	"encoding/json"
	"errors"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

var errNoSession = errors.New("there is no session")

// Notices returns which messages were sent to people, and which process sends them. It returns
// idem.ErrStoreUnavailable if etcd cannot be read.
func (s *Control) Notices(ctx context.Context) (n idem.Notices, err error) {
	kvs, _, err := s.pool.Keys(ctx, s.layout.Notices())
	if err != nil {
		return n, commit.Unavailable(err)
	}
	if len(kvs) == 0 {
		return n, nil
	}
	n = protocol.DecodeNotices(kvs[0].Value)
	n.Revision, n.Self = kvs[0].ModRevision, n.Writer == s.writer
	n.Alive = n.Self || n.Session != "" && s.view.Sessions.Has(protocol.SessionAlive(n.Session))
	return n, nil
}

// StoreNotices stores says, the messages that were sent to people, and that this process sends them
// from now on, unless another process has written since the revision since, at which the caller
// read them. kept is the revision of this; 0 means that another process was faster. It returns
// idem.ErrStoreUnavailable if etcd did not take it, or if no answer came: then it may be stored all
// the same.
func (s *Control) StoreNotices(ctx context.Context, says json.RawMessage, since int64) (kept int64, err error) {
	session := s.sessionName()
	if session == "" { // others could not see that this process lives
		return 0, commit.Unavailable(errNoSession)
	}
	lease, err := s.leases.Take(ctx, idem.AuditRetention, "", nil)
	if err != nil {
		return 0, commit.Unavailable(err)
	}
	value := protocol.EncodeNotices(&idem.Notices{Writer: s.writer, Session: session, Says: says})
	key := s.layout.Notices()
	r := commit.NewRequest(key, protocol.Declare(key, since, protocol.Leased{Value: value, Lease: lease}), len(value))
	r.SharedLease = lease
	answer := s.sender.Do(ctx, r)
	s.leases.DropIfGone(lease, answer.Err)
	switch {
	case answer.Err != nil:
		return 0, commit.Unavailable(answer.Err)
	case !answer.Succeeded:
		return 0, nil
	}
	return answer.Revision, nil
}
