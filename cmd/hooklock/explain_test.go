package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/cmd/hooklock/cli"
)

// TestRecordedDeliveriesAreExplainedAtEachRouteAndAgainstAnotherConfiguration: a change of a
// template is tried on what came before it is in force.
func TestRecordedDeliveriesAreExplainedAtEachRouteAndAgainstAnotherConfiguration(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const routes = `
upstream: http://127.0.0.1:1
park_store: {inline: 20B, single_member: true}
routes:
  - {name: orders, path: "/orders/{shop}", workflow: "orders/{path.shop}", event_id: "{body.id}", on_missing_event_id: reject, park: {enabled: true}}
  - {name: mail, path: /mail, workflow: "mail/{body.to}", event_id: "{header.X-Mail}", verify: {scheme: token, header: X-Token, secret_env: S}}
`
	old := write("old.yaml", routes)
	renamed := write("new.yaml", strings.Replace(strings.Replace(routes, "orders/{path.shop}", "shops/{path.shop}", 1),
		"{body.to}", "{body.recipient}", 1))
	recorded := filepath.Join(dir, "recorded")
	write("recorded/a.http", "POST /orders/acme HTTP/1.1\r\nHost: h\r\nContent-Length: 99\r\n\r\n"+
		`{"id":"evt_1","text":"too long to park"}`)
	write("recorded/b.json", `{"id":"evt_2","to":"x"}`)
	write("recorded/.hidden", "no delivery")
	env := []string{"S=secret"}

	code, out, problems := command(t, env, "explain", "--all-routes", "--config", old, recorded)
	wants := []string{
		"FILE ROUTE WORKFLOW EVENT REFUSED", recorded + "/a.http orders orders/acme evt_1 -",
		recorded + "/b.json orders orders/shop evt_2 -",
		recorded + "/b.json mail mail/x by its payload 401 signature_invalid",
	}
	if got := lines(out); code != cli.ExitFine || problems != "" ||
		strings.Join(got, "\n") != strings.Join(wants, "\n") {
		t.Errorf("%d %s\n%s", code, problems, strings.Join(got, "\n"))
	}

	code, out, problems = command(t, env, "explain", "--all-routes", "--config", renamed, "--against", old, recorded)
	wants = []string{
		"FILE ROUTE WHAT OLD NEW", recorded + "/a.http orders workflow orders/acme shops/acme",
		recorded + "/b.json orders workflow orders/shop shops/shop",
		recorded + "/b.json mail workflow mail/x -", recorded + "/b.json mail event by its payload -",
		recorded + "/b.json mail refused 401 signature_invalid 401 signature_invalid, 400 workflow_missing",
	}
	got := strings.Join(lines(out), "\n")
	for _, want := range wants {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if code != cli.ExitFailed || !strings.Contains(problems, "3 deliveries: 3 decided differently") {
		t.Errorf("%d %s", code, problems)
	}
	if code, out, problems := command(t, env, "explain", "--all-routes", "--config", old, "--against", old,
		recorded); code != cli.ExitFine || out != "" ||
		!strings.Contains(problems, "3 deliveries: 0 decided differently") {
		t.Errorf("%d %s%s", code, out, problems)
	}
	for _, args := range [][]string{
		{"--all-routes"}, {"--all-routes", "--path", "/x", recorded}, {recorded, "--path", "/x"},
		{"--against", old, "--path", "/x"}, {"--all-routes", filepath.Join(dir, "none")},
		{"--all-routes", "-H", "no colon", recorded},
	} {
		if code, out, problems := command(t, env,
			append([]string{"explain", "--config", old}, args...)...); code != cli.ExitUsage || out != "" {
			t.Errorf("%q: %d %s%s", args, code, out, problems)
		}
	}
}

// lines returns the lines of a table with one space between its columns.
func lines(table string) (all []string) {
	for line := range strings.Lines(table) {
		all = append(all, strings.Join(strings.Fields(line), " "))
	}
	return all
}
