package etcdlock

import (
	"context"
	"errors"
	"strings"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// A place that nobody waits with, and that is not parked either, would be the first of its line for
// as long as its process lives.

func TestAQueueEntryWhoseRequestEtcdDoesNotTakeIsGivenUp(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	p := mustEnqueue(t, s, lockFor("w", "one"))
	if err := p.Park(within(t, patience), parkedNow(strings.Repeat("x", 1700<<10))); !errors.Is(err,
		idem.ErrStoreUnavailable) || errors.Is(err, idem.ErrNotRecorded) {
		t.Fatalf("got %v", err)
	}
	must(t, p.Leave)
	mustClaim(t, s, lockFor("w", "two"), 0)
}

func TestAQueueEntryThatCouldNotBeParkedInTimeIsGivenUp(t *testing.T) {
	e := etcdtest.StartWithQuota(t, 1<<20)
	s, kv := lossy(t, e)
	p := mustEnqueue(t, s, lockFor("w", "one"))
	e.Fill(t)
	ctx, cancel := context.WithCancel(within(t, patience))
	goOn, looks := make(chan struct{}), s.layout.Lock(p.Lock.Scope)
	slow := func(key string) {
		if key == looks {
			cancel()
			<-goOn
		}
	}
	kv.reads.Store(&slow)
	if err := p.Park(ctx, parkedNow("body")); !errors.Is(err, idem.ErrNotRecorded) {
		t.Fatalf("got %v", err)
	}
	must(t, p.Leave)
	kv.reads.Store(nil)
	close(goOn)
	eventually(t, "nobody is in the queue", func() bool {
		n, err := e.Count(within(t, patience), s.layout.All(protocol.KindQueue))
		return err == nil && n == 0
	})
}
