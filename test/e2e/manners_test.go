package e2e

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// mannersRoutes accept each delivery at once.
const mannersRoutes = `
park_store: {single_member: true}
limits: {parked: {running: 4}}
routes:
  - {name: hangs, path: "/hangs/{w}", workflow: "hangs/{path.w}", park: {after: 0s}}
  - {name: healthy, path: "/healthy/{w}", workflow: "healthy/{path.w}", park: {after: 0s}}
  - {name: later, path: "/later/{w}", workflow: "later/{path.w}", park: {after: 60s, delay: 1500ms}}
  - {name: again, path: "/again/{w}", workflow: "again/{path.w}", park: {after: 0s, retry: {first: 100ms, most: 100ms, on: [404]}}}
`

// TestCallsThatHangHoldNoOtherRouteUp, longer than their slots count.
func TestCallsThatHangHoldNoOtherRouteUp(t *testing.T) {
	t.Parallel()
	release, arrived, ran := make(chan struct{}), make(chan struct{}, 16), make(chan time.Time, 1)
	up := testkit.NewUpstream(t, func(r *testkit.Received) string {
		if strings.HasPrefix(r.Target, "/hangs/") {
			arrived <- struct{}{}
			<-release
		} else {
			ran <- time.Now()
		}
		return testkit.OK("done")
	})
	defer close(release)
	h := own(t, shared.head(up.URL, ownPrefix())+"shutdown_timeout: 5s\n"+mannersRoutes)
	for i := range 8 {
		acceptedAs(t, testkit.Post(t, h.Addr, fmt.Sprintf("/hangs/%d", i), "{}", key("1")), 202)
	}
	for range 4 {
		<-arrived
	}
	began := time.Now()
	acceptedAs(t, testkit.Post(t, h.Addr, "/healthy/a", "{}", key("1")), 202)
	if took := (<-ran).Sub(began); took > 8*time.Second {
		t.Errorf("the healthy event waited %v", took)
	}
	if len(arrived) > 0 {
		t.Errorf("%d more calls of the route that hangs than there are slots", len(arrived))
	}
}

// TestAnEventIsNotTriedBeforeItsDelay, and its sender does not wait for it.
func TestAnEventIsNotTriedBeforeItsDelay(t *testing.T) {
	t.Parallel()
	ran := make(chan time.Time, 1)
	up := testkit.NewUpstream(t, func(*testkit.Received) string { ran <- time.Now(); return testkit.OK("done") })
	h := own(t, shared.head(up.URL, ownPrefix())+"shutdown_timeout: 5s\n"+mannersRoutes)
	began := time.Now()
	acceptedAs(t, testkit.Post(t, h.Addr, "/later/a", "{}", key("1")), 202)
	if took := (<-ran).Sub(began); took < 1500*time.Millisecond {
		t.Errorf("tried after %v", took)
	}
}

// TestARouteSaysWhenAParkedEventIsTriedAgain: after which answers, and how soon.
func TestARouteSaysWhenAParkedEventIsTriedAgain(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	up := testkit.NewUpstream(t, func(*testkit.Received) string {
		if tries.Add(1) < 4 {
			return testkit.Reply(404, "not there yet")
		}
		return testkit.OK("done")
	})
	h := own(t, shared.head(up.URL, ownPrefix())+"shutdown_timeout: 5s\n"+mannersRoutes)
	acceptedAs(t, testkit.Post(t, h.Addr, "/again/a", "{}", key("1")), 202)
	settles(t, h.Addr, "/again/a", "{}", "1", 200, "done")
	if n := tries.Load(); n != 4 {
		t.Errorf("%d tries, want 4", n)
	}
}

// TestAServiceThatAsksToBeLeftAloneIsLeftAloneByItsWholeRoute.
func TestAServiceThatAsksToBeLeftAloneIsLeftAloneByItsWholeRoute(t *testing.T) {
	t.Parallel()
	var first atomic.Bool
	asked, tried := make(chan time.Time, 1), make(chan time.Time, 100)
	up := testkit.NewUpstream(t, func(*testkit.Received) string {
		if first.CompareAndSwap(false, true) {
			asked <- time.Now()
			return testkit.Reply(429, "too many", "Retry-After: 2")
		}
		tried <- time.Now()
		return testkit.OK("done")
	})
	h := own(t, shared.head(up.URL, ownPrefix())+"shutdown_timeout: 5s\n"+mannersRoutes)
	acceptedAs(t, testkit.Post(t, h.Addr, "/healthy/first", "{}", key("1")), 202)
	since := <-asked
	h.Stderr.AwaitRecord(t, "route.rests", func(r testkit.Record) bool { return r.Text("route") == "healthy" })
	for i := range 5 {
		acceptedAs(t, testkit.Post(t, h.Addr, fmt.Sprintf("/healthy/%d", i), "{}", key("1")), 202)
	}
	if early := (<-tried).Sub(since); early < 1900*time.Millisecond {
		t.Errorf("another event was tried %v after the service asked for two seconds", early)
	}
	for range 5 {
		<-tried
	}
}
