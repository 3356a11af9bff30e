package main

import (
	"strings"
	"testing"

	"hooklock/cmd/hooklock/cli"
)

// an execution in JSON, with what a test adds to it.
func executionJSON(event, status, more string) string {
	return `{"executionId":"` + id +
		`","workflow":"stripe/acme","route":"stripe","idempotencyKey":"00112233445566aa-k","eventId":"` + event +
		`","status":"` + status +
		`","startedAt":"2026-11-21T10:00:00.000Z","steps":[],"duplicates":0` + more + `}`
}

func TestEventsSayInAFewWordsWhatHappened(t *testing.T) {
	const finished = `,"finishedAt":"2026-11-21T10:00:02.000Z"`
	const refused = `"arrivals":{"counts":{"locked":1},"first":{"at":"2026-11-21T10:00:00.000Z","decision":"locked","status":409},"newest":[{"at":"2026-11-21T10:00:00.000Z","answeredAt":"2026-11-21T10:00:02.500Z","decision":"locked","status":409,` +
		`"behind":{"eventId":"evt_0","startedAt":"2026-11-21T10:00:00.000Z","finishedAt":"2026-11-21T10:00:04.000Z"}}]}`
	const failed = `,"failedAnswers":[{"at":"2026-11-21T10:00:01.000Z","status":500,"text":"database\nis locked"}]`
	for want, x := range map[string]string{
		"SUCCESS  200, attempt 2, 3 duplicates": strings.Replace(executionJSON("evt_1",
			"SUCCESS", finished+`,"outcome":"executed","attempt":2,"response":{"status":200,"bytes":2,"kept":true}`),
			`"duplicates":0`, `"duplicates":3`, 1),
		"FAILED  500": executionJSON("evt_1", "FAILED",
			finished+
				`,"outcome":"executed","response":{"status":500,"bytes":2,"kept":false},"error":{"code":"upstream_status","detail":"the upstream answered 500"}`),
		"FAILED  outcome unknown: upstream_failed: reset": executionJSON("evt_1", "FAILED",
			finished+`,"outcome":"unknown","error":{"code":"upstream_failed","detail":"reset"}`),
		"FAILED  not sent: upstream_unreachable": executionJSON("evt_1", "FAILED",
			finished+`,"outcome":"not_executed","error":{"code":"upstream_unreachable"}`),
		"FAILED  dead letter, 3 tries, last 500: database is locked": executionJSON("evt_1", "FAILED",
			finished+failed+`,"requestKept":true,"tries":3,"error":{"code":"attempts_exhausted"}`),
		"ABORTED  cancelled by ops: by mistake": executionJSON("evt_1", "ABORTED",
			finished+`,"abortedBy":"ops","abortReason":"by mistake"`),
		"ABORTED  replaced by a newer event": executionJSON("evt_1", "ABORTED",
			finished+`,"supersededBy":"exec_2"`),
		"CANCEL_REQUESTED  cancel asked by ops: by mistake": executionJSON("evt_1",
			"CANCEL_REQUESTED", `,"abortedBy":"ops","abortReason":"by mistake"`),
		"RUNNING  running": executionJSON("evt_1", "RUNNING", ""),
		"RUNNING  held":    executionJSON("evt_1", "RUNNING", `,"held":true`),
		"RUNNING  held, attempt 2": executionJSON("evt_1", "RUNNING",
			`,"held":true,"attempt":2,"parked":{"since":"2026-11-21T10:00:00.000Z","on":"locked","tries":1,"failures":0}`),
		"PENDING  waits for its turn": executionJSON("evt_1", "PENDING", ""),
		"PENDING  accepted, waits: locked": executionJSON("evt_1", "PENDING",
			`,"parked":{"since":"2026-11-21T10:00:00.000Z","on":"locked","tries":0,"failures":0}`),
		"RUNNING  accepted, 1 try, last 500: database is locked, next in 0 s": executionJSON("evt_1", "RUNNING",
			failed+
				`,"parked":{"since":"2026-11-21T10:00:00.000Z","on":"failed","tries":1,"failures":1,"nextAttempt":"2026-11-21T10:00:10.000Z"}`),
		"BLOCKED  blocked after 2 tries, last 503": executionJSON("evt_1", "RUNNING",
			`,"parked":{"since":"2026-11-21T10:00:00.000Z","on":"failed","tries":2,"failures":2,"blocked":"attempts_exhausted","lastEvidence":{"outcome":"executed","status":503,"at":"2026-11-21T10:00:01.000Z"}}`),
		"REFUSED  409 locked, busy with evt_0 (4 s)":                         `{"executionId":"","workflow":"stripe/acme","eventId":"evt_1","status":"REFUSED","steps":[],"duplicates":0,` + refused + `}`,
		"REFUSED  409 locked, busy with evt_0 (4 s), and did not come again": `{"executionId":"","workflow":"stripe/acme","eventId":"evt_1","status":"REFUSED","startedAt":"2026-11-21T10:00:00.000Z","lostAt":"2026-11-21T10:10:00.000Z","steps":[],"duplicates":0,` + refused + `}`,
		"RELEASED  allowed again by ops: asked the bank":                     `{"executionId":"","workflow":"stripe/acme","eventId":"evt_1","status":"RELEASED","steps":[],"duplicates":0,"released":{"executionId":"exec_b","status":"FAILED","outcome":"unknown","by":"ops","reason":"asked the bank","at":"2026-11-21T10:00:00.000Z"}}`,
	} {
		api := serveAPI(t, map[string]string{
			"GET /v1/executions?limit=50": `200 {"executions":[` + x + `],"nextCursor":""}`,
			"GET /v1/executions?limit=1":  `200 {"executions":[` + x + `],"nextCursor":"c"}`,
		})
		code, out, problems := command(t, nil, "events", "--admin", api.url)
		if code != cli.ExitFine || problems != "" {
			t.Errorf("%d %s%s", code, out, problems)
		}
		if _, _, problems := command(t, nil, "ls", "--limit", "1", "--admin",
			api.url); problems != "1 shown; all: --limit 0; next: --cursor c\n" {
			t.Errorf("%s", problems)
		}
		head, row, _ := strings.Cut(out, "\n")
		if strings.Join(strings.Fields(head), " ") != "TIME EVENT STATUS WHAT HAPPENED WORKFLOW DURATION RUN" ||
			!strings.Contains(strings.Join(strings.Fields(row), " "), "2026-11-21T10:00:00.000Z evt_1 "+
				strings.Join(strings.Fields(want), " ")+" stripe/acme ") {
			t.Errorf("no %q in\n%s", want, out)
		}
		if strings.HasPrefix(want, "REFUSED") && !strings.HasSuffix(strings.Join(strings.Fields(row), " "),
			" stripe/acme 2.5s -") {
			t.Errorf("not how long the sender waited for the refusal:\n%s", out)
		}
	}
}

func TestAnActionTakesTheIDOfAnEvent(t *testing.T) {
	const hook = "477210923/72d3162e-cc78-11e3-81ab-4c9367dc0958"
	const guid = "72D3162E-cc78-11e3-81ab-4c9367dc0958"
	page := func(all ...string) string {
		return `200 {"executions":[` + strings.Join(all, ",") + `],"nextCursor":""}`
	}
	other := strings.Replace(executionJSON("evt_2", "RUNNING", ""), id, "exec_"+strings.Repeat("o", 32), 1)
	api := serveAPI(t, map[string]string{
		"GET /v1/executions?event=evt_1": page(executionJSON("evt_1", "RUNNING", "")),
		"GET /v1/executions?event=evt_2": page(executionJSON("evt_2", "RUNNING", ""), other),
		"GET /v1/executions?event=evt_3": page(
			`{"executionId":"","workflow":"w","eventId":"evt_3","status":"REFUSED","steps":[],"duplicates":0}`),
		"GET /v1/executions?text=" + guid: page(executionJSON(hook, "RUNNING", ""),
			strings.Replace(executionJSON("a"+hook+"9", "RUNNING", ""), id, "exec_"+strings.Repeat("o", 32), 1)),
		"GET /v1/executions?text=evt":               page(executionJSON("evt_1", "RUNNING", "")),
		"GET /v1/executions/" + id:                  "200 " + executionJSON("evt_1", "RUNNING", ""),
		"POST /v1/executions/" + id + "/cancel":     "202 " + executionJSON("evt_1", "CANCEL_REQUESTED", ""),
		"POST /v1/executions/" + id + "/run":        "200 " + executionJSON("evt_1", "RUNNING", ""),
		"POST /v1/executions/" + id + "/skip":       "200 " + executionJSON("evt_1", "RUNNING", ""),
		"POST /v1/executions/" + id + "/rerun":      "201 " + executionJSON("evt_1", "PENDING", ""),
		"DELETE /v1/executions/" + id + "?reason=r": "200 " + executionJSON("evt_1", "FAILED", ""),
		"*": page(),
	})
	at := []string{"--reason", "r", "--admin", api.url}
	for _, names := range [][]string{{"cancel"}, {"rerun", "retry"}, {"forget", "allow"}, {"run", "try"}, {"skip"}} {
		for _, name := range names {
			for _, line := range []string{name, "executions " + name, "ex " + name} {
				if code, out, problems := command(t, nil,
					append(append(strings.Fields(line), "evt_1"), at...)...); code != cli.ExitFine {
					t.Errorf("%s: %d %s%s", line, code, out, problems)
				}
			}
		}
	}
	if code, _, problems := command(t, nil, append([]string{"cancel", guid}, at...)...); code != cli.ExitFine {
		t.Errorf("a part of an event's ID: %d %s", code, problems)
	}
	for event, want := range map[string]struct {
		code int
		says string
	}{
		"evt_2": {cli.ExitUsage, "several events are called evt_2; give one of their executions: " + id},
		"evt_3": {cli.ExitNotFound, "evt_3 has no execution; hooklock show evt_3 says why"},
		"evt":   {cli.ExitNotFound, "no event found for evt"}, // the beginning of an ID may be that of another event
	} {
		if code, _, problems := command(t, nil, append([]string{"cancel", event}, at...)...); code != want.code ||
			!strings.Contains(problems, want.says) {
			t.Errorf("%s: %d %s", event, code, problems)
		}
	}
	if code, out, problems := command(t, nil, "executions", "get", "evt_1", "--admin", api.url); code != cli.ExitFine ||
		!strings.Contains(out, id) {
		t.Errorf("%d %s%s", code, out, problems)
	}
}

// The server looks at so many records for a page, whether one of them matches or not.
func TestASearchGoesOnBehindAnEmptyPage(t *testing.T) {
	api := serveAPI(t, map[string]string{
		"GET /v1/executions?event=evt_1&limit=200": `200 {"executions":[],"nextCursor":""}`,
		"GET /v1/executions?limit=200&text=evt_1":  `200 {"executions":[],"nextCursor":"c2"}`,
		"GET /v1/executions?cursor=c2&limit=200&text=evt_1": `200 {"executions":[` +
			executionJSON("evt_11", "RUNNING", "") + `],"nextCursor":"c3"}`,
		"GET /v1/executions?cursor=c3&limit=200&text=evt_1": `200 {"executions":[` +
			executionJSON("evt_12", "RUNNING", "") + `],"nextCursor":""}`,
	})
	if code, out, problems := command(t, nil, "executions", "find", "evt_1", "--admin",
		api.url); code != cli.ExitFine || !strings.Contains(out, "evt_11") || !strings.Contains(out, "evt_12") {
		t.Errorf("%d %s%s", code, out, problems)
	}
}

func TestAnEventIsFoundByWhatAListShowsOfItsID(t *testing.T) {
	api := serveAPI(t, map[string]string{
		"GET /v1/executions?limit=200&text=evt_1Q": `200 {"executions":[` + executionJSON("evt_1QRefused9pLd",
			"RUNNING", "") + "," + executionJSON("evt_1QOther", "RUNNING", "") + `],"nextCursor":""}`,
		"GET /v1/executions?limit=200": `200 {"executions":[` + executionJSON("evt_1QRefused9pLd",
			"RUNNING", "") + "," + executionJSON("evt_1QOther", "RUNNING", "") + `],"nextCursor":""}`,
		"*": `200 {"executions":[],"nextCursor":""}`,
	})
	for _, text := range []string{"evt_1Q…9pLd", "9pLd", "exec_…9pLd", "…used9pLd"} {
		if code, out, problems := command(t, nil, "executions", "find", text, "--admin",
			api.url); code != cli.ExitFine || strings.Count(out, "exec_") != 1 ||
			!strings.Contains(out, "evt_1QRefused9pLd") {
			t.Errorf("%s: %d %s%s", text, code, out, problems)
		}
	}
	if _, out, _ := command(t, nil, "executions", "find", id[len(id)-8:], "--admin", api.url); strings.Count(out,
		"exec_") != 2 {
		t.Errorf("the end of an execution's ID:\n%s", out)
	}
	if code, _, problems := command(t, nil, "executions", "find", "Ld", "--admin", api.url); code != cli.ExitNotFound ||
		!strings.Contains(problems, "no event found for Ld: tried event IDs") {
		t.Errorf("%d %s", code, problems)
	}
}
