package fault

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"hooklock/test/fault/cluster"
	"hooklock/test/testkit"
)

// A request whose store does not take it is answered as if its route did not park: run where it may
// run, and refused as any delivery where it may not.
func TestARequestThatItsStoreDoesNotTakeIsAnsweredAsWithoutPark(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "requests")
	t.Run("a folder that is gone", func(t *testing.T) {
		t.Parallel()
		unkept(t, "{single_member: true, dir: "+folder+"}", func() {
			if err := os.RemoveAll(folder); err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("a bucket that does not answer", func(t *testing.T) {
		t.Parallel()
		silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // nobody accepts
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		key := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(key, []byte("key"), 0o600); err != nil {
			t.Fatal(err)
		}
		unkept(t,
			fmt.Sprintf(
				"{single_member: true, s3: {endpoint: 'http://%s', bucket: requests, region: us-east-1, access_key_file: %s, secret_key_file: %s}}",
				silent.Addr(), key, key), func() {})
	})
}

// unkept sends to a store of requests that is away.
func unkept(t *testing.T, store string, away func()) {
	e := cluster.StartEtcd(t, programs, 1)
	up := cluster.NewUpstream(t)
	r := cluster.StartReplica(t, programs, cluster.Config{
		Endpoints: e.Endpoints(0), Upstream: up.Addr, SessionTTL: ttl, ParkStore: store,
		Routes: cluster.Route("now", "lock: {release_delay: 0s}, park: {enabled: true, after: 0s}") +
			cluster.Route("patient", "lock: {release_delay: 0s}, park: {enabled: true, after: 60s}"),
	})
	away()
	sender, large := cluster.NewSender(), make([]byte, 64<<10)
	begin := func(route, event string) <-chan cluster.Answer {
		return sender.Begin(context.Background(), r.Door,
			cluster.Delivery{Route: route, Workflow: "w", Event: event, Body: large})
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
