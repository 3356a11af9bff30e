package view

import (
	"context"
	"fmt"
	"testing"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func TestADeletionBetweenReadingAndAskingIsNotMissed(t *testing.T) {
	h := New(&Options{Layout: protocol.NewLayout("/p")}).Watcher
	if h.subscribe(10, []string{"k"}) == nil {
		t.Fatal("the first one begins the watch, where it has read")
	}
	h.WakeFor("gone", 12)
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
		{"a session that nobody knows", 12, h.view.options.Layout.Alive(protocol.SessionAlive("s")), false},
	} {
		if n := h.subscribe(tt.revision, []string{tt.key}); (n != nil) != tt.waits {
			t.Errorf("%s: waits is %v", tt.sentence, n != nil)
		}
	}
	for i := range maxRecent + 1 {
		h.WakeFor(fmt.Sprint(i), int64(20+i))
	}
	if len(h.recent) != maxRecent || len(h.order) != maxRecent || h.subscribe(19, []string{"other"}) != nil {
		t.Error("what is not known any more counts as changed")
	}
	h.WakeFor("hold", 5000)
	if h.restartWatch(0); h.subscribe(4999, []string{"hold"}) != nil || h.subscribe(5000, []string{"hold"}) == nil {
		t.Error(
			"a hold that is gone since it was read is waited for: the watch of locks has ended between, and the session has told before")
	}
	if h.Break(6000); h.subscribe(5999, []string{"other"}) != nil || h.subscribe(6000, []string{"other"}) == nil {
		t.Error("what was read before something was missed is not read again")
	}
	if h.forgetAll(); h.subscribe(5, []string{"gone"}) == nil {
		t.Error("after etcd went back, its revisions of before count")
	}
}

// unheard is a process that is told of what is parked.
type unheard struct{ Process }

func (unheard) OnParkedChange(idem.ExecutionID) {}

// One watch serves both: those that wait here, and what is parked.
func TestAQueueIsReadyWhenItsLockOrAnEntryIsGoneAlsoWhileNothingWaitsHere(t *testing.T) {
	e := etcdtest.Start(t)
	pool, err := link.OpenPool(&link.Target{Endpoints: []string{e.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	v := New(&Options{Pool: pool, Layout: layout, Tasks: commit.NewTasks(), Process: unheard{}})
	ctx, stop := context.WithCancel(etcdtest.Within(t, etcdtest.Patience))
	over := make(chan struct{})
	go func() { defer close(over); v.Run(ctx) }()
	defer func() { stop(); <-over }()
	l := lockFor("parked")
	l.Parked = &idem.Parked{}
	keys := layout.Keys(&l)
	put := func(key string, value []byte) {
		t.Helper()
		if _, err := e.Client.Put(ctx, key, string(value)); err != nil {
			t.Fatal(err)
		}
	}
	gone := func(key string) {
		t.Helper()
		if _, err := e.Client.Delete(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	ready := func() {
		t.Helper()
		if scope, _, err := v.Parked.Next(ctx); err != nil || scope.Workflow != l.Scope.Workflow {
			t.Fatalf("ready is %v: %v", scope, err)
		}
	}
	put(keys.Index, protocol.EncodeIndex(protocol.IndexOf(&l)))
	ready() // because it is new; and once more, because the watch has begun, perhaps only now
	for _, key := range []string{keys.Lock, keys.Entry, keys.Lock, keys.Entry} {
		put(key, []byte("x"))
		gone(key)
		ready()
	}
	gone(keys.Index)
	etcdtest.Eventually(t, "it stops watching", func() bool { _, watching := v.Watcher.Watching(); return !watching })
}
