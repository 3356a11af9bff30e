package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func newest(p *idem.Policy) { p.Strategy = idem.Latest }

// dropped is what a sender reads of an event that did not run.
type dropped struct{ Status, ExecutionID, Workflow, SupersededBy string }

// mustBeSuperseded fails where got is anything but a success that names the newer execution.
func mustBeSuperseded(t *testing.T, got answer) (d dropped) {
	t.Helper()
	if err := json.Unmarshal([]byte(got.body), &d); err != nil || got.status != 200 || got.decision != "superseded" ||
		d.Status != "superseded" || d.SupersededBy == "" {
		t.Fatalf("%v: %+v", err, got)
	}
	return d
}

func TestANewerEventReplacesTheOneThatWaitsAtAnyReplica(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	a, b := newReplica(t, etcd, up, newest), newReplica(t, etcd, up, newest)
	first := a.send(t.Context(), "w", "1")
	await(t, up.begun)
	second := a.send(t.Context(), "w", "2")
	queued(t, etcd, 1)
	third := b.send(t.Context(), "w", "3")
	old := mustBeSuperseded(t, await(t, second))
	fourth := a.send(t.Context(), "w", "4")
	mustBeSuperseded(t, await(t, third))
	queued(t, etcd, 1)
	found, err := b.store.Execution(t.Context(), idem.ExecutionID(old.ExecutionID))
	if err != nil || found.Record == nil || found.Record.Status != idem.Aborted ||
		found.Record.Outcome != idem.NotExecuted || string(found.Record.Superseded()) != old.SupersededBy ||
		!found.Record.Final {
		t.Errorf("%v: %+v", err, found)
	}
	up.reply <- ""
	decided(t, first, "executed")
	if body := await(t, up.begun); body != "event 4" {
		t.Errorf("%s ran", body)
	}
	up.reply <- ""
	decided(t, fourth, "executed")
	for _, r := range []*replica{a, b} {
		if again := mustBeSuperseded(t, await(t, r.send(t.Context(), "w", "2"))); again != old {
			t.Errorf("a copy of it: %+v, and the first one got %+v", again, old)
		}
	}
	if a.events.heard(EventCancelled) {
		t.Error("the log says that somebody has cancelled it")
	}
	if runs, most := up.count(); runs != 2 || most != 1 {
		t.Errorf("%d runs, %d at once", runs, most)
	}
}

func TestTheNewestThatWaitedInVainComesAgain(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	a, r := newReplica(t, etcd, up, newest), newReplica(t, etcd, up, func(p *idem.Policy) {
		newest(p)
		p.WaitTimeout = 300 * time.Millisecond
	})
	first := r.send(t.Context(), "w", "1")
	await(t, up.begun)
	second := a.send(t.Context(), "w", "2")
	queued(t, etcd, 1)
	third := r.send(t.Context(), "w", "3")
	mustBeSuperseded(t, await(t, second))
	if got := await(t, third); got.status != 409 || got.decision != "wait_timeout" ||
		got.header.Get("Retry-After") == "" {
		t.Errorf("%+v", got)
	}
	queued(t, etcd, 0)
	up.reply <- ""
	await(t, first)
	again := r.send(t.Context(), "w", "3")
	up.reply <- ""
	decided(t, again, "executed")
}

func TestTheHeadOfTheQueueIsNotReplaced(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, newest)
	held, seen, err := r.store.Claim(t.Context(),
		idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: idem.NewExecutionID("w/w", "x", [4]byte{1}),
			Scope: idem.Scope{Workflow: "w/w", Key: "x"}}}, 0)
	if err != nil || held == nil {
		t.Fatal(seen, err)
	}
	var answers []<-chan answer
	for i := range 20 {
		answers = append(answers, r.send(t.Context(), "w", fmt.Sprint(i)))
	}
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		select {
		case up.reply <- "":
		default:
		}
	}
	ran := 0
	for _, a := range answers {
		got := await(t, a)
		if got.decision == "executed" {
			ran++
		} else {
			mustBeSuperseded(t, got)
		}
	}
	if runs, most := up.count(); ran == 0 || runs != ran || most != 1 {
		t.Errorf("%d were told that they ran, %d did, %d at once", ran, runs, most)
	}
}

func TestWithAnOrderTheNewerByItIsTheOneThatWaits(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newOrdered(t, etcd, &objects{url: up.url}, idem.StaleSkip, newest)
	answers, firsts := make(chan answer, 3), make(chan answer, 1)
	send := func(at int, to chan answer) {
		to <- r.update(t, "w", fmt.Sprint("e", at), fmt.Sprintf(`{"object":"x","at":%d}`, at))
	}
	go send(1, firsts)
	await(t, up.begun)
	go send(5, answers)
	queued(t, etcd, 1)
	go send(3, answers)
	mustBeSuperseded(t, await(t, answers)) // the 3
	queued(t, etcd, 1)
	go send(7, answers)
	mustBeSuperseded(t, await(t, answers)) // the 5
	up.reply <- ""
	await(t, firsts)
	if body := await(t, up.begun); body != `{"object":"x","at":7}` {
		t.Errorf("%s ran", body)
	}
	up.reply <- ""
	decided(t, answers, "executed")
	mustBeSuperseded(t, r.update(t, "w", "e3", `{"object":"x","at":3}`)) // its copy is older than what went through
}

func TestTheNewestRunsAfterSilence(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	a := newReplica(t, etcd, up, func(p *idem.Policy) { newest(p); p.Quiet, p.MaxWait = time.Hour, time.Hour })
	b := newReplica(t, etcd, up, func(p *idem.Policy) { newest(p); p.Quiet, p.MaxWait = time.Second, time.Hour })
	first := a.send(t.Context(), "w", "1")
	queued(t, etcd, 1)
	began := time.Now()
	second := b.send(t.Context(), "w", "2")
	mustBeSuperseded(t, await(t, first))
	if body := await(t, up.begun); body != "event 2" || time.Since(began) < time.Second {
		t.Errorf("%s ran after %s", body, time.Since(began))
	}
	up.reply <- ""
	decided(t, second, "executed")
}

func TestASeriesThatDoesNotEndRunsAtMaxWait(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	a := newReplica(t, etcd, up, func(p *idem.Policy) { newest(p); p.Quiet, p.MaxWait = time.Hour, time.Hour })
	b := newReplica(t, etcd, up, func(p *idem.Policy) { newest(p); p.Quiet, p.MaxWait = time.Hour, time.Second })
	first := a.send(t.Context(), "w", "1")
	queued(t, etcd, 1)
	b.send(t.Context(), "w", "2")
	mustBeSuperseded(t, await(t, first))
	if body := await(t, up.begun); body != "event 2" {
		t.Errorf("%s ran", body)
	}
	up.reply <- ""
}

func TestObserveSaysWhatWouldHaveBeenReplaced(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(p *idem.Policy) { newest(p); p.Observe, p.Quiet = true, time.Hour })
	r.observes(t)
	first := r.send(t.Context(), "w", "1")
	await(t, up.begun)
	second := r.send(t.Context(), "w", "2")
	queued(t, etcd, 1)
	third := r.send(t.Context(), "w", "3")
	if body := await(t, up.begun); body != "event 2" {
		t.Errorf("%s ran", body)
	}
	for range 3 {
		up.reply <- ""
	}
	got := await(t, second)
	if got.decision != "bypassed; would=superseded" || got.body != "answer to event 2" {
		t.Errorf("%+v", got)
	}
	id := idem.ExecutionID(got.header.Get("Hooklock-Execution")) // no record says that it did not run
	for found, err := r.store.Execution(t.Context(), id); !errors.Is(err,
		idem.ErrNoExecution); found, err = r.store.Execution(t.Context(), id) {
		if t.Context().Err() != nil || err != nil {
			t.Fatalf("%+v %v", found, err)
		}
	}
	await(t, first)
	await(t, third)
}

// TestAFloodLeavesTheNewestOfEachAndFewCalls: in the order in which updates are made, or out of it
// where the route knows their order. Larger: go test ./proxy -run AFloodLeaves -flood 10000
// -entities 100 -v
func TestAFloodLeavesTheNewestOfEachAndFewCalls(t *testing.T) {
	for name, ordered := range map[string]bool{"as they were made": false, "out of order": true} {
		t.Run(name, func(t *testing.T) {
			etcd, up := etcdtest.Start(t), newObjects(t)
			up.takes = 20 * time.Millisecond
			var replicas []*replica
			for range 2 {
				if ordered {
					replicas = append(replicas, newOrdered(t, etcd, up, idem.StaleSkip, newest))
				} else {
					replicas = append(replicas, newReplica(t, etcd, &service{url: up.url}, newest))
				}
			}
			var all sync.WaitGroup
			for object := range *entities {
				all.Go(func() {
					made := (*flood-1-object) / *entities + 1
					turns := make([]int, made)
					for i := range turns {
						turns[i] = i
					}
					if ordered {
						turns = rand.New(rand.NewPCG(1, uint64(object))).Perm(made)
					}
					flooding(t, etcd, replicas, object, turns)
				})
			}
			all.Wait()
			t.Logf("%d updates, %d calls", *flood, up.called())
			for i := range *entities {
				if name, want := fmt.Sprint("o", i), (*flood-1-i) / *entities; up.now(name) != want {
					t.Errorf("%s is %d at the end, and the newest was %d", name, up.now(name), want)
				}
			}
		})
	}
}

// flooding sends the updates of one object in that order: each when the one before it waits, runs,
// or has its answer.
func flooding(t *testing.T, etcd *etcdtest.Etcd, replicas []*replica, object int, turns []int) {
	var answers sync.WaitGroup
	defer answers.Wait()
	workflow := protocol.Hash16(fmt.Sprint("w/", object))
	for _, at := range turns {
		done, event := make(chan struct{}), fmt.Sprintf("e%d", at)
		answers.Go(func() {
			defer close(done)
			got := replicas[at%2].update(t, fmt.Sprint(object), event,
				fmt.Sprintf(`{"object":"o%d","at":%d}`, object, at))
			if got.err != nil || got.status != 200 {
				t.Errorf("%d of %d: %+v", at, object, got)
			}
		})
		for arrived := false; !arrived; {
			select {
			case <-done:
				arrived = true
			default:
				for _, kind := range []string{protocol.KindQueue, protocol.KindLocks} {
					found, err := etcd.Client.Get(t.Context(), "/hooklock/v1/"+kind+workflow, clientv3.WithPrefix())
					if err != nil {
						t.Error(err)
						return
					}
					for _, kv := range found.Kvs {
						arrived = arrived || strings.Contains(string(kv.Value), `"eventId":"`+event+`"`)
					}
				}
			}
		}
	}
}
