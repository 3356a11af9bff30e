package watch

import (
	"fmt"
	"testing"

	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
)

func TestADeletionBetweenReadingAndAskingIsNotMissed(t *testing.T) {
	h := New(nil, protocol.NewLayout("/p"), session.NewSet(), nil)
	if h.subscribe(10, []string{"k"}) == nil {
		t.Fatal("the first one begins the watch, where it has read")
	}
	h.Deleted("gone", 12)
	for _, tt := range []struct {
		sentence string
		revision int64
		key      string
		waits    bool
	}{
		{"gone since", 11, "gone", false},
		{"made anew since", 12, "gone", true},
		{"another key", 11, "other", true},
		{"read before the watch began", 9, "other", false},
		{"a session that nobody knows", 12, h.layout.Alive(protocol.SessionAlive("s")), false},
	} {
		if n := h.subscribe(tt.revision, []string{tt.key}); (n != nil) != tt.waits {
			t.Errorf("%s: waits is %v", tt.sentence, n != nil)
		}
	}
	for i := range maxRecent + 1 {
		h.Deleted(fmt.Sprint(i), int64(20+i))
	}
	if len(h.recent) != maxRecent || len(h.order) != maxRecent || h.subscribe(19, []string{"other"}) != nil {
		t.Error("what is not known any more counts as changed")
	}
}
