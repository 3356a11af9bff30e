package main

import (
	"strings"
	"testing"

	"hooklock/cmd/hooklock/cli"
)

func TestTimesAreGivenAndShownInAZone(t *testing.T) {
	api := serveAPI(t, map[string]string{"*": `200 {"executions":[],"audits":[],"nextCursor":""}`})
	for _, list := range []string{"executions list", "audit list"} {
		code, _, problems := command(t, nil, append(strings.Fields(list), "--since", "2026-11-26 02:13", "--until",
			"10m", "--tz", "Europe/Berlin", "--admin", api.url)...)
		if code != cli.ExitFine || !strings.Contains(api.last(), "since=2026-11-26T01%3A13%3A00Z&until=10m") {
			t.Errorf("%s: %d %s, asked %s", list, code, problems, api.last())
		}
	}
	api = serveAPI(t, map[string]string{"GET /v1/executions/" + id: "200 " + endedJSON,
		"*": `404 {"code":"lock_not_found"}`})
	for flags, want := range map[string]string{"": "started     2026-11-21T10:00:00.000Z (",
		"--tz Europe/Berlin": "started     2026-11-21 11:00:00.000 CET ("} {
		_, out, _ := command(t, nil, append([]string{"executions", "get", id, "--admin", api.url},
			strings.Fields(flags)...)...)
		if !strings.Contains(out, want) {
			t.Errorf("%s: no %q in\n%s", flags, want, out)
		}
	}
	for _, wrong := range []string{"--tz Nowhere", "--tz UTC --utc"} {
		if code, _, problems := command(t, nil,
			append([]string{"locks", "list"}, strings.Fields(wrong)...)...); code != cli.ExitUsage ||
			!strings.Contains(problems, "--tz") {
			t.Errorf("%s: %d %s", wrong, code, problems)
		}
	}
}
