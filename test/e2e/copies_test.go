package e2e

import (
	"fmt"
	"testing"

	"hooklock/test/testkit"
)

func TestDuplicatesAreCountedAtEveryReplica(t *testing.T) {
	t.Parallel()
	both := fleet(t, "copies")
	path := at(t, "plain")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, both[0].Addr, path, "{}", key("1"))
	work.await(t)
	for _, h := range both { // while it runs
		if a := testkit.Post(t, h.Addr, path, "{}", key("1")); a.Header.Get("Hooklock-Decision") != "in_flight" {
			t.Fatalf("%+v", a)
		}
	}
	work.answer <- testkit.OK("done")
	ran := testkit.Receive(t, "the first answer", first)
	copies := 2.0
	for range 3 {
		for _, h := range both { // and when it has ended
			passed(t, testkit.Post(t, h.Addr, path, "{}", key("1")), 200, "done", "replayed")
			copies++
		}
	}
	for _, h := range both {
		testkit.Until(t, fmt.Sprint(copies, " copies"), func() bool {
			_, a := asked(t, h, "GET", "/v1/executions/"+ran.Execution(), "", "")
			return a["duplicates"] == copies
		})
	}
	status, a := asked(t, both[1], "GET", "/v1/executions?status=SUCCESS&limit=500", "", "")
	list, _ := a["executions"].([]any)
	for _, x := range list {
		if x := x.(map[string]any); x["executionId"] == ran.Execution() && x["duplicates"] == copies {
			return
		}
	}
	t.Errorf("%d: the list does not show it: %v", status, a)
}
