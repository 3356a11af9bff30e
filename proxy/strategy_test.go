package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

func waits(p *idem.Policy)    { p.Strategy = idem.Wait }
func attaches(p *idem.Policy) { p.InFlight = idem.Attach }

func TestWaitersRunInTheOrderOfArrivalOverReplicas(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	replicas := []*replica{newReplica(t, etcd, up, waits), newReplica(t, etcd, up, waits)}
	var answers []<-chan answer
	const n = 8
	for i := range n {
		answers = append(answers, replicas[i%2].send(t.Context(), "w", fmt.Sprint(i)))
		if i == 0 {
			await(t, up.begun)
		} else {
			queued(t, etcd, int64(i))
		}
	}
	for i := range n {
		up.reply <- ""
		if got := await(t, answers[i]); got.status != 200 || got.decision != "executed" {
			t.Fatalf("event %d: %+v", i, got)
		}
		if i < n-1 {
			if body := await(t, up.begun); body != fmt.Sprintf("event %d", i+1) {
				t.Fatalf("%s ran before event %d", body, i+1)
			}
		}
	}
	if runs, most := up.count(); runs != n || most != 1 {
		t.Errorf("%d runs, %d at once", runs, most)
	}
}

func TestNoDeliveryPassesTheQueue(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	waiting, hasty := newReplica(t, etcd, up, waits), newReplica(t, etcd, up, func(*idem.Policy) {})
	first := waiting.send(t.Context(), "w", "1")
	await(t, up.begun)
	second := waiting.send(t.Context(), "w", "2")
	queued(t, etcd, 1)
	if got := await(t, hasty.send(t.Context(), "w", "3")); got.status != 409 || got.decision != "locked" {
		t.Errorf("got %+v", got)
	}
	up.reply <- ""
	await(t, first)
	up.reply <- ""
	if got := await(t, second); got.status != 200 {
		t.Errorf("got %+v", got)
	}
}

func TestARefusedEventThatIsOvertakenGetsItsTurn(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(*idem.Policy) {})
	refused := func(event string) {
		t.Helper()
		if got := await(t, r.send(t.Context(), "w", event)); got.status != 409 || got.decision != "locked" {
			t.Fatalf("%s: got %+v", event, got)
		}
	}
	first := r.send(t.Context(), "w", "first")
	await(t, up.begun)
	refused("patient")
	refused("patient") // the same execution is in the way: at once
	up.reply <- ""
	await(t, first)
	hasty := r.send(t.Context(), "w", "hasty") // it has the lock before the other one comes again
	await(t, up.begun)
	patient := r.send(t.Context(), "w", "patient")
	queued(t, etcd, 1)
	up.reply <- ""
	await(t, hasty)
	if body := await(t, up.begun); body != "event patient" {
		t.Fatalf("%s ran", body)
	}
	refused("hasty again")
	up.reply <- ""
	if got := await(t, patient); got.status != 200 || got.decision != "executed" {
		t.Errorf("got %+v", got)
	}
}

func TestAnEventThatIsOvertakenUnderALimitOfItsWorkflowGetsItsTurn(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(p *idem.Policy) { p.Concurrency = 2 })
	fill := func(events ...string) (running []<-chan answer) {
		for _, event := range events {
			running = append(running, r.send(t.Context(), "w", event))
			await(t, up.begun)
		}
		return running
	}
	first := fill("1", "2")
	decided(t, r.send(t.Context(), "w", "patient"), "locked")
	for range first {
		up.reply <- ""
	}
	for _, a := range first {
		decided(t, a, "executed")
	}
	hasty := fill("3", "4")
	patient := r.send(t.Context(), "w", "patient")
	queued(t, etcd, 1)
	for range len(hasty) + 1 {
		up.reply <- ""
	}
	for _, a := range append(hasty, patient) {
		decided(t, a, "executed")
	}
}

func TestAnOvertakenEventWaitsForAMomentOnly(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(p *idem.Policy) { p.WaitTimeout = 50 * time.Millisecond })
	for _, running := range []string{"first", "second"} {
		runs := r.send(t.Context(), "w", running)
		await(t, up.begun)
		got := await(t, r.send(t.Context(), "w", "patient"))
		if got.status != 409 || got.decision != "locked" || got.header.Get("Retry-After") == "" {
			t.Errorf("got %+v", got)
		}
		queued(t, etcd, 0)
		up.reply <- ""
		await(t, runs)
	}
}

func TestAWaitThatTimesOutLeavesNoQueueEntry(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(p *idem.Policy) { waits(p); p.WaitTimeout = 200 * time.Millisecond })
	first := r.send(t.Context(), "w", "1")
	await(t, up.begun)
	got := await(t, r.send(t.Context(), "w", "2"))
	var problem struct {
		Code, Executed string
		Existing       string `json:"existingExecutionId"`
	}
	if err := json.Unmarshal([]byte(got.body), &problem); err != nil || got.status != 409 ||
		problem.Code != "lock_wait_timeout" || problem.Executed != "no" || problem.Existing == "" {
		t.Errorf("got %+v, %v", got, err)
	}
	queued(t, etcd, 0)
	up.reply <- ""
	await(t, first)
	again := r.send(t.Context(), "w", "2")
	up.reply <- ""
	if got := await(t, again); got.status != 200 {
		t.Errorf("the event that had waited in vain: %+v", got)
	}
}

func TestASenderThatHangsUpLeavesTheQueue(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, waits)
	first := r.send(t.Context(), "w", "1")
	await(t, up.begun)
	ctx, hangUp := context.WithCancel(t.Context())
	gone := r.send(ctx, "w", "2")
	queued(t, etcd, 1)
	hangUp()
	await(t, gone)
	queued(t, etcd, 0)
	up.reply <- ""
	await(t, first)
	ran(t, up, 1)
}

func TestTooManyWaitingIsRefusedAtOnce(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(p *idem.Policy) { waits(p); p.MaxWaiting = 1 })
	first := r.send(t.Context(), "w", "1")
	await(t, up.begun)
	second := r.send(t.Context(), "w", "2")
	queued(t, etcd, 1)
	if got := await(t, r.send(t.Context(), "w", "3")); got.status != 429 || got.decision != "queue_full" ||
		got.header.Get("Retry-After") == "" {
		t.Errorf("got %+v", got)
	}
	up.reply <- ""
	up.reply <- ""
	await(t, first)
	await(t, second)
}

func TestDuplicatesOfAWaitingEventAreInFlight(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	a, b := newReplica(t, etcd, up, waits), newReplica(t, etcd, up, waits)
	first := a.send(t.Context(), "w", "1")
	await(t, up.begun)
	second := a.send(t.Context(), "w", "2")
	queued(t, etcd, 1)
	for _, r := range []*replica{a, b} {
		if got := await(t, r.send(t.Context(), "w", "2")); got.status != 409 || got.decision != "in_flight" {
			t.Errorf("got %+v", got)
		}
	}
	up.reply <- ""
	up.reply <- ""
	await(t, first)
	await(t, second)
}

func TestAWaiterWhoseEventWasSettledMeanwhileGetsTheAnswer(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	a := newReplica(t, etcd, up, waits)
	first := a.send(t.Context(), "w", "1")
	await(t, up.begun)
	second := a.send(t.Context(), "w", "2")
	queued(t, etcd, 1)
	up.reply <- ""
	up.reply <- ""
	await(t, first)
	want := await(t, second)
	if got := await(t, a.send(t.Context(), "w", "2")); got.decision != "replayed" || got.body != want.body {
		t.Errorf("got %+v", got)
	}
}

func TestSkipDropsWhatMeetsAHeldLock(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	skips := func(p *idem.Policy) { p.Strategy = idem.Skip }
	a, b := newReplica(t, etcd, up, skips), newReplica(t, etcd, up, skips)
	first := a.send(t.Context(), "w", "1")
	await(t, up.begun)
	for _, r := range []*replica{a, b} {
		for _, event := range []string{"1", "2"} { // a copy, and another event
			got := await(t, r.send(t.Context(), "w", event))
			var body struct {
				Status, Workflow string
				Execution        string `json:"executionId"`
			}
			if err := json.Unmarshal([]byte(got.body), &body); err != nil || got.status != 200 ||
				body.Status != "already_running" || body.Workflow != "w/w" || body.Execution == "" {
				t.Errorf("event %s: %+v, %v", event, got, err)
			}
		}
	}
	up.reply <- ""
	if got := await(t, first); got.body != "answer to event 1" {
		t.Errorf("got %+v", got)
	}
	up.reply <- ""
	decided(t, a.send(t.Context(), "w", "2"), "executed")
}

func TestWithoutALockOnlyDuplicatesMeet(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	none := func(p *idem.Policy) { p.Strategy = idem.NoLock }
	a, b := newReplica(t, etcd, up, none), newReplica(t, etcd, up, none)
	first, second := a.send(t.Context(), "w", "1"), b.send(t.Context(), "w", "2")
	await(t, up.begun)
	await(t, up.begun)
	for _, r := range []*replica{a, b} {
		decided(t, r.send(t.Context(), "w", "1"), "in_flight")
	}
	up.reply <- ""
	up.reply <- ""
	for _, ch := range []<-chan answer{first, second} {
		if got := await(t, ch); got.status != 200 {
			t.Errorf("got %+v", got)
		}
	}
	if _, most := up.count(); most != 2 {
		t.Errorf("%d at once", most)
	}
}

func TestAttachedDuplicatesGetTheFirstAnswer(t *testing.T) {
	for _, how := range []string{"", "500"} {
		etcd, up := etcdtest.Start(t), newService(t)
		a, b := newReplica(t, etcd, up, attaches), newReplica(t, etcd, up, attaches)
		first := a.send(t.Context(), "w", "1")
		await(t, up.begun)
		copies := []<-chan answer{a.send(t.Context(), "w", "1"), b.send(t.Context(), "w", "1")}
		following(t, a, 1)
		following(t, b, 1)
		up.reply <- how
		want := await(t, first)
		for _, ch := range copies {
			if got := await(t, ch); got.status != want.status || got.body != want.body || got.decision != "attached" {
				t.Errorf("answer %q: got %+v, want %+v", how, got, want)
			}
		}
		ran(t, up, 1)
	}
}

// following waits until n deliveries wait in this process.
func following(t *testing.T, r *replica, n int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		got, _ := r.guard.Waiting()
		if got == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d wait, want %d", got, n)
		}
	}
}

func TestAnAttachedDuplicateOfADeadProcessRunsNothing(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	link := etcdtest.NewWire(t, etcd.Endpoint)
	a := newReplicaAt(t, link.Endpoint, up, attaches)
	dying := onlySession(t, etcd)
	b := newReplica(t, etcd, up, attaches)
	ctx, hangUp := context.WithCancel(t.Context())
	first := a.send(ctx, "w", "1")
	await(t, up.begun)
	copied := b.send(t.Context(), "w", "1")
	following(t, b, 1)
	link.Blackhole(true) // a does not see its end, so it cannot adopt
	if _, err := etcd.Client.Revoke(t.Context(), dying); err != nil {
		t.Fatal(err)
	}
	got := await(t, copied)
	if got.status != 503 || got.decision != "lock_lost" {
		t.Errorf("got %+v", got)
	}
	ran(t, up, 1)
	hangUp()
	await(t, first)
	link.Blackhole(false)
}

// onlySession is the lease of the only process there is.
func onlySession(t *testing.T, etcd *etcdtest.Etcd) clientv3.LeaseID {
	t.Helper()
	got, err := etcd.Client.Get(t.Context(), "/hooklock/v1/sessions/", clientv3.WithPrefix())
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("sessions: %v, %v", got, err)
	}
	return clientv3.LeaseID(got.Kvs[0].Lease)
}

func TestAnAttachedDuplicateWaitsNoLongerThanItsTimeout(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(p *idem.Policy) { attaches(p); p.AttachTimeout = 100 * time.Millisecond })
	first := r.send(t.Context(), "w", "1")
	await(t, up.begun)
	if got := await(t, r.send(t.Context(), "w", "1")); got.status != 409 || got.decision != "in_flight" {
		t.Errorf("got %+v", got)
	}
	up.reply <- ""
	await(t, first)
}

// TestALimitOfAWorkflowLetsSoManyRun: each with a slot of its own, over replicas, and without a
// fencing token; who waits comes in the order of arrival.
func TestALimitOfAWorkflowLetsSoManyRun(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	two := func(p *idem.Policy) { p.Concurrency = 2 }
	replicas := []*replica{newReplica(t, etcd, up, two), newReplica(t, etcd, up, func(p *idem.Policy) {
		two(p)
		waits(p)
	})}
	var running []<-chan answer
	for i := range 2 {
		running = append(running, replicas[i].send(t.Context(), "w", fmt.Sprint(i)))
		await(t, up.begun)
	}
	slots := map[string]bool{}
	for _, h := range up.seen() {
		slots[h.Get("Hooklock-Slot")] = true
		if token := h.Get("Hooklock-Fencing-Token"); token != "" {
			t.Errorf("there is a fencing token: %s", token)
		}
	}
	if !slots["0"] || !slots["1"] {
		t.Errorf("the slots are %v", slots)
	}
	if got := await(t, replicas[0].send(t.Context(), "w", "3")); got.status != 409 || got.decision != "locked" {
		t.Errorf("a third one: %+v", got)
	}
	decided(t, replicas[0].send(t.Context(), "w", "1"), "in_flight")
	waiting := replicas[1].send(t.Context(), "w", "4")
	queued(t, etcd, 1)
	up.reply <- ""
	if body := await(t, up.begun); body != "event 4" {
		t.Errorf("%s ran next", body)
	}
	up.reply <- ""
	up.reply <- ""
	for _, a := range append(running, waiting) {
		decided(t, a, "executed")
	}
	if _, most := up.count(); most != 2 {
		t.Errorf("%d ran at once", most)
	}
}

// TestObserveForwardsWhatIsOverALimitWithoutASlot: what a limit has a slot for takes it, as it
// takes its lock, so that the next one is judged as it will be.
func TestObserveForwardsWhatIsOverALimitWithoutASlot(t *testing.T) {
	for would, c := range map[string]struct {
		limit    int
		uses     []string
		workflow string
	}{"locked": {2, nil, "w"}, "limited": {1, []string{"erp"}, "w%d"}} {
		t.Run(would, func(t *testing.T) {
			etcd, up := etcdtest.Start(t), newService(t)
			r := newReplica(t, etcd, up, func(p *idem.Policy) { p.Concurrency, p.Observe = c.limit, true })
			r.observes(t, c.uses...)
			taken := func() int {
				page, err := r.store.Slots(t.Context(), idem.LockQuery{})
				if err != nil {
					t.Fatal(err)
				}
				return len(page.Slots)
			}
			want := slices.Repeat([]string{"bypassed; would=executed"}, c.limit)
			want = append(want, "bypassed; would="+would)
			var answers []<-chan answer
			for i := range want {
				workflow := strings.ReplaceAll(c.workflow, "%d", fmt.Sprint(i))
				answers = append(answers, r.send(t.Context(), workflow, fmt.Sprint(i)))
				await(t, up.begun)
			}
			if n := taken(); n != c.limit {
				t.Errorf("%d slots are taken", n)
			}
			for range want {
				up.reply <- ""
			}
			for i := range want {
				if got := await(t, answers[i]); got.decision != want[i] || got.status != 200 {
					t.Errorf("%d: %+v", i, got)
				}
			}
			if n := taken(); n != 0 {
				t.Errorf("%d slots are left", n)
			}
		})
	}
}
