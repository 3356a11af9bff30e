package main

import (
	"regexp"
	"strings"
	"testing"

	"hooklock/cmd/hooklock/cli"
)

func TestShowSaysFirstWhatHappenedAndWhatToDo(t *testing.T) {
	failed := executionJSON("evt_1", "FAILED",
		`,"outcome":"unknown","finishedAt":"2026-11-21T10:00:02.000Z","error":{"code":"upstream_failed","detail":"reset"}`)
	refused := `{"executionId":"","workflow":"stripe/acme","route":"stripe","idempotencyKey":"00112233445566aa-k","eventId":"evt_2","status":"REFUSED","steps":[],"duplicates":0,"arrivals":{"counts":{"locked":1},` +
		`"first":{"at":"2026-11-21T10:00:00.000Z","decision":"locked","status":409},"newest":[{"at":"2026-11-21T10:00:00.000Z","decision":"locked","status":409}]}}`
	labelled := strings.Replace(failed, `"eventId"`, `"labels":{"order":"1042"},"eventId"`, 1)
	api := serveAPI(t, map[string]string{
		"GET /v1/executions?event=evt_1&limit=200": `200 {"executions":[` + failed + `],"nextCursor":""}`,
		"GET /v1/executions?event=evt_2&limit=200": `200 {"executions":[` + refused + `],"nextCursor":""}`,
		"GET /v1/executions?limit=200&text=stripe%2F": `200 {"executions":[` + failed + "," + refused +
			`],"nextCursor":""}`,
		"GET /v1/executions/" + id: "200 " + failed,
		"GET /v1/routes":           `200 {"routes":[{"route":"stripe","mode":"enforce","path":"/","onUnknown":"retry","answers":[],"sender":{"preset":"stripe","retriesFor":259200}}]}`,
		"*":                        `404 {"code":"lock_not_found"}`,
		"GET /v1/executions?event=none&limit=200":         `200 {"executions":[],"nextCursor":""}`,
		"GET /v1/executions?limit=200&text=none":          `200 {"executions":[],"nextCursor":""}`,
		"GET /v1/executions?event=order%3A1042&limit=200": `200 {"executions":[],"nextCursor":""}`,
		"GET /v1/executions?limit=200&text=order%3A1042":  `200 {"executions":[` + labelled + `],"nextCursor":"more"}`,
		"GET /v1/executions?label=order%3D1042&limit=50":  `200 {"executions":[` + labelled + `],"nextCursor":""}`,
		"GET /v1/executions?limit=200":                    `200 {"executions":[` + failed + `],"nextCursor":""}`,
		"GET /v1/executions?event=stripe%2F&limit=200":    `200 {"executions":[],"nextCursor":""}`,
	})
	show := func(args ...string) (int, string, string) {
		return command(t, nil, append([]string{"show", "--admin", api.url}, args...)...)
	}
	for event, want := range map[string]string{
		"evt_1": "The outcome is unknown at 2026-11-21T10:00:02.000Z after 2 s: the request was sent, and no whole answer came (reset).\nWhat to do: Check the service for this event: its next delivery runs it again. Stripe sent it again until ",
		"evt_2": "It did not run: refused with 409 at 2026-11-21T10:00:00.000Z, because the workflow was busy with another event.\nWhat to do: If the running event is stuck, cancel it. Stripe sent it again until ",
	} {
		code, out, problems := show(event)
		if code != cli.ExitFine || problems != "" || !strings.HasPrefix(out, want) ||
			!regexp.MustCompile(`(?m)^event +`+event+`$`).MatchString(out) {
			t.Errorf("%d %s\n%s", code, problems, out)
		}
		if _, out, _ := show(event, "-o", "md"); !strings.HasPrefix(out, "**`"+event+"`**") ||
			!strings.Contains(out, "- Page: "+api.url+"/#story?") {
			t.Errorf("%s", out)
		}
		if _, out, _ := show(event, "-o", "json"); !strings.Contains(out, `"eventId": "`+event+`"`) {
			t.Errorf("%s", out)
		}
	}
	for event, page := range map[string]string{"evt_1": "id=" + id,
		"evt_2": "key=00112233445566aa-k&workflow=stripe%2Facme"} {
		if _, out, _ := show(event, "--web"); out != api.url+"/#story?"+page+"\n" {
			t.Errorf("%s", out)
		}
	}
	if code, out, problems := show("stripe/"); code != cli.ExitFine || !strings.HasPrefix(out, "TIME ") ||
		strings.Count(out, "\n") != 3 {
		t.Errorf("several: %d %s%s", code, out, problems)
	}
	if code, _, problems := show("stripe/", "-o", "md"); code != cli.ExitUsage ||
		!strings.Contains(problems, "means several events") {
		t.Errorf("%d %s", code, problems)
	}
	if _, out, problems := show("order:1042"); !strings.HasPrefix(out, "The outcome is unknown") {
		t.Errorf("%s%s", out, problems)
	}
	if _, out, problems := command(t, nil, "events", "--label", "order=1042", "-o", "wide", "--admin",
		api.url); !regexp.MustCompile(`^EXECUTION .* EVENT +WHY\n.* \(order=1042\) `).MatchString(out) {
		t.Errorf("%s%s", out, problems)
	}
	if code, _, problems := show("none"); code != cli.ExitNotFound ||
		!strings.Contains(problems, "no event found for none: tried ") ||
		!strings.Contains(problems, "wrong signature: hooklock signatures") {
		t.Errorf("%d %s", code, problems)
	}
}

func TestTheQueueHasWhatRunsAndThenWhatWaitsInOrder(t *testing.T) {
	first, second := executionJSON("evt_2", "PENDING", ""),
		executionJSON("evt_3", "PENDING",
			`,"parked":{"since":"2026-11-21T10:00:00.000Z","on":"locked","tries":0,"failures":0}`)
	free := strings.Replace(executionJSON("evt_4", "PENDING", ""), "stripe/acme", "other", 1)
	lock := strings.Replace(lockJSON, `"new":1`, `"eventId":"evt_1","endsBy":"upstream.timeout"`, 1)
	blocked := strings.Replace(strings.Replace(lockJSON, "stripe/acme", "orders/1", 1), `"new":1`,
		`"eventId":"evt_9","parked":{"since":"2026-11-21T10:00:01.000Z","on":"failed","tries":2,"failures":2,"blocked":"attempts_exhausted"}`, 1)
	api := serveAPI(t, map[string]string{
		"GET /v1/locks": `200 {"locks":[` + blocked + "," + lock + `],"nextCursor":""}`,
		"GET /v1/executions?status=PENDING": `200 {"executions":[` + free + "," + second + "," + first +
			`],"nextCursor":""}`,
		"GET /v1/locks?prefix=stripe%2F": `200 {"locks":[` + lock + `],"nextCursor":""}`,
		"GET /v1/executions?status=PENDING&workflow=stripe%2F%2A": `200 {"executions":[` + second + "," + first +
			`],"nextCursor":""}`,
		"GET /v1/locks?prefix=stripe":                       `200 {"locks":[` + lock + `],"nextCursor":""}`,
		"GET /v1/executions?status=PENDING&workflow=stripe": `200 {"executions":[],"nextCursor":""}`,
	})
	code, out, problems := command(t, nil, "queue", "--admin", api.url)
	rows := []string{
		`WORKFLOW +POS +EVENT +STATE +AGE +HOLDER +WHAT HAPPENED +RUN`,
		`stripe/acme +- +evt_1 +running +1m15s +host/1 +ends in 58m45s by upstream.timeout +` + id,
		`stripe/acme +1 +evt_2 +waits +\S+ +- +waits for its turn +` + id,
		`stripe/acme +2 +evt_3 +waits +\S+ +- +accepted, waits: locked +` + id, `other +1 +evt_4 .*`,
		`orders/1 +- +evt_9 +blocked +1m15s +host/1 +blocked after 2 tries +` + id,
	}
	if code != cli.ExitFine || problems != "" ||
		!regexp.MustCompile(`^`+strings.Join(rows, `\n`)+`\n$`).MatchString(out) {
		t.Errorf("%d %s\n%s", code, problems, out)
	}
	if _, out, _ := command(t, nil, "queue", "stripe/*", "--admin", api.url); strings.Count(out, "\n") != 4 ||
		strings.Contains(out, "orders") {
		t.Errorf("%s", out)
	}
	if _, out, _ := command(t, nil, "queue", "-o", "json", "--admin",
		api.url); !regexp.MustCompile(
		`(?s)"workflow": "stripe/acme".*"evt_1".*"evt_2".*"evt_3".*"workflow": "orders/1"`).MatchString(out) {
		t.Errorf("%s", out)
	}
	if code, out, problems := command(t, nil, "queue", "stripe", "--admin", api.url); code != cli.ExitFine ||
		out != "" || problems != "nothing runs or waits in stripe; give a workflow, or a pattern: "+
		"hooklock queue 'stripe/*'\n" {
		t.Errorf("%d %s%s", code, out, problems)
	}
}
