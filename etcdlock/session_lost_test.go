package etcdlock

import (
	"errors"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
)

func TestALostSessionIsReportedAndOneThatWasLeftIsNot(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	o := Options{Endpoints: []string{e.Endpoint}}
	events := sessionsOf(&o)
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	first := awaitOpened(t, events)
	endSession(t, e, currentSession(t, s))
	if lost := <-events; lost.Opened || lost.Session != first.Session || !errors.Is(lost.Reason, session.ErrGone) {
		t.Errorf("%+v, want the end of %s", lost, first.Session)
	}
	if next := awaitOpened(t, events); next.Session == first.Session {
		t.Errorf("%s was opened again", next.Session)
	}
	closeStore(t, s)
	for len(events) > 0 {
		if more := <-events; !more.Opened {
			t.Errorf("%+v although nothing was lost", more)
		}
	}
}

// What holds a lock, a hold or the session of another process, is watched with the session: between
// two of them, its end is not reported.
func TestWhatWasReadUnderTheSessionBeforeIsReadAgain(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	o := Options{Endpoints: []string{e.Endpoint}}
	events := sessionsOf(&o)
	s := openStore(t, o)
	awaitOpened(t, events)
	before := currentSession(t, s)
	read := before.Epoch()
	endSession(t, e, before)
	<-events
	awaitOpened(t, events)
	ctx := within(t, patience)
	if s.view.Watcher.Wait(ctx, nil, nil, read,
		s.layout.Alive(protocol.HoldAlive("exec_ended_between"))); ctx.Err() != nil {
		t.Error("it waits for what is not reported")
	}
}
