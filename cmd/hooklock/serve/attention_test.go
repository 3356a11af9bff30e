package serve

import (
	"testing"

	"hooklock/admin/client"
	"hooklock/idem"
)

func TestOneOfTheLiveReplicasCountsWhatNeedsAttention(t *testing.T) {
	note := func(writer string, alive, self bool) idem.ReplicaNote {
		return idem.ReplicaNote{Writer: writer, Alive: alive, Self: self}
	}
	for _, c := range []struct {
		name  string
		notes []idem.ReplicaNote
		first bool
	}{
		{"it is alone", []idem.ReplicaNote{note("b", true, true)}, true},
		{"another one is before it", []idem.ReplicaNote{note("b", true, true), note("a", true, false)}, false},
		{"the one before it is dead", []idem.ReplicaNote{note("b", true, true), note("a", false, false)}, true},
		{"the one before it has stopped",
			[]idem.ReplicaNote{note("b", true, true), {Writer: "a", Alive: true, Stopped: true}}, true},
		{"another one is behind it", []idem.ReplicaNote{note("b", true, true), note("c", true, false)}, true},
	} {
		if got := isFirst(c.notes); got != c.first {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestWhatCannotBeReadIsNotCountedAsNothing(t *testing.T) {
	list := client.Attention{Items: []client.AttentionItem{{Kind: client.AttentionHeld}, {Kind: client.AttentionHeld}}}
	if got := *countKinds(&list); got[client.AttentionHeld] != 2 || len(got) != len(client.AttentionKinds()) {
		t.Errorf("%v", got)
	}
	list.NotKnown = []string{"replicas"}
	if got := *countKinds(&list); got[client.AttentionHeld] != 2 || len(got) != 1 {
		t.Errorf("%v", got)
	}
}
