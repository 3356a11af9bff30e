package fault

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"hooklock/test/fault/cluster"
	"hooklock/test/testkit"
)

// A request whose store does not take it is answered as if its route did not park: run where it may run, and refused as any delivery where it may not.
func TestARequestThatItsStoreDoesNotTakeIsAnsweredAsWithoutPark(t *testing.T) {
	t.Parallel()
	e := cluster.StartEtcd(t, programs, 1)
	up := cluster.NewUpstream(t)
	folder := filepath.Join(t.TempDir(), "requests")
	r := cluster.StartReplica(t, programs, cluster.Config{
		Endpoints: e.Endpoints(0), Upstream: up.Addr, SessionTTL: ttl, ParkStore: "{single_member: true, dir: " + folder + "}",
		Routes: cluster.Route("now", "lock: {release_delay: 0s}, park: {enabled: true, after: 0s}") +
			cluster.Route("patient", "lock: {release_delay: 0s}, park: {enabled: true, after: 60s}"),
	})
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	sender, large := cluster.NewSender(), make([]byte, 64<<10)
	begin := func(route, event string) <-chan cluster.Answer {
		return sender.Begin(context.Background(), r.Door, cluster.Delivery{Route: route, Workflow: "w", Event: event, Body: large})
	}
	if got := testkit.Receive(t, "an answer", begin("now", "at once")); !got.Settled() {
		t.Errorf("what is parked at once gets %v: %s", got, got.Body)
	}
	running, finish := make(chan struct{}), make(chan struct{})
	up.Next(func(x *cluster.Exchange) bool {
		_ = x.ReadBody()
		close(running)
		<-finish
		return x.Effect() && x.Answer(200, x.Receipt()) == nil
	})
	first := begin("patient", "first")
	await(t, "a call runs", running)
	for _, route := range []string{"now", "patient"} {
		if got := testkit.Receive(t, "an answer", begin(route, "second at "+route)); got.Code != "workflow_locked" {
			t.Errorf("%s: what is behind another event gets %v: %s", route, got, got.Body)
		}
	}
	close(finish)
	if got := testkit.Receive(t, "an answer", first); !got.Settled() {
		t.Errorf("the first one gets %v", got)
	}
}
