package main

import (
	"regexp"
	"strings"
	"testing"

	"hooklock/cmd/hooklock/cli"
)

const (
	blockedJSON = `{"executionId":"` + id +
		`","workflow":"orders/acme","route":"orders","idempotencyKey":"k","eventId":"evt_1","status":"RUNNING","token":42,"holder":"h",` +
		`"attempt":1,"startedAt":"2026-11-21T10:00:00.000Z","steps":[],"duplicates":0,"parked":{"since":"2026-11-21T10:00:01.000Z","on":"unknown","tries":3,"failures":2,` +
		`"lastEvidence":{"outcome":"executed","status":503,"code":"upstream_status","at":"2026-11-21T10:01:00.000Z"},"blocked":"2 of 2 tries failed"}}`
	letterJSON = `{"executionId":"exec_letter","workflow":"orders/acme","route":"orders","idempotencyKey":"k","status":"FAILED","outcome":"executed","attempt":1,` +
		`"startedAt":"2026-11-21T10:00:00.000Z","finishedAt":"2026-11-21T10:00:01.000Z","error":{"code":"skipped","detail":"poison"},"steps":[],"duplicates":0,"requestKept":true,"tries":2}`
)

func TestWhatIsParkedIsListedByState(t *testing.T) {
	api := serveAPI(t, map[string]string{
		"GET /v1/executions?limit=200&parked=true":                                                             `200 {"executions":[` + blockedJSON + `,` + letterJSON + `],"nextCursor":""}`,
		"GET /v1/executions?limit=200&parked=true&state=blocked&workflow=orders%2Fac%2A":                       `200 {"executions":[` + blockedJSON + `],"nextCursor":""}`,
		"GET /v1/executions?limit=200&parked=true&state=dead_letter":                                           `200 {"executions":[],"nextCursor":""}`,
		"GET /v1/executions?event=evt_9&limit=200&outcome=unknown&parked=true&route=orders&since=1h&until=10m": `200 {"executions":[` + letterJSON + `],"nextCursor":""}`,
	})
	at := "--admin=" + api.url
	code, out, problems := command(t, nil, "executions", "list", "--parked", at)
	for _, row := range [][]string{{id, "blocked", "3", "orders/acme", "evt_1", "2 of 2 tries failed"},
		{"exec_letter", "dead letter", "2", "orders/acme", "skipped: poison"}} {
		for _, cell := range row {
			if !strings.Contains(out, cell) {
				t.Errorf("no %s in\n%s", cell, out)
			}
		}
	}
	if code != cli.ExitFine || problems != "" || !strings.HasPrefix(out, "EXECUTION ") ||
		!strings.Contains(out, "NEXT") {
		t.Errorf("%d %s\n%s", code, problems, out)
	}
	if code, out, _ := command(t, nil, "executions", "list", "--blocked", "--workflow", "orders/ac*",
		at); code != cli.ExitFine || strings.Count(out, "\n") != 2 {
		t.Errorf("%d %s", code, out)
	}
	if code, _, problems := command(t, nil, "executions", "list", "--dead-letters", at); code != cli.ExitFine ||
		!strings.Contains(problems, "no dead letters") {
		t.Errorf("%d %s", code, problems)
	}
	filters := []string{"executions", "list", "--parked", "--route=orders", "--outcome=unknown", "--event=evt_9",
		"--since=1h", "--until=10m", at}
	if code, out, problems := command(t, nil, filters...); code != cli.ExitFine ||
		!strings.Contains(out, "exec_letter") {
		t.Errorf("%d %s%s", code, out, problems)
	}
	for _, wrong := range [][]string{{"--blocked", "--dead-letters"}, {"--parked", "--status", "FAILED"},
		{"--blocked", "--decision", "locked"}} {
		if code, _, problems := command(t, nil,
			append([]string{"executions", "list", at}, wrong...)...); code != cli.ExitUsage {
			t.Errorf("%v: %d %s", wrong, code, problems)
		}
	}
}

func TestOneExecutionShowsItsTriesAndWhatIsKnownOfThem(t *testing.T) {
	api := serveAPI(t, map[string]string{"GET /v1/executions/" + id: "200 " + blockedJSON,
		"GET /v1/executions/exec_letterletterletterletterletterle": "200 " + letterJSON})
	_, out, _ := command(t, nil, "executions", "get", id, "--admin", api.url)
	for _, want := range []string{"3, of which 2 failed", "for unknown", "executed, answered 503: upstream_status",
		"2 of 2 tries failed"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if _, out, _ = command(t, nil, "executions", "get", "exec_letterletterletterletterletterle", "--admin",
		api.url); !strings.Contains(out, "kept: it can be run again") {
		t.Errorf("%s", out)
	}
}

func TestRunSkipAndRerunGoToOneExecution(t *testing.T) {
	letter, other := "exec_"+strings.Repeat("l", 32), "exec_"+strings.Repeat("o", 32)
	api := serveAPI(t, map[string]string{
		"POST /v1/executions/" + id + "/run": "200 " + blockedJSON, "POST /v1/executions/" + id + "/skip": "202 " +
			strings.Replace(blockedJSON, "RUNNING", "CANCEL_REQUESTED", 1),
		"POST /v1/executions/" + letter + "/rerun": "200 " + blockedJSON,
		"*": `404 {"code":"request_not_kept","detail":"not kept"}`,
	})
	at := "--admin=" + api.url
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"run", id}, id + " is tried now", 0},
		{[]string{"skip", id}, id + " is to stop", 0},
		{[]string{"rerun", letter}, "retrying as " + id + ", last in the queue of orders/acme", 0},
		{[]string{"rerun", other}, "request_not_kept", cli.ExitNotFound},
		{[]string{"request", other}, "request_not_kept", cli.ExitNotFound},
	} {
		args := append([]string{"executions", at}, c.args...)
		if c.args[0] != "request" {
			args = append(args, "--reason", "repaired")
		}
		code, out, problems := command(t, nil, args...)
		if code != c.code || !strings.Contains(out+problems, c.want) {
			t.Errorf("%v: %d %s%s", c.args, code, out, problems)
		}
		if c.args[0] != "request" && !strings.Contains(api.last(), `{"reason":"repaired"}`) {
			t.Errorf("%s", api.last())
		}
	}
	for _, wrong := range [][]string{
		{"run"}, {"run", id}, {"run", id, "--blocked", "--reason", "r"}, {"run", id, "other", "--reason", "r"},
		{"run", "--label=", "--blocked", "--reason", "r"}, {"rerun", id, "--dry-run"}, {"rerun", "--dead-letters"},
		{"request"},
	} {
		if code, _, problems := command(t, nil,
			append([]string{"executions", at}, wrong...)...); code != cli.ExitUsage {
			t.Errorf("%v: %d %s", wrong, code, problems)
		}
	}
}

func TestADryRunShowsAllThatMatchPartByPart(t *testing.T) {
	item := `{"executionId":"` + id +
		`","workflow":"orders/acme","route":"orders","state":"dead_letter","since":"2026-11-21T10:00:01.000Z","result":"would"}`
	api := serveAPI(t, map[string]string{
		"POST /v1/executions/rerun": `200 {"matched":1,"done":0,"refused":0,"executions":[` + item +
			`],"nextCursor":""}`,
		"*": `200 {"matched":2,"done":0,"refused":0,"executions":[],"nextCursor":"c"}`,
	})
	at := "--admin=" + api.url
	if _, out, problems := command(t, nil, "executions", "rerun", "--workflow", "w", "--dry-run",
		at); !strings.Contains(out, "would rerun") ||
		!strings.Contains(problems, "1 match, nothing changed (dry run)") {
		t.Errorf("%s%s", out, problems)
	}
	if _, out, _ := command(t, nil, "executions", "rerun", "--workflow", "w", "--dry-run", "-o", "json",
		at); !strings.Contains(out, `"nextCursor"`) || !strings.Contains(out, id) {
		t.Errorf("%s", out)
	}
	if want := `{"filter":{"workflow":"w"},"dryRun":true}`; !strings.HasSuffix(api.last(), want) {
		t.Errorf("asked %s", api.last())
	}
	command(t, nil, "retry", "--since", "2026-11-26 02:13", "--until", "1h", "--tz", "Europe/Berlin", "--dry-run", at)
	if want := regexp.MustCompile(
		`"filter":\{"since":"2026-11-26T01:13:00Z","until":"2\S+Z"\},"dryRun":true\}$`); !want.MatchString(api.last()) {
		t.Errorf("asked %s", api.last())
	}
	if code, _, problems := command(t, nil, "executions", "skip", "--workflow", "w", "--dry-run",
		at); code == cli.ExitFine || !strings.Contains(problems, "same cursor twice") {
		t.Errorf("%d %s", code, problems)
	}
}
