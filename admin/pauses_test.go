package admin

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"hooklock/idem"
)

func pausePath(scope string) string { return "/v1/pauses/" + url.PathEscape(scope) }

func TestAPauseIsSeenUntilItIsResumed(t *testing.T) {
	f := newFleet(t, nil)
	a := f.want(201, "", "POST", "/v1/pauses", opsToken,
		`{"scope":"workflow:stripe/*","reason":"a migration","for":"15m"}`)
	if a.text("scope") != "workflow:stripe/*" || a.text("by") != "ops" || a.text("reason") != "a migration" ||
		a.text("until") == "" {
		t.Errorf("%s", a.body)
	}
	f.until("both replicas have heard of it", func() bool {
		return f.want(200, "", "GET", pausePath("workflow:stripe/*"), readToken1, "").json["drained"] == true
	})
	f.want(200, "", "POST", "/v1/pauses", opsToken, `{"scope":"workflow:stripe/*","reason":"for longer"}`)
	if a := f.want(200, "", "GET", "/v1/pauses", readToken1, ""); !strings.Contains(string(a.body), "for longer") ||
		strings.Contains(string(a.body), "until") {
		t.Errorf("%s", a.body)
	}
	if a := f.want(200, "", "DELETE", pausePath("workflow:stripe/*")+"?reason=done", opsToken,
		""); a.text("reason") != "for longer" {
		t.Errorf("%s", a.body)
	}
	f.want(404, "pause_not_found", "DELETE", pausePath("workflow:stripe/*"), opsToken, "")
	f.want(201, "", "POST", "/v1/pauses", opsToken, `{"scope":"route:r","reason":"short","for":"1h"}`)
	if a := f.want(200, "", "DELETE", pausePath("route:r"), opsToken, ""); a.text("until") == "" {
		t.Errorf("%s", a.body)
	}
	f.want(404, "pause_not_found", "GET", pausePath("workflow:stripe/*"), opsToken, "")
	for _, line := range []string{
		`"who":"ops","what":"pause","result":"done","why":"a migration","before":"not paused","after":"paused for 15m"`,
		`"what":"pause","result":"done","why":"for longer","before":"paused by ops"`,
		`"what":"resume","result":"done","why":"done","before":"paused by ops","after":"resumed"`,
	} {
		if !strings.Contains(f.log.String(), line) {
			t.Errorf("no audit line %s in\n%s", line, f.log.String())
		}
	}
}

func TestAnUnreadablePauseIsRefused(t *testing.T) {
	f := newFleet(t, nil)
	for _, body := range []string{
		`{"scope":"stripe","reason":"x"}`, `{"scope":"route:","reason":"x"}`, `{"scope":"workflow:w"}`,
		`{"scope":"workflow:w","reason":"x","for":"1s"}`,
		`{"scope":"workflow:w","reason":"x","for":"15"}`, `{"scope":"workflow:` + strings.Repeat("w", 3000) +
			`","reason":"x"}`,
	} {
		f.want(400, "bad_request", "POST", "/v1/pauses", opsToken, body)
	}
	f.want(400, "bad_request", "GET", "/v1/pauses?limit=1", opsToken, "")
	f.want(400, "bad_request", "GET", pausePath("route:r")+"?wait=1s", opsToken, "")
	f.want(400, "bad_request", "DELETE", pausePath("route:r")+"?reason="+strings.Repeat("x", 5000), opsToken, "")
	f.want(400, "bad_request", "DELETE", pausePath("r"), opsToken, "")
}

// crowded is a ledger with more locks than are looked at.
type crowded struct{ Ledger }

func (crowded) Pauses(context.Context) ([]idem.PauseState, error) {
	return []idem.PauseState{{Pause: idem.Pause{Scope: idem.PauseScope{Route: "r"}}, More: true}}, nil
}

func TestWhatWasNotCountedToItsEndIsNotDrained(t *testing.T) {
	r := newRig(t, crowded{unreachable{}}, nil)
	if a := r.want(200, "", "GET", pausePath("route:r"), opsToken, ""); a.json["incomplete"] != true ||
		a.json["drained"] != false {
		t.Errorf("%s", a.body)
	}
}

func TestATokenPausesWhatItsOwnPatternsCover(t *testing.T) {
	f := newFleet(t, nil)
	f.want(403, "forbidden", "POST", "/v1/pauses", readToken1, `{"scope":"workflow:stripe/a","reason":"x"}`)
	for _, scope := range []string{"route:r", "workflow:*", "workflow:strip*", "workflow:*/a", "workflow:paypal/a"} {
		f.want(403, "forbidden", "POST", "/v1/pauses", stripeToken, `{"scope":"`+scope+`","reason":"x"}`)
		f.want(201, "", "POST", "/v1/pauses", opsToken, `{"scope":"`+scope+`","reason":"x"}`)
		f.want(404, "pause_not_found", "GET", pausePath(scope), stripeToken, "")
		f.want(403, "forbidden", "DELETE", pausePath(scope), stripeToken, "")
	}
	for _, scope := range []string{"workflow:stripe/a", "workflow:stripe/*", "workflow:stripe/a*b",
		"workflow:x-shared"} {
		f.want(201, "", "POST", "/v1/pauses", stripeToken, `{"scope":"`+scope+`","reason":"x"}`)
		f.want(200, "", "GET", pausePath(scope), stripeToken, "")
	}
	if a := f.want(200, "", "GET", "/v1/pauses", stripeToken, ""); len(a.json["pauses"].([]any)) != 4 {
		t.Errorf("%s", a.body)
	}
	f.want(200, "", "DELETE", pausePath("workflow:stripe/*"), stripeToken, "")
}

func TestAPauseOfAnUnknownRouteIsMadeWithAWarning(t *testing.T) {
	f := newFleet(t, func(o *Options) { o.Process = &process{} })
	body := func(scope string) string { return `{"scope":"` + scope + `","reason":"x"}` }
	for scope, want := range map[string]string{
		"route:stripe": "", "workflow:typo": "",
		"route:strpie": `no route of this replica's configuration has the name "strpie", did you mean "stripe"?`,
		"route:paypal": `no route of this replica's configuration has the name "paypal"; GET /v1/routes lists them`,
	} {
		for _, a := range []*reply{f.want(201, "", "POST", "/v1/pauses", opsToken, body(scope)),
			f.want(200, "", "GET", pausePath(scope), opsToken, "")} {
			if a.text("warning") != want {
				t.Errorf("%s: %s", scope, a.body)
			}
		}
		f.want(200, "", "DELETE", pausePath(scope), opsToken, "")
		for _, method := range []string{"DELETE", "GET"} {
			a := f.want(404, "pause_not_found", method, pausePath(scope), opsToken, "")
			if strings.Contains(a.text("detail"), "no route") != (want != "") ||
				!strings.Contains(a.text("detail"), want) {
				t.Errorf("%s %s: %s", method, scope, a.body)
			}
		}
	}
}

func TestAPausesPatternIsSpelledAsWorkflowsAreShown(t *testing.T) {
	f := newFleet(t, nil)
	for _, written := range []string{"q/50%*", "q/50%25*"} {
		if a := f.want(201, "", "POST", "/v1/pauses", opsToken, `{"scope":"workflow:`+written+
			`","reason":"x"}`); a.text("scope") != "workflow:q/50%25*" {
			t.Errorf("%s: %s", written, a.body)
		}
		f.want(200, "", "GET", pausePath("workflow:"+written), opsToken, "")
		f.want(200, "", "DELETE", pausePath("workflow:"+written), opsToken, "")
	}
}
