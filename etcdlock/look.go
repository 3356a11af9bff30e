package etcdlock

import (
	"context"
	"fmt"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
)

// stateIn reads the state from the answers of a transaction that was not applied.
func stateIn(refused commit.Reply) (*protocol.State, error) {
	return protocol.ReadState(refused.Responses, refused.Revision)
}

// look reads how things stand now. It repeats until there is an answer; the error is the context's or about an unreadable value.
func (s *core) look(ctx context.Context, k protocol.Keys) (*protocol.State, error) {
	answers, revision, err := s.pool.ReadOps(ctx, protocol.LockRecordQueueAndMark(k))
	if err != nil {
		return nil, fmt.Errorf("lock and record: %w", err)
	}
	st, err := protocol.ReadState(answers, revision)
	if err == nil && k.M != "" {
		st.Mark = protocol.First(answers[len(answers)-1])
	}
	return st, err
}
