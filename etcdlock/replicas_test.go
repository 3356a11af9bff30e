package etcdlock

import (
	"encoding/json"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
	"hooklock/test/testkit"
)

// described is what s knows of the process that says it is name; nil: it knows of none.
func described(tb testing.TB, s *Store, name string) *idem.ReplicaNote {
	tb.Helper()
	all, err := s.Replicas(within(tb, patience))
	if err != nil {
		tb.Fatal(err)
	}
	for i := range all {
		var text string
		if json.Unmarshal(all[i].Says, &text) == nil && text == name {
			return &all[i]
		}
	}
	return nil
}

func TestEachReplicaKnowsTheOthersAndHowTheyEnded(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	open := func(name string) *Store {
		return openReady(t, Options{Endpoints: []string{e.Endpoint}, Describe: func() []byte {
			return []byte(`"` + name + `"`)
		}})
	}
	a, stops, dies := open("a"), open("stops"), open("dies")
	t.Cleanup(func() { closeStore(t, a); closeStore(t, dies) })
	for _, name := range []string{"stops", "dies"} {
		testkit.Until(t, name+" is known", func() bool {
			n := described(t, a, name)
			return n != nil && n.Alive && !n.Self
		})
	}
	if n := described(t, a, "a"); n == nil || !n.Alive || !n.Self {
		t.Errorf("itself: %+v", n)
	}
	closeStore(t, stops)
	if n := described(t, a, "stops"); n == nil || !n.Stopped {
		t.Errorf("after its stop: %+v", n)
	}
	die(t, e, dies)
	testkit.Until(t, "its death is known", func() bool {
		n := described(t, a, "dies")
		return n != nil && !n.Alive && !n.Stopped
	})
}

func TestAProcessThatSaysNothingIsNotAmongTheReplicas(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	s := openReady(t, Options{Endpoints: []string{e.Endpoint}})
	defer closeStore(t, s)
	if all, err := s.Replicas(within(t, patience)); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}
