package history_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
	"hooklock/test/testkit"
)

// The fence has to see that the session is gone, although the session was over for another reason
// before.
func TestAClaimWithoutAnAnswerIsResolvedAfterAnOutageThatItsSessionDidNotOutlive(t *testing.T) {
	e := etcdtest.Start(t)
	w := etcdtest.NewWire(t, e.Endpoint)
	changes := make(chan etcdlock.SessionEvent, 16)
	s, err := etcdlock.Open(etcdlock.Options{
		Endpoints: []string{w.Endpoint}, SessionTTL: 2 * time.Second, OnSession: func(e etcdlock.SessionEvent) {
			changes <- e
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	testkit.Receive(t, "a session", changes)
	w.SwallowAnswer("the-workflow")
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	l := idem.Lock{
		ExecutionFacts: idem.ExecutionFacts{
			Execution: idem.NewExecutionID("the-workflow", "k", [4]byte{}),
			Scope:     idem.Scope{Workflow: "the-workflow", Key: "k"},
			StartedAt: time.Now(), Retention: time.Hour,
		},
	}
	if _, _, err := s.Claim(ctx, l, 0); !errors.Is(err, idem.ErrStoreUnavailable) {
		t.Fatalf("claimed without an answer: %v", err)
	}
	w.Blackhole(true)
	if lost := testkit.Receive(t, "the loss of the session", changes); lost.Opened {
		t.Fatalf("%+v", lost)
	}
	testkit.Until(t, "etcd ends the session", func() bool {
		left, err := e.Client.Get(context.Background(), "/hooklock/v1/sessions/", clientv3.WithPrefix(),
			clientv3.WithCountOnly())
		return err == nil && left.Count == 0
	})
	w.Reset()
	w.Blackhole(false)
	testkit.Receive(t, "the next session", changes)
	closing, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	began := time.Now()
	if err := s.Close(closing); err != nil {
		t.Error(err)
	}
	t.Logf("closing took %v", time.Since(began))
	if left, err := e.Client.Get(context.Background(), "/hooklock/v1/locks/", clientv3.WithPrefix(),
		clientv3.WithCountOnly()); err != nil || left.Count != 0 {
		t.Errorf("%d locks are left, %v", left.Count, err)
	}
}
