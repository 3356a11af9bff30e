package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/admin/client"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/protocol"
	"hooklock/test/fault/cluster"
	"hooklock/test/testkit"
)

// countsOf returns what a process says was counted of each route.
func countsOf(tb testing.TB, r *cluster.Replica) map[string]client.Counts {
	tb.Helper()
	answer, err := http.Get("http://" + r.Admin + "/v1/routes/counts?since=1h")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var list client.CountList
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil || answer.StatusCode != http.StatusOK {
		tb.Fatalf("%s: %v", answer.Status, err)
	}
	counts := map[string]client.Counts{}
	for _, route := range list.Routes {
		counts[route.Route] = route.Total
	}
	return counts
}

// results are the outcomes of one route that are in etcd.
type results struct{ succeeded, failed, parked int64 }

// recordsOf counts the ended executions in the records below prefix by route.
func recordsOf(tb testing.TB, etcd *clientv3.Client, prefix string) map[string]results {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cluster.Patience)
	defer cancel()
	found, err := etcd.Get(ctx, prefix+"/v1/"+protocol.KindRecords, clientv3.WithPrefix())
	if err != nil {
		tb.Fatal(err)
	}
	all := map[string]results{}
	for _, kv := range found.Kvs {
		r, _, err := protocol.DecodeRecord(kv)
		if err != nil {
			tb.Fatal(err)
		}
		of := all[r.Route]
		if r.ParkedOn != "" {
			of.parked++
			of.failed += int64(len(r.Failed))
		}
		for _, a := range r.Earlier {
			if a.Tries > 0 {
				of.parked++
			}
		}
		for _, a := range append(r.Earlier, r.AsAttempt()) {
			switch {
			case a.AnswerStatus == 0:
			case a.AnswerStatus/100 == 2:
				of.succeeded++
			default:
				of.failed++
			}
		}
		all[r.Route] = of
	}
	return all
}

func countedAs(c client.Counts) results { return results{c.Succeeded, c.Failed, c.Parked} }

// What a process has answered is counted when it is killed the moment after: its counts are in the
// request that committed the outcome.
func TestCountsOfAKilledProcessAreThoseOfTheOutcomesItCommitted(t *testing.T) {
	t.Parallel()
	s := arranged(t, etcdtest.Start(t), "retry")
	s.config.Endpoints, s.config.SessionTTL = []string{s.etcd.Endpoint}, longTTL
	s.config.Routes = cluster.Route("hook", "lock: {release_delay: 0s}") +
		cluster.Route("parked", "park: {enabled: true, after: 0s}")
	s.victim, s.healthy = cluster.StartReplica(t, programs, s.config), cluster.StartReplica(t, programs, s.config)
	send := func(route, event string) cluster.Answer {
		return s.sender.Send(context.Background(), s.victim.Door,
			cluster.Delivery{Route: route, Workflow: event, Event: event})
	}
	send("hook", "copied")
	send("hook", "copied")
	testkit.Until(t, "the other process knows of the copy", func() bool {
		return countsOf(t, s.healthy)["hook"].Duplicates == 1
	})
	if a := send("parked", "accepted"); !a.Parked() {
		t.Fatal(a)
	}
	s.journal.Await("the accepted event to end", cluster.RecordOf("accepted"))
	for i := range 3 {
		if a := send("hook", fmt.Sprint("works-", i)); !a.Settled() {
			t.Fatal(a)
		}
	}
	s.up.Next(func(x *cluster.Exchange) bool { return x.ReadBody() == nil && x.Answer(500, "no") == nil })
	if a := send("hook", "fails"); a.Status != 500 {
		t.Fatal(a)
	}
	s.victim.Kill()
	counts := countsOf(t, s.healthy)
	if got, want := countedAs(counts["hook"]), (results{succeeded: 4, failed: 1}); got != want ||
		counts["hook"].Deliveries != 6 || counts["hook"].Duplicates != 1 {
		t.Errorf("counted %+v, want %+v", counts["hook"], want)
	}
	if got, want := countedAs(counts["parked"]), (results{succeeded: 1, parked: 1}); got != want {
		t.Errorf("of what was accepted, counted %+v, want %+v", counts["parked"], want)
	}
}

// However many processes are killed under load, what is counted of outcomes is what the records
// say.
func TestCountsEqualTheRecordsAfterKillsUnderLoad(t *testing.T) {
	t.Parallel()
	s := arranged(t, etcdtest.Start(t), "retry")
	s.config.Endpoints, s.config.SessionTTL = []string{s.etcd.Endpoint}, ttl
	s.config.Routes = cluster.Route("hook", "lock: {release_delay: 0s}") +
		cluster.Route("parked", "park: {enabled: true, after: 0s}")
	s.up.Always(func(x *cluster.Exchange) bool {
		if x.Attempt == 1 && rand.IntN(5) == 0 {
			return x.ReadBody() == nil && x.Answer(500, "no") == nil
		}
		return cluster.Run(x)
	})
	var mu sync.Mutex
	replicas := make([]*cluster.Replica, 3)
	doors := func() (all []string) {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range replicas {
			all = append(all, r.Door)
		}
		return all
	}
	replace := func(i int) {
		fresh := cluster.StartReplica(t, programs, s.config)
		mu.Lock()
		defer mu.Unlock()
		replicas[i] = fresh
	}
	for i := range replicas {
		replace(i)
	}
	var wait []func()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	traffics := []*cluster.Traffic{}
	for _, route := range []string{"hook", "parked"} {
		traffic := &cluster.Traffic{Senders: 6, Workflows: 200, Route: route, Doors: doors}
		traffics, wait = append(traffics, traffic), append(wait, traffic.Start(ctx))
	}
	until := time.Now().Add(10 * time.Second)
	for kills := 0; kills < 6 && time.Now().Before(until); kills++ {
		traffics[0].AwaitMore(t, 30+rand.IntN(60))
		i := rand.IntN(len(replicas))
		replicas[i].Kill()
		replace(i)
	}
	stop()
	for i, traffic := range traffics {
		wait[i]()
		traffic.AwaitParked(t, s.up)
	}
	testkit.Until(t, "no lock to be left", func() bool {
		return len(s.journal.Left("locks/")) == 0 && len(s.journal.Left("queue/")) == 0
	})
	counts, records := countsOf(t, replicas[0]), recordsOf(t, s.etcd.Client, s.config.Prefix)
	for _, route := range []string{"hook", "parked"} {
		if got := countedAs(counts[route]); got != records[route] || got.succeeded == 0 {
			t.Errorf("%s: counted %+v, but the records say %+v", route, got, records[route])
		}
	}
}
