package etcdlock

import (
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// together lets what each of do sends leave s in one request, and returns when all have their
// answers.
func together(tb testing.TB, s *Store, do ...func() error) {
	tb.Helper()
	release := s.sender.Hold()
	errs := make(chan error, len(do))
	for _, f := range do {
		go func() { errs <- f() }()
	}
	eventually(tb, "all wait to leave", func() bool { return s.sender.Waiting() == len(do) })
	release()
	for range do {
		if err := <-errs; err != nil {
			tb.Fatal(err)
		}
	}
}

// What travels in one request has one revision in etcd.
func TestPausesThatTravelTogetherAreBothInForceAndBothEnd(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	pauses := []idem.Pause{pauseOf(t, "workflow:one"), pauseOf(t, "workflow:two")}
	each := func(do func(idem.Pause) error) (all []func() error) {
		for _, p := range pauses {
			all = append(all, func() error { return do(p) })
		}
		return all
	}
	together(t, a, each(func(p idem.Pause) error { return second(a.Pause(within(t, patience), p, nil)) })...)
	for _, s := range []*Store{a, b} {
		eventually(t, "both are in force", func() bool { return len(s.PausedHere()) == 2 })
		for _, p := range pauses {
			refusedAsPaused(t, s, lockFor(p.Scope.Workflow, "event"), p)
		}
	}
	together(t, a, each(func(p idem.Pause) error { return second(a.Resume(within(t, patience), p.Scope, nil)) })...)
	for _, s := range []*Store{a, b} {
		eventually(t, "none is in force", func() bool { return s.PausedHere() == nil })
	}
}
