package e2e

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// "Customer says evt_123 was not processed": each thing that somebody may have in hand leads to
// what became of it.
func TestAnEventIsFoundByEachOfItsNames(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(r *testkit.Received) string {
		if r.Header.Get("Hooklock-Attempt") == "1" && r.Header.Get("Idempotency-Key") == "evt_123" {
			return "" // hangs up
		}
		return testkit.OK("done")
	})
	h := own(t, bare(up.URL, `
shutdown_timeout: 1s
routes:
  - {name: hooks, path: "/hooks/{w}", workflow: "hooks/{path.w}", lock: {release_delay: 0s}}
`))
	trace := "0af7651916cd43dd8448eb211c80319c"
	failed := testkit.Post(t, h.Addr, "/hooks/acme", "{}", key("evt_123"), "traceparent: 00-"+trace+
		"-b7ad6b7169203331-01")
	if failed.Status != 502 {
		t.Fatalf("%v", failed)
	}
	second := testkit.Post(t, h.Addr, "/hooks/acme", "{}", key("evt_123"))
	passed(t, second, 200, "done", "executed")
	passed(t, testkit.Post(t, h.Addr, "/hooks/other", "{}", key("evt_1234")), 200, "done", "executed")
	found := regexp.MustCompile(`(?m)^` + second.Execution() + ` +SUCCESS +executed .* hooks/acme +evt_123 `)
	got := cli(t, h, "executions", "get", second.Execution()[:34])
	keyOf := regexp.MustCompile(`(?m)^key +(\S+)$`).FindStringSubmatch(got)
	if keyOf == nil {
		t.Fatal(got)
	}
	for _, text := range []string{"evt_123", second.Execution(), failed.Execution(), second.Execution()[:34], keyOf[1],
		keyOf[1][:16], trace, "hooks/ac", "hooks/acme"} {
		if table := cli(t, h, "executions", "find", text); !found.MatchString(table) ||
			strings.Count(table, "exec_") != 1 {
			t.Errorf("find %s:\n%s", text, table)
		}
	}
	// Each attempt shows the whole chain, and what went wrong.
	for _, id := range []string{failed.Execution(), second.Execution()} {
		table := cli(t, h, "executions", "get", id)
		for _, line := range []string{
			`(?m)^` + failed.Execution() + ` +FAILED +unknown .* ` + trace + ` +upstream_failed: .*body written`,
			`(?m)^` + second.Execution() + ` +SUCCESS +executed .* 200 `,
		} {
			if !regexp.MustCompile(line).MatchString(table) {
				t.Errorf("no line %s in\n%s", line, table)
			}
		}
	}
	if body := cli(t, h, "executions", "answer", second.Execution()); body != "done" {
		t.Errorf("%q", body)
	}
	list := cli(t, h, "executions", "list", "--since", "10m", "--workflow", "hooks/*", "--route", "hooks", "--outcome",
		"executed", "--status", "success")
	if strings.Index(list, "evt_1234") > strings.Index(list, "evt_123 ") || strings.Count(list, "exec_") != 2 {
		t.Errorf("not the newest first:\n%s", list)
	}
	if said := cli(t, h, "executions", "list", "--workflow", "hooks/"); !strings.Contains(said, "a pattern has a *") {
		t.Errorf("of a name that is the beginning of one, the list says %q", said)
	}
	// An ID is found as its sender writes it, and as it is shown here.
	odd := testkit.Post(t, h.Addr, "/hooks/acme", "{}", key("order%2F17 100%"))
	for _, text := range []string{"order%2F17 100%", "order%252F17 100%25"} {
		if table := cli(t, h, "executions", "find", text); !strings.Contains(table, odd.Execution()) {
			t.Errorf("find %s:\n%s", text, table)
		}
	}
}

// A sender's page shows a part of what is the event's ID here, and in a case of its own.
func TestAnEventIsFoundByEachPartOfItsIDAndByWhatIsShownOfIt(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
	h := own(t, bare(up.URL, `
routes:
  - {name: composed, path: /composed, workflow: composed, event_id: "{header.X-Hook}/{header.X-Delivery}"}
`))
	const guid = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
	id := testkit.Post(t, h.Addr, "/composed", "{}", "X-Hook: 292430182", "X-Delivery: "+guid).Execution()
	testkit.Post(t, h.Addr, "/composed", "{}", "X-Hook: 292430182", "X-Delivery: a"+guid)
	for _, text := range []string{guid, strings.ToUpper(guid), guid[:8], "292430182/" + guid, "292430182/72D3162E",
		id[:25] + "…"} {
		if table := cli(t, h, "executions", "find", text); !strings.Contains(table, id) ||
			strings.Count(table, "exec_") != 1 {
			t.Errorf("find %s:\n%s", text, table)
		}
	}
	if table := cli(t, h, "executions", "find", "292430182"); strings.Count(table, "exec_") != 2 {
		t.Errorf("both are of that hook:\n%s", table)
	}
}

// An upstream's two-minute deploy ends in a list of what to send again.
func TestWhatADeployRefusedIsAListToDeliverAgain(t *testing.T) {
	t.Parallel()
	h := own(t, bare("http://127.0.0.1:1", `
shutdown_timeout: 1s
routes:
  - {name: hooks, path: "/hooks/{w}", workflow: "{path.w}"}
`))
	for i := range 3 {
		for range i + 1 {
			refused{502, "upstream_unreachable", "no", "upstream_unreachable"}.check(t,
				testkit.Post(t, h.Addr, fmt.Sprintf("/hooks/w%d", i), "{}", key(fmt.Sprintf("evt_%d", i))))
		}
	}
	list := ""
	testkit.Until(t, "the arrivals are written", func() bool {
		list = cli(t, h, "executions", "list", "--decision", "upstream_unreachable", "--since", "10m")
		return strings.Count(list, "REFUSED") == 3 && strings.Contains(list, "evt_2")
	})
	if !regexp.MustCompile(`(?m)^- +REFUSED .* w0 +evt_0 +upstream_unreachable: 502 at `).MatchString(list) {
		t.Error(list)
	}
	if none := cli(t, h, "executions", "list"); strings.Contains(none, "evt_") {
		t.Errorf("they are no executions:\n%s", none)
	}
	if one := cli(t, h, "executions", "find", "evt_2"); strings.Count(one, "REFUSED") != 1 {
		t.Error(one)
	}
	all := cli(t, h, "executions", "list", "--event", "evt_2", "-o", "json")
	if !strings.Contains(all, `"counts":{"upstream_unreachable":3}`) || !strings.Contains(all, `"from":"127.0.0.1"`) ||
		!strings.Contains(all, `"status":502`) {
		t.Error(all)
	}
}

func TestARefusedEventNamesTheEventThatHadTheLock(t *testing.T) {
	t.Parallel()
	slow := newHeld(t)
	up := testkit.NewUpstream(t, slow.handle)
	h := own(t, bare(up.URL, `
routes:
  - {name: hooks, path: "/hooks/{w}", workflow: "hooks/{path.w}", lock: {strategy: fail_fast}}
`))
	first := testkit.GoPost(t, h.Addr, "/hooks/acme", "{}", key("evt_first"))
	slow.await(t)
	refused{409, "workflow_locked", "no", "locked"}.check(t,
		testkit.Post(t, h.Addr, "/hooks/acme", "{}", key("evt_second")))
	says := func(want string) {
		t.Helper()
		list := ""
		testkit.Until(t, want, func() bool {
			list = cli(t, h, "executions", "list", "--workflow", "hooks/acme", "-o", "wide")
			return regexp.MustCompile(`(?m)^- +REFUSED .* hooks/acme +evt_second +locked: 409 at \S+; ` + want +
				`$`).MatchString(list)
		})
	}
	says(`evt_first had the lock since \S+, and still has it`)
	slow.answer <- testkit.OK("done")
	testkit.Receive(t, "the first one's answer", first)
	says(`evt_first had the lock since \S+, until \S+`)
}

// A person who let an event of unknown outcome run again is not to be told later that it never ran.
func TestAForgottenEventStaysKnownAsReleasedToRunAgain(t *testing.T) {
	t.Parallel()
	breaks := make(chan struct{}, 1)
	breaks <- struct{}{}
	up := testkit.NewUpstream(t, func(*testkit.Received) string {
		select {
		case <-breaks:
			return ""
		default:
			return testkit.OK("done")
		}
	})
	h := own(t, bare(up.URL, `
routes:
  - {name: hooks, path: /hooks, lock: {release_delay: 0s}}
`))
	id := testkit.Post(t, h.Addr, "/hooks", "{}", key("evt_1")).Execution()
	cli(t, h, "executions", "forget", id, "--reason", "asked the bank")
	for _, text := range []string{"evt_1", id, id[:25]} {
		testkit.Until(t, "find "+text, func() bool {
			out, err := exec.CommandContext(t.Context(), hooklockProgram, "executions", "find", text, "-o", "wide",
				"--admin", "http://"+h.Admin).CombinedOutput()
			return err == nil &&
				regexp.MustCompile(`(?m)^- +RELEASED .* evt_1 +\S+ released it to run again: asked the bank; `+id+
					` had ended as FAILED, unknown`).Match(out)
		})
	}
	again := testkit.Post(t, h.Addr, "/hooks", "{}", key("evt_1"))
	passed(t, again, 200, "done", "executed")
	if got := cli(t, h, "executions", "get", again.Execution()); !strings.Contains(got,
		"released it to run again: asked the bank; "+id) {
		t.Errorf("after it ran again:\n%s", got)
	}
}
