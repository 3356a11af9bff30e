package main

import (
	"strings"
	"testing"

	"hooklock/cmd/hooklock/cli"
)

// TestAFilterThatMatchesNothingSaysWhyItCannot: a mistyped route looks like a route on which
// nothing happened.
func TestAFilterThatMatchesNothingSaysWhyItCannot(t *testing.T) {
	const near = "no route of this replica has the name order, did you mean orders?"
	const none = "no route of this replica has the name paypal; hooklock status lists them"
	const value = "; a --label without a name is looked for among the values: give NAME=VALUE"
	nothing := jobJSON("done", `"refused":0,"succeeded":0,"failed":0,"failures":[],"result":"0 of 0 ran"`)
	nothing = strings.Replace(nothing, `"matched":3,"acted":3`, `"matched":0,"acted":0`, 1)
	dry := strings.Replace(nothing, `"done"`, `"dry_run"`, 1)
	withFilter := func(job, filter string) string {
		return strings.Replace(job, `"kind"`, `"filter":{`+filter+`},"kind"`, 1)
	}
	const executions, empty = "GET /v1/executions?", `200 {"executions":[],"nextCursor":""}`
	for line, c := range map[string]struct{ asked, answer, want string }{
		"events --route order":      {executions + "limit=50&route=order", empty, near},
		"events --route paypal":     {executions + "limit=50&route=paypal", empty, none},
		"events --route orders":     {executions + "limit=50&route=orders", empty, ""},
		"events --label customer":   {executions + "label=customer&limit=50", empty, value},
		"events --label a=1":        {executions + "label=a%3D1&limit=50", empty, ""},
		"ls --parked --route order": {executions + "limit=50&parked=true&route=order", empty, near},
		"signatures --route order":  {"GET /v1/signatures?limit=200&route=order", `200 {"badSignatures":[],"nextCursor":""}`, near},
		"counts --route order": {"GET /v1/routes/counts",
			`200 {"since":"2026-11-21T10:00:00.000Z","until":"2026-11-21T11:00:00.000Z","stepSeconds":60,"routes":[]}`, near},
		"seen lost:order --reason x": {"POST /v1/seen",
			`200 {"concern":"lost:order","until":"2026-11-21T11:00:00.000Z","at":"2026-11-21T11:00:00.000Z"}`, near},
		"skip --route order --reason x":         {"POST /v1/jobs", "201 " + withFilter(nothing, `"route":"order"`), near},
		"erase --label customer --reason x":     {"POST /v1/jobs", "201 " + withFilter(nothing, `"label":"…"`), value},
		"erase --label a=1 --reason x":          {"POST /v1/jobs", "201 " + withFilter(nothing, `"label":"a=…"`), ""},
		"erase --label customer --dry-run":      {"POST /v1/jobs", "200 " + withFilter(dry, `"label":"customer"`), value},
		"rerun --again --route order --dry-run": {"POST /v1/jobs", "200 " + withFilter(dry, `"route":"order"`), near},
		"rerun --route order --dry-run":         {"POST /v1/executions/rerun", `200 {"matched":0,"executions":[],"nextCursor":""}`, near},
		"locks list --prefix order":             {"GET /v1/locks?limit=200&prefix=order", `200 {"locks":[],"nextCursor":""}`, "no locks with this --prefix"},
		"locks slots --prefix order":            {"GET /v1/slots?limit=200&prefix=order", `200 {"slots":[],"nextCursor":""}`, "no slots are taken with this --prefix"},
	} {
		api := serveAPI(t, map[string]string{
			c.asked:          c.answer,
			"GET /v1/routes": `200 {"routes":[{"route":"orders"},{"route":"stripe"}]}`,
		})
		code, out, problems := command(t, nil, append(strings.Fields(line), "--admin", api.url)...)
		if code != cli.ExitFine || !strings.Contains(out+problems, c.want) ||
			c.want == "" && strings.Contains(problems, ";") {
			t.Errorf("%s: %d %s%s", line, code, out, problems)
		}
	}
}
