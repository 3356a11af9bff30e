package etcdlock

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// Two processes that ask at once about events of one body get one first event. An erasure leaves
// nothing of its ID, nor of that of its twins.
func TestTwinsHaveOneFirstEventWhichAnErasureForgets(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	ask := func(s *Store, event string) idem.FirstTwin {
		t.Helper()
		l := lockFor("w", event)
		first, err := s.FirstTwin(within(t, patience), &idem.Twin{Scope: l.Scope, Route: "r", EventID: event,
			Window: time.Minute, Life: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return first
	}
	if first := ask(a, "secret-one"); first != (idem.FirstTwin{}) {
		t.Fatalf("%+v", first)
	}
	one := lockFor("w", "secret-one")
	want := idem.FirstTwin{Key: one.Scope.Key, EventID: "secret-one", New: true}
	if first := ask(b, "secret-two"); first != want {
		t.Fatalf("%+v", first)
	}
	want.New = false
	if first := ask(a, "secret-two"); first != want {
		t.Fatalf("%+v", first)
	}
	id := endedAs(t, a, "w", "secret-one", nil, success("body"))
	if _, err := a.Forget(within(t, patience), id,
		idem.Cancel{By: "ops", Reason: "asked", At: time.Now(), Erase: true}, nil); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"twins/", "aliases/", "joined/"} {
		left, err := e.Client.Get(t.Context(), a.layout.All(kind), clientv3.WithPrefix())
		if err != nil || left.Count != 0 {
			t.Errorf("%s: %v %v", kind, left, err)
		}
	}
	if first := ask(b, "secret-two"); first != (idem.FirstTwin{}) {
		t.Errorf("%+v", first)
	}
}
