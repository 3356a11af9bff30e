package link

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"hooklock/etcdlock/etcdtest"
)

// silentPool is a pool of one endpoint.
func silentPool(t *testing.T, endpoint string) *Pool {
	t.Helper()
	p, err := OpenPool(&Target{Endpoints: []string{endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func TestARequestWithoutAnAnswerSaysWhy(t *testing.T) {
	e := etcdtest.Start(t)
	hangs := etcdtest.NewWire(t, e.Endpoint)
	hung := silentPool(t, hangs.Endpoint)
	if _, err := hung.Get(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	hangs.Blackhole(true)
	deaf := etcdtest.NewWire(t, e.Endpoint)
	deaf.Blackhole(true)
	for what, c := range map[string]struct {
		p    *Pool
		says string
	}{
		"nothing listens": {silentPool(t, "127.0.0.1:1"),
			"no connection to etcd at 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused"},
		"it takes connections, alone": {silentPool(t, deaf.Endpoint), "no connection to etcd at " + deaf.Endpoint +
			": it, or what is before it, takes none"},
		"it hangs": {hung, "etcd at " + hangs.Endpoint +
			" has not answered within 700ms, which etcd.request_timeout sets"},
	} {
		_, err := c.p.Get(t.Context(), "k")
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "deadline") {
			t.Errorf("%s: got %v, want %s", what, err, c.says)
		}
		if Definite(err) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: the outcome of %v is known", what, err)
		}
	}
}

// TestAReportOfARequestSaysWhyThereWasNoAnswer: its code alone is DEADLINE_EXCEEDED, whether etcd
// refuses connections or hangs.
func TestAReportOfARequestSaysWhyThereWasNoAnswer(t *testing.T) {
	var reported []Operation
	p, err := OpenPool(&Target{Endpoints: []string{"127.0.0.1:1"}, OnOperation: func(op Operation) {
		reported = append(reported, op)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Get(t.Context(), "k"); err == nil {
		t.Fatal("an answer of nothing")
	}
	const why = "no connection to etcd at 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused"
	if len(reported) != 1 || reported[0].Why != why || reported[0].Code != "DEADLINE_EXCEEDED" {
		t.Errorf("%+v", reported)
	}
}

// The one that is left of two says so, to a watch at once, and answers no write.
func TestAMemberWithoutALeaderIsCalledThat(t *testing.T) {
	members := etcdtest.StartCluster(t, 2)
	p := silentPool(t, members[0].Endpoint)
	ctx := etcdtest.Within(t, etcdtest.Patience)
	if _, err := p.Get(ctx, "k"); err != nil {
		t.Fatal(err)
	}
	members[1].Stop()
	etcdtest.Eventually(t, "it has no leader", func() bool {
		s, err := members[0].Client.Status(ctx, members[0].Endpoint)
		return err == nil && s.Leader == 0
	})
	_, err := p.GrantLease(ctx, NewLeaseID(), time.Minute)
	err = p.WhySilent(ctx, err)
	if !errors.Is(err, rpctypes.ErrNoLeader) || !strings.Contains(err.Error(), "has no leader") || Definite(err) {
		t.Errorf("got %v", err)
	}
	if err := p.Watch(ctx, OfWaits, Watch{Key: "k"}); !Says(err, rpctypes.ErrNoLeader) {
		t.Errorf("a watch: %v", err)
	}
	if _, err := p.Get(ctx, "k"); !errors.Is(err, rpctypes.ErrNoLeader) {
		t.Errorf("a read after that: %v", err)
	}
}

func TestTheLimitsOfSingleRequestsGrowWithTheTimeOfACaller(t *testing.T) {
	for request, want := range map[time.Duration]string{
		0: "700ms 1s", 500 * time.Millisecond: "700ms 1s", 2 * time.Second: "700ms 1s", 4 * time.Second: "1.4s 2s",
		time.Minute: "3.5s 5s",
	} {
		if l := LimitsFor(request); fmt.Sprint(l.Attempt, " ", l.Txn) != want {
			t.Errorf("%v: %v %v, want %s", request, l.Attempt, l.Txn, want)
		}
	}
}

func TestAnAdviceIsGivenOnce(t *testing.T) {
	err := Explain(fmt.Errorf("open a session: %w", Explain(rpctypes.ErrNoLeader)))
	if n := strings.Count(err.Error(), AdviceFor(rpctypes.ErrNoLeader)); n != 1 {
		t.Errorf("%d times: %v", n, err)
	}
}
