package attention

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/report"
	"hooklock/idem"
)

var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// letters are dead letters of one cause.
func letters(n int, route, said string) (all []Attended) {
	for i := range n {
		all = append(all, Attended{At: ago(time.Duration(i+1) * time.Minute), Execution: client.Execution{
			ExecutionID: fmt.Sprint("exec_", i), Workflow: fmt.Sprint("w", i), Route: route,
			FailedAnswers: []client.FailedAnswer{{Status: 500, Text: said}},
		}})
	}
	return all
}

// texts are the items, a line each.
func texts(in *Input) string {
	in.Now = now
	var all []string
	for _, i := range List(in) {
		all = append(all, i.Text+" | "+i.CauseText()+" | "+i.Next)
	}
	return strings.Join(all, "\n")
}

// inOrder fails if the texts are not all there, in this order.
func inOrder(t *testing.T, got string, want ...string) {
	t.Helper()
	rest := got
	for _, w := range want {
		_, after, found := strings.Cut(rest, w)
		if !found {
			t.Fatalf("no %q, or not in this order, in\n%s", w, got)
		}
		rest = after
	}
}

func noteOf(name string, alive bool, at time.Time, routes ...Route) Replica {
	return Replica{Note{Replica: name, Routes: routes, Config: Config{Parts: map[string]string{"upstream.url": "1"}}},
		idem.ReplicaNote{Writer: name, Session: name, Alive: alive, At: at}}
}

func TestEqualThingsAreOneItemAndTheWorstIsFirst(t *testing.T) {
	spell := &report.Spell{Since: ago(time.Hour), Last: ago(0), Failed: 20, All: 20,
		Failure: report.Failure{Cause: "the service says 500", Said: "database is locked"}}
	failing := Route{Route: "shopify", Spell: spell,
		Standings: report.Standings{Verified: report.Standing{InRow: 3, First: ago(time.Hour), Last: ago(0)}}}
	in := &Input{
		Rules: []client.RouteRules{{Route: "shopify", Sender: &client.RouteSender{Preset: "shopify",
			GivesUp: "deleted after 8 failures in a row", Limits: []client.SenderLimit{{Limit: "8_in_a_row"}}}}},
		Replicas: []Replica{noteOf("a", true, ago(0), failing), noteOf("b", true, ago(0), failing),
			noteOf("c", true, ago(0), failing), noteOf("d", false, ago(time.Minute))},
		Found: []Found{
			{Kind: client.AttentionDeadLetters,
				Executions: append(letters(991, "stripe", "database is locked"), letters(2, "mails", "full")...)},
			{Kind: client.AttentionBlocked, Executions: letters(1, "orders", "database is locked")},
		},
		Queues: []Queue{
			{client.Lock{Workflow: "assess/7", Route: "assess", Held: true, Waiting: 3}, ago(12 * time.Minute)},
			{client.Lock{Workflow: "w0", Route: "orders", Parked: &client.Parked{Blocked: "x"}, Waiting: 4},
				ago(40 * time.Minute)},
		},
		Space: []idem.StoreSpace{{Member: "m1", Size: 95, Quota: 100}, {Member: "m2", Size: 10, Quota: 100}},
	}
	inOrder(t, texts(in),
		"etcd m1 is 95% full",
		"shopify fails now: 60 of 60 | the service says 500: database is locked | shopify has counted 8 in a row: deleted after 8 failures in a row",
		"1 blocked queue of orders (w0), 4 events wait | the service says 500: database is locked",
		"workflow assess/7 is held, 3 events wait | the first has waited for 12 min",
		"replica d is gone",
		"991 dead letters of stripe | the service says 500: database is locked",
		"2 dead letters of mails | the service says 500: full",
	)
	if n := len(List(in)); n != 7 {
		t.Errorf("%d items:\n%s", n, texts(in))
	}
}

func TestARouteThatFailsAtOneReplicaSaysWhere(t *testing.T) {
	spell := &report.Spell{Since: ago(time.Hour), Last: ago(0), Failed: 4, All: 5}
	in := &Input{Rules: []client.RouteRules{{Route: "r"}},
		Replicas: []Replica{noteOf("a", true, ago(0), Route{Route: "r", Spell: spell}), noteOf("b", true, ago(0))}}
	inOrder(t, texts(in), "r fails now: 4 of 5, at a of 2 replicas")
}

// What a replica has counted outlives it for as long as its note: the next failure is not the
// first.
func TestFailuresOfAReplicaThatHasEndedCountUntilOneSucceeds(t *testing.T) {
	spell := &report.Spell{Since: ago(time.Hour), Last: ago(10 * time.Minute), Failed: 7, All: 7}
	before := Route{Route: "r", Spell: spell,
		Standings: report.Standings{Verified: report.Standing{InRow: 7, First: spell.Since, Last: spell.Last}}}
	in := &Input{Now: ago(0), Rules: []client.RouteRules{{Route: "r", Sender: &client.RouteSender{Preset: "shopify",
		GivesUp: "deleted", Limits: []client.SenderLimit{{Limit: "8_in_a_row"}}}}},
		Replicas: []Replica{noteOf("host/1", false, ago(5*time.Minute), before)}}
	for _, c := range []struct {
		what, want string
		after      Route // at the replica that was started instead
	}{
		{"nothing", "r fails now: 7 of 7 |  | shopify is at 88% of 8 in a row: deleted", Route{}},
		{"one more", "r fails now: 7 of 7 |  | shopify has counted 8 in a row: deleted",
			Route{Route: "r", Standings: report.Standings{
				Verified: report.Standing{InRow: 1, First: ago(0), Last: ago(0)}}}},
		{"a success", "", Route{
			Route: "r", Standings: report.Standings{Verified: report.Standing{Good: ago(time.Minute), All: 1}}}},
	} {
		now := noteOf("host/2", true, ago(0), c.after)
		now.StartedAt = ago(time.Minute)
		in.Replicas = []Replica{in.Replicas[0], now}
		if got := strings.TrimSpace(texts(in)); got != c.want {
			t.Errorf("after %s: %q, want %q", c.what, got, c.want)
		}
	}
	// A route without a limit of its sender has no Standing: its counts say that one succeeded.
	in.Rules[0].Sender, in.Replicas[1] = nil, noteOf("host/1", true, ago(0))
	in.Replicas[1].StartedAt = ago(time.Minute)
	in.Lately.Routes = []client.RouteCounts{{Route: "r", Steps: []client.CountStep{
		{At: timeAt(ago(9 * time.Minute)), Counts: client.Counts{Succeeded: 1}}}}}
	if got := texts(in); strings.Contains(got, "fails") {
		t.Errorf("after a success that is counted alone: %q", got)
	}
}

// What one replica fails now is no reason to tell of what others failed before a success.
func TestFailuresBeforeASuccessAreNotAddedToThoseOfNow(t *testing.T) {
	before := &report.Spell{Since: ago(time.Hour), Last: ago(30 * time.Minute), Failed: 66, All: 72}
	now := &report.Spell{Since: ago(time.Minute), Last: ago(0), Failed: 3, All: 3}
	in := &Input{Now: ago(0), Rules: []client.RouteRules{{Route: "r"}}, Replicas: []Replica{
		noteOf("host/1", false, ago(30*time.Minute), Route{Route: "r", Spell: before}),
		noteOf("host/2", true, ago(0), Route{Route: "r", Spell: now}), noteOf("host/3", true, ago(0))}}
	in.Replicas[1].StartedAt = ago(29 * time.Minute)
	inOrder(t, texts(in), "r fails now: 69 of 75, at host/2 of 2 replicas")
	in.Lately.Routes = []client.RouteCounts{{Route: "r", Steps: []client.CountStep{
		{At: timeAt(ago(20 * time.Minute)), Counts: client.Counts{Succeeded: 600}}}}}
	inOrder(t, texts(in), "r fails now: 3 of 3, at host/2 of 2 replicas")
}

func TestConfigurationsThatDifferAreNamedWithWhatDiffers(t *testing.T) {
	other := noteOf("b", true, ago(0))
	other.Config.Parts = map[string]string{"upstream.url": "2", "route new": "3"}
	in := &Input{Replicas: []Replica{noteOf("a", true, ago(0)), other, noteOf("c", true, ago(0))}}
	inOrder(t, texts(in), "replicas run 2 different configurations", "they differ in route new, upstream.url: a, c | b")
	in.Replicas[1].Alive = false
	if got := texts(in); strings.Contains(got, "different") {
		t.Errorf("one that is gone runs none: %s", got)
	}
}

func TestAReplicaThatStoppedOrWasStartedAgainIsNotGone(t *testing.T) {
	stopped, again := noteOf("host/1", false, ago(time.Minute)), noteOf("host/2", true, ago(0))
	again.StartedAt = ago(30 * time.Second)
	if got := texts(&Input{Replicas: []Replica{stopped, again}}); got != "" {
		t.Errorf("started again: %s", got)
	}
	again.StartedAt = ago(90 * time.Second)
	if got := texts(&Input{Replicas: []Replica{stopped, again}}); !strings.Contains(got, "host/1 is gone") {
		t.Errorf("the other one on its host was there before: %s", got)
	}
	again.StartedAt = ago(30 * time.Second)
	at := again.StartedAt
	again.StartedAt = stopped.At.Truncate(time.Second) // within the second in which the other one ended
	stopped.At = again.StartedAt.Add(300 * time.Millisecond)
	if got := texts(&Input{Replicas: []Replica{stopped, again}}); got != "" {
		t.Errorf("started again at once: %s", got)
	}
	again.StartedAt = at
	other := noteOf("host/0", false, ago(2*time.Minute))
	if got := texts(&Input{Replicas: []Replica{other, stopped, again}}); strings.Count(got, "is gone") != 1 {
		t.Errorf("one was started on the host of two that are gone: %s", got)
	}
	first, second := stopped, noteOf("host/4", false, ago(3*time.Minute))
	first.StartedAt = ago(100 * time.Second)
	if got := texts(&Input{Replicas: []Replica{second, first, again}}); got != "" {
		t.Errorf("the one that was started again is gone and started again, too: %s", got)
	}
	stopped.Stopped = true
	if got := texts(&Input{Replicas: []Replica{stopped}}); got != "" {
		t.Errorf("stopped: %s", got)
	}
	if got := texts(&Input{Replicas: []Replica{noteOf("host/3", false, ago(5*time.Second))}}); got != "" {
		t.Errorf("it changes its session: %s", got)
	}
}

func TestTheReplicaThatWentLastIsTheFirstOfThoseThatAreGone(t *testing.T) {
	var got []string
	for _, v := range Views([]Replica{noteOf("host/1", false, ago(time.Hour)), noteOf("host/9", true, ago(time.Minute)),
		noteOf("host/2", false, ago(time.Minute)), noteOf("host/8", true, ago(time.Hour))}) {
		got = append(got, v.Replica)
	}
	if all := strings.Join(got, " "); all != "host/8 host/9 host/2 host/1" {
		t.Error(all)
	}
}

func TestWhatWasLookedAtOnARouteIsLeftOutAndWhatIsNewIsNot(t *testing.T) {
	forged := func(route string, n int64, when time.Duration) client.RouteCounts {
		return client.RouteCounts{Route: route,
			Steps: []client.CountStep{{At: client.Time{Time: ago(when)}, Counts: client.Counts{BadSignatures: n}}}}
	}
	silent := func(route string, last time.Duration) client.RouteCounts {
		return client.RouteCounts{Route: route, LastAt: client.Time{Time: ago(last)}}
	}
	changed := func(route string, changed, duplicates int64) client.RouteCounts {
		return client.RouteCounts{Route: route,
			Steps: []client.CountStep{{At: client.Time{Time: ago(time.Hour)},
				Counts: client.Counts{Changed: changed, Duplicates: duplicates}}}}
	}
	mark := func(concern string, until time.Duration) client.SeenMark {
		return client.SeenMark{Concern: concern, Until: client.Time{Time: ago(until)}}
	}
	in := &Input{
		Status: client.ReplicaStatus{Routes: []client.RouteRate{{Route: "linear", Changes: true}}},
		Rules:  []client.RouteRules{{Route: "quiet"}, {Route: "quieter"}},
		Lately: client.CountList{Routes: []client.RouteCounts{forged("forged", 12, 2*time.Minute),
			forged("again", 12, 2*time.Minute), forged("few", 9, 2*time.Minute), forged("before", 12, time.Hour)}},
		Day: client.CountList{Routes: []client.RouteCounts{
			silent("quiet", 3*time.Hour), silent("quieter", 2*time.Hour), silent("removed", 2*time.Hour),
			changed("alertmanager", 4, 6), changed("half", 3, 6), changed("linear", 6, 6), changed("seen", 6, 6),
		}},
		Acknowledgements: []client.SeenMark{mark("bad_signatures:forged", time.Minute),
			mark("bad_signatures:again", 6*time.Minute), mark("silent:quiet", time.Hour),
			mark("silent:quieter", 150*time.Minute), mark("changed:seen", 0)},
	}
	got := texts(in)
	inOrder(t, got, "4 of 6 duplicates of alertmanager were other requests",
		"12 bad signatures on again", "quieter is silent")
	if strings.Count(got, "\n") != 2 {
		t.Errorf("got\n%s", got)
	}
}

func TestAnIDIsTheSameFromTheBeginningToTheEnd(t *testing.T) {
	id := func(n int) string {
		return List(&Input{Now: now, Found: []Found{{Kind: client.AttentionDeadLetters,
			Executions: letters(n, "r", "x")}}})[0].ID
	}
	if id(1) != id(40) {
		t.Errorf("%s becomes %s", id(1), id(40))
	}
}

func TestANoteThatCannotBeReadIsLeftOut(t *testing.T) {
	text, err := json.Marshal(Note{Replica: "a"})
	if err != nil {
		t.Fatal(err)
	}
	got := ReadReplicas([]idem.ReplicaNote{{Says: text}, {Says: []byte(`{"replica":3}`)}, {}})
	if len(got) != 1 || got[0].Replica != "a" {
		t.Errorf("%+v", got)
	}
}

// TestEachItemFitsTwoLinesOfATerminal: hooklock status shows the items of a bad night below each
// other, each with what to do and its command, at 80 columns of which it has 69.
func TestEachItemFitsTwoLinesOfATerminal(t *testing.T) {
	const room, orders = 2 * 69, "orders"
	found := func(kind string) Found {
		x := client.Execution{ExecutionID: "exec_1", Workflow: "orders/42", Route: orders, Status: client.Failed,
			Error: &client.Failure{Code: "upstream_timeout"}, Arrivals: &client.Arrivals{
				Newest: []client.Arrival{{Decision: string(idem.DecisionUpstreamUnreachable)}}}}
		return Found{Kind: kind, Executions: []Attended{{Execution: x, At: ago(time.Hour)}}}
	}
	failing := Route{Route: orders, Spell: &report.Spell{Since: ago(time.Hour), Last: ago(0), Failed: 60, All: 60,
		Failure: report.Failure{Cause: "the service says 500", Said: "database is locked"}},
		WrongEventID: &client.WrongEventID{EventID: "undefined", Why: client.IDPlaceholder, Deliveries: 12}}
	refused := noteOf("shop-1/7", true, ago(0), failing)
	refused.Config.File, refused.Config.Refused = "sidecar.yaml", []string{"sidecar.yaml:8:5: routes[0].path: missing"}
	other := noteOf("shop-2/7", true, ago(0), failing)
	other.Config.Parts = map[string]string{"upstream.url": "2"}
	counts := []client.RouteCounts{{Route: orders, LastAt: timeAt(ago(2 * time.Hour)), Steps: []client.CountStep{
		{At: timeAt(ago(time.Minute)), Counts: client.Counts{BadSignatures: 12, Changed: 4, Duplicates: 6}}}}}
	in := &Input{Now: now,
		Status: client.ReplicaStatus{Etcd: client.EtcdStatus{Members: []client.Contact{{Address: "http://etcd-0:2379",
			State: client.ContactFails, FailedAt: timeAt(ago(0)), Failure: "connection refused"}}}},
		Rules: []client.RouteRules{{Route: orders}, {Route: "stripe", Sender: &client.RouteSender{Preset: "stripe",
			GivesUp: "disabled", Limits: []client.SenderLimit{{Limit: "8_in_a_row"}}}}},
		Replicas: []Replica{refused, other, noteOf("shop-3/7", false, ago(time.Minute), Route{Route: "stripe",
			Standings: report.Standings{Verified: report.Standing{InRow: 5, First: ago(time.Hour), Last: ago(0)}}})},
		Space: []idem.StoreSpace{{Member: "etcd-0", Size: 1900 << 20, InUse: 400 << 20, Quota: 2 << 30}},
		Queues: []Queue{{client.Lock{Workflow: "orders/42", Route: orders, Held: true, Waiting: 3},
			ago(12 * time.Minute)}},
		Lately: client.CountList{Routes: counts}, Day: client.CountList{Routes: counts},
	}
	for kind := range kindsOfFound() {
		in.Found = append(in.Found, found(kind))
	}
	missing := client.AttentionKinds()
	for _, i := range List(in) {
		missing = slices.DeleteFunc(missing, func(kind string) bool { return kind == i.Kind })
		since := ""
		if !i.SinceAt.IsZero() {
			since = "10:01:16"
		}
		if line := i.Line(since); len(line) > room {
			t.Errorf("%d of %d: %s", len(line), room, line)
		}
	}
	if len(missing) > 0 {
		t.Errorf("not shown: %v", missing)
	}
}
