package view

import (
	"testing"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
)

// Of the session that is over and the one that follows, either may be told first that there is
// something to acknowledge.
func TestASessionThatIsOverLeavesAPauseToTheNextOne(t *testing.T) {
	over := &session.Session{Over: make(chan struct{})}
	over.End(session.ErrGone)
	for range 50 {
		p := newPauses(protocol.Layout{}, nil)
		link.Wake(p.heard)
		if p.Acknowledge(t.Context(), over, nil); len(p.heard) == 0 {
			t.Fatal("nobody will acknowledge it")
		}
	}
}
