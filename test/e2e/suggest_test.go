package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hooklock/admin/client"
	"hooklock/test/testkit"
)

// A legacy endpoint behind a Hooklock that knows nothing but where it is: what is suggested is
// valid, and makes of the same deliveries what was predicted.
func TestWhatIsSuggestedDoesWhatWasPredicted(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(r *testkit.Received) string {
		var event struct{ Attempt, Sum int }
		if json.Unmarshal([]byte(r.Body), &event) == nil && event.Attempt == 1 && event.Sum/31%10 >= 5 {
			return testkit.Reply(503, "busy")
		}
		return testkit.OK("ran")
	})
	h := own(t, bare(up.URL, ""))
	var bodies []string
	for event := range 60 {
		for attempt := range 1 + event%10/5 {
			bodies = append(bodies, fmt.Sprintf(`{"event_id":"zebra%d","attempt":%d,"customer_id":"c%d","sum":%d}`,
				event, attempt+1, event%7, event*31))
		}
	}
	for n, body := range bodies {
		testkit.Post(t, h.Addr, "/hooks/shop", body, "X-Hub-Signature: "+planted)
		if n%30 == 29 { // of more at once only some are looked at
			testkit.Until(t, "the deliveries to be looked at", func() bool {
				return strings.Contains(cli(t, h, "suggest"), strconv.Itoa(n+1)+" deliveries from")
			})
		}
	}
	testkit.Post(t, h.Addr, "/hooks/wide", `{"big":"`+strings.Repeat("x", 70<<10)+`"}`)
	var list client.SuggestionList
	answer := cli(t, h, "suggest", "-o", "json")
	if err := json.Unmarshal([]byte(answer), &list); err != nil || len(list.Suggestions) != 2 ||
		strings.Contains(answer, planted) || strings.Contains(answer, "zebra") {
		t.Fatalf("%v %s", err, answer)
	}
	s := list.Suggestions[0]
	if s.EventID != "{body.event_id}" || s.Workflow != "shop/{body.customer_id}" ||
		fmt.Sprint(s.Ignore) != "[body.attempt]" || s.Deliveries != len(bodies) || s.Configured {
		t.Fatalf("%s", answer)
	}
	routes := cli(t, h, "suggest", "--route", "shop")
	file := filepath.Join(t.TempDir(), "routes.yaml")
	if err := os.WriteFile(file, []byte(bare(up.URL, routes)), 0o600); err != nil {
		t.Fatal(err)
	}
	again := own(t, bare(up.URL, routes))
	made := map[string]int{}
	for _, body := range bodies {
		made[testkit.Post(t, again.Addr, "/hooks/shop",
			strings.ReplaceAll(body, `"attempt":1`, `"attempt":7`)).Header.Get("Hooklock-Decision")]++
	}
	if made["executed"] != s.Predicted.Events || made["replayed"] != s.Predicted.Repeats ||
		made["mismatch"] != s.Predicted.Others {
		t.Errorf("%v, predicted %+v\n%s", made, s.Predicted, routes)
	}
	if found := cli(t, again, "suggest"); !strings.Contains(found, "event_id: '{body.event_id}'") {
		t.Errorf("an enforced route is not learned from: %s", found)
	}
	other := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(other, []byte(answer), 0o600); err != nil {
		t.Fatal(err)
	}
	if merged := cli(t, again, "suggest", other); strings.Count(merged, "- name: ") != 3 {
		t.Errorf("%s", merged)
	}
}

func TestNothingIsLearnedWhereThatIsOff(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("ran") })
	h := own(t, bare(up.URL, "limits: {suggestions: 0B}"))
	testkit.Post(t, h.Addr, "/hooks/shop", "{}")
	if out := cli(t, h, "suggest"); !strings.Contains(out, "limits.suggestions is 0B") {
		t.Errorf("%s", out)
	}
}
