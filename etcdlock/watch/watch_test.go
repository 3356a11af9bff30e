package watch

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
)

func TestADeletionBetweenReadingAndAskingIsNotMissed(t *testing.T) {
	h := New(&Options{Layout: protocol.NewLayout("/p"), Sessions: session.NewSet()})
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
		{"a session that nobody knows", 12, h.o.Layout.Alive(protocol.SessionAlive("s")), false},
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
	h.Deleted("hold", 5000)
	if h.restart(0); h.subscribe(4999, []string{"hold"}) != nil || h.subscribe(5000, []string{"hold"}) == nil {
		t.Error("a hold that is gone since it was read is waited for: the watch of locks has ended between, and the session has told before")
	}
	if h.Break(6000); h.subscribe(5999, []string{"other"}) != nil || h.subscribe(6000, []string{"other"}) == nil {
		t.Error("what was read before something was missed is not read again")
	}
	if h.Forget(); h.subscribe(5, []string{"gone"}) == nil {
		t.Error("after etcd went back, its revisions of before count")
	}
}

// One watch serves both: those that wait here, and what is parked.
func TestTheEndsOfLocksAndEntriesAreToldAlsoWhileOnlySomethingIsParked(t *testing.T) {
	e := etcdtest.Start(t)
	pool, err := link.OpenPool(&link.Target{Endpoints: []string{e.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	var parked atomic.Bool
	gone, missed := make(chan string, 10), make(chan struct{}, 10)
	h := New(&Options{
		Pool: pool, Layout: protocol.NewLayout("/p"), Sessions: session.NewSet(), Parked: parked.Load,
		Came: func([]*mvccpb.KeyValue, int) {}, Gone: func(key string) { gone <- key }, Missed: func() { missed <- struct{}{} },
	})
	ctx, stop := context.WithCancel(etcdtest.Within(t, etcdtest.Patience))
	over := make(chan struct{})
	go func() { defer close(over); h.Run(ctx) }()
	defer func() { stop(); <-over }()
	parked.Store(true)
	h.Want()
	<-missed // what ended before the watch is looked for
	for _, key := range []string{h.o.Layout.All(protocol.KindLocks) + "w/one", h.o.Layout.All(protocol.KindQueue) + "w/one/a"} {
		if _, err := e.Client.Put(ctx, key, "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Client.Delete(ctx, key); err != nil {
			t.Fatal(err)
		}
		if got := <-gone; got != key {
			t.Errorf("%s is gone, want %s", got, key)
		}
		if h.GoneAt(key, 0) == 0 {
			t.Errorf("no waiter could know that %s is gone", key)
		}
	}
	parked.Store(false)
	etcdtest.Eventually(t, "it stops watching", func() bool { _, watching := h.Watching(); return !watching })
}
