package etcdlock

import (
	"encoding/json"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
	"hooklock/test/testkit"
)

// notices reads what was told, at s.
func notices(tb testing.TB, s *Store) idem.Notices {
	tb.Helper()
	n, err := s.Notices(within(tb, patience))
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// keepNotices writes what was told, at s. It returns 0 if another process was faster.
func keepNotices(tb testing.TB, s *Store, says string, since int64) int64 {
	tb.Helper()
	kept, err := s.StoreNotices(within(tb, patience), json.RawMessage(says), since)
	if err != nil {
		tb.Fatal(err)
	}
	return kept
}

func TestOneProcessTellsUntilItDiesAndWhatItToldStays(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	a, b := openReady(t, Options{Endpoints: []string{e.Endpoint}}),
		openReady(t, Options{Endpoints: []string{e.Endpoint}})
	t.Cleanup(func() { closeStore(t, a); closeStore(t, b) })
	if n := notices(t, a); n.Revision != 0 || n.Alive || n.Self {
		t.Fatalf("at first: %+v", n)
	}
	first := keepNotices(t, a, `"one"`, 0)
	if n := keepNotices(t, b, `"other"`, 0); first == 0 || n != 0 {
		t.Fatalf("both write at the same revision: %d, %d", first, n)
	}
	if n := notices(t, a); !n.Self || !n.Alive || n.Revision != first || string(n.Says) != `"one"` {
		t.Errorf("at the one that tells: %+v", n)
	}
	if n := notices(t, b); n.Self || !n.Alive || string(n.Says) != `"one"` {
		t.Errorf("at the other: %+v", n)
	}
	die(t, e, a)
	testkit.Until(t, "its death is known", func() bool { return !notices(t, b).Alive })
	if n := keepNotices(t, b, `"two"`, notices(t, b).Revision); n <= first {
		t.Errorf("taken over at %d, after %d", n, first)
	}
	if n := notices(t, b); !n.Self || string(n.Says) != `"two"` {
		t.Errorf("after the take-over: %+v", n)
	}
}
