package tend

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/link"
)

// defragment returns what was done to the members, and the error.
func defragment(t *testing.T, alone bool, endpoints ...string) (done []Step, err error) {
	t.Helper()
	d := &Defragmenter{Target: &link.Target{Endpoints: endpoints}, Alone: alone, Say: func(s Step) {
		done = append(done, s)
	}}
	err = d.Run(etcdtest.Within(t, etcdtest.Patience))
	return done, err
}

func leaderOf(t *testing.T, m *etcdtest.Etcd) uint64 {
	t.Helper()
	s, err := m.Client.Status(etcdtest.Within(t, etcdtest.Patience), m.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return s.Leader
}

func TestTheLeaderComesLastAndIsNoneByThen(t *testing.T) {
	members := etcdtest.StartCluster(t, 3)
	before := leaderOf(t, members[0])
	value := string(make([]byte, 1<<20))
	for range 8 {
		if _, err := members[0].Client.Put(t.Context(), "k", value); err != nil {
			t.Fatal(err)
		}
	}
	members[0].Compact(t)
	// the third is reached as it says itself
	done, err := defragment(t, false, members[2].Endpoint, members[0].Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for i, s := range done {
		switch {
		case s.Moved:
			order = append(order, "move")
		default:
			order = append(order, "defragment")
			if s.Leader || s.Took <= 0 || s.After == 0 || s.After > s.Before {
				t.Errorf("%+v", s)
			}
		}
		if i == len(done)-1 && !strings.Contains(s.Endpoint, endpointOf(t, members, before)) {
			t.Errorf("the last one is %+v, not the member that led", s)
		}
	}
	if !slices.Equal(order, []string{"defragment", "defragment", "move", "defragment"}) {
		t.Errorf("got %q", order)
	}
	if after := leaderOf(t, members[0]); after == before {
		t.Error("the leader was defragmented")
	}
}

func endpointOf(t *testing.T, members []*etcdtest.Etcd, id uint64) string {
	t.Helper()
	for _, m := range members {
		if m.ID() == id {
			return m.Endpoint
		}
	}
	t.Fatal("no such member")
	return ""
}

func TestWhereItIsNotSafeNothingIsDefragmented(t *testing.T) {
	two := etcdtest.StartCluster(t, 2)
	learner := etcdtest.AddLearner(t, two)
	damaged, single, stopped := etcdtest.Start(t), etcdtest.Start(t), etcdtest.StartCluster(t, 3)
	damaged.RaiseCorrupt(t)
	stopped[1].Stop()
	for what, c := range map[string]struct {
		alone     bool
		endpoints []string
		says      string
	}{
		"a learner":            {false, []string{two[0].Endpoint, learner.Endpoint}, "is a learner"},
		"a member that is off": {false, []string{stopped[0].Endpoint, stopped[2].Endpoint}, "does not answer"},
		"a damaged member":     {true, []string{damaged.Endpoint}, "CORRUPT"},
		"one member":           {false, []string{single.Endpoint}, "one member"},
	} {
		if done, err := defragment(t, c.alone, c.endpoints...); !errors.Is(err, ErrUnsafe) ||
			!strings.Contains(err.Error(), c.says) || len(done) > 0 {
			t.Errorf("%s: %v, after %+v; want %s", what, err, done, c.says)
		}
	}
	if done, err := defragment(t, true, single.Endpoint); err != nil || len(done) != 1 || !done[0].Leader {
		t.Errorf("one member, allowed: %+v %v", done, err)
	}
}
