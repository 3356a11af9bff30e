package admin

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hooklock/idem"
	"hooklock/test/testkit"
)

func seenPath(concern string) string { return "/v1/seen/" + url.PathEscape(concern) }

// shows is how many executions a list has.
func (f *fleet) shows(token, query string) int {
	f.t.Helper()
	return len(f.all(token, "executions", query))
}

func TestWhatWasLookedAtIsLeftOutUntilSomethingNewOfItComes(t *testing.T) {
	f := newFleet(t, keptRequests)
	letter := func(event string) (id string) {
		id = f.park("w"+event, event, "a|b")
		f.deadLetter(f.carry("w" + event))
		return id
	}
	blocked := f.park("stops", "1", "a|b")
	f.block(f.carry("stops"))
	first := letter("1")
	f.first.NoteArrival(lockOf("reused", "2").Scope, "route", "2",
		idem.Arrival{At: time.Now(), Decision: idem.DecisionMismatch, Status: 422}, time.Hour)
	lists := map[string]string{
		"dead_letters": "parked=true&state=dead_letter", "blocked": "parked=true&state=blocked",
		"unknown": "outcome=unknown&status=FAILED", "reused": "decision=mismatch&since=1h",
	}
	testkit.Until(t, "the arrival is written", func() bool { return f.shows(opsToken, lists["reused"]) == 1 })
	for kind, list := range lists {
		unseen := list + "&unseen=" + kind
		f.want(201, "", "POST", "/v1/seen", opsToken, `{"concern":"`+kind+`:other","reason":"not this route"}`)
		if n := f.shows(readToken1, unseen); n != 1 {
			t.Errorf("%s: %d before anybody has looked", kind, n)
		}
		f.want(201, "", "POST", "/v1/seen", opsToken, `{"concern":"`+kind+`:route","reason":"TICKET-1"}`)
		if n, all := f.shows(readToken1, unseen), f.shows(readToken1, list); n != 0 || all != 1 {
			t.Errorf("%s: %d not looked at of %d", kind, n, all)
		}
	}
	if n := f.shows(stripeToken, "parked=true&unseen=dead_letters"); n != 0 {
		t.Errorf("%d of other workflows", n)
	}
	second := letter("2")
	if got := f.all(readToken1, "executions", lists["dead_letters"]+"&unseen=dead_letters"); !slices.Equal(got,
		[]string{second}) {
		t.Errorf("%v, and not the new %s", got, second)
	}
	earlier := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	if a := f.want(200, "", "POST", "/v1/seen", opsToken, `{"concern":"dead_letters:route","reason":"late","until":"`+
		earlier+`"}`); a.text("until") <= earlier {
		t.Errorf("an earlier mark has taken the later one's place: %s", a.body)
	}
	if a := f.want(200, "", "DELETE", seenPath("dead_letters:route")+"?reason=again", opsToken,
		""); a.text("concern") != "dead_letters:route" || a.text("by") != "ops" || a.text("reason") != "late" {
		t.Errorf("%s", a.body)
	}
	if got := f.all(readToken1, "executions", lists["dead_letters"]+"&unseen=dead_letters"); !slices.Contains(got,
		first) || !slices.Contains(got, second) || slices.Contains(got, blocked) {
		t.Errorf("%v", got)
	}
	f.want(404, "mark_not_found", "DELETE", seenPath("dead_letters:route"), opsToken, "")
	if a := f.want(200, "", "GET", "/v1/seen", readToken1, ""); len(a.json["seen"].([]any)) != 2*len(lists)-1 ||
		!strings.Contains(string(a.body), "TICKET-1") {
		t.Errorf("%s", a.body)
	}
	for _, line := range []string{
		`"who":"ops","what":"seen","result":"done","why":"TICKET-1","before":"not looked at","after":"looked at until `,
		`"workflow":"blocked:route"`,
		`"what":"unseen","result":"done","why":"again","before":"looked at until `,
	} {
		if !strings.Contains(f.log.String(), line) {
			t.Errorf("no audit line %s in\n%s", line, f.log.String())
		}
	}
}

// What a person has not looked at is not hidden from it: a token for some workflows cannot mark,
// and nothing is left out for it.
func TestATokenThatIsLimitedMarksNothingAndMissesNothing(t *testing.T) {
	f := newFleet(t, keptRequests)
	f.park("stripe/a", "1", "a|b")
	f.deadLetter(f.carry("stripe/a"))
	const mark, list = `{"concern":"dead_letters:route","reason":"x"}`,
		"parked=true&state=dead_letter&unseen=dead_letters"
	f.want(403, "forbidden", "POST", "/v1/seen", stripeToken, mark)
	f.want(403, "forbidden", "GET", "/v1/seen", stripeToken, "")
	f.want(201, "", "POST", "/v1/seen", opsToken, mark)
	f.want(403, "forbidden", "DELETE", seenPath("dead_letters:route"), stripeToken, "")
	if hidden, seen := f.shows(opsToken, list), f.shows(stripeToken, list); hidden != 0 || seen != 1 {
		t.Errorf("%d for all workflows, %d for some", hidden, seen)
	}
}

func TestAMarkThatNobodyCanMeanIsRefused(t *testing.T) {
	f := newFleet(t, nil)
	ahead := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for _, body := range []string{
		`{"concern":"dead_letters","reason":"x"}`, `{"concern":"dead_letters:","reason":"x"}`,
		`{"concern":"letters:route","reason":"x"}`, `{"concern":"unknown:route"}`,
		`{"concern":"unknown:route","reason":"x","until":"soon"}`, `{"concern":"unknown:route","reason":"x","until":"` +
			ahead + `"}`,
		`{"concern":"unknown:` + strings.Repeat("r", 600) + `","reason":"x"}`,
	} {
		f.want(400, "bad_request", "POST", "/v1/seen", opsToken, body)
	}
	f.want(400, "bad_request", "GET", "/v1/seen?limit=1", opsToken, "")
	f.want(400, "bad_request", "DELETE", seenPath("route"), opsToken, "")
	f.want(400, "bad_request", "DELETE", seenPath("unknown:route")+"?reason="+strings.Repeat("x", 5000), opsToken, "")
	f.want(400, "bad_request", "GET", "/v1/executions?unseen=letters", opsToken, "")
}
