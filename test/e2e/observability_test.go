package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"hooklock/test/testkit"
)

const observability = "../../deploy/observability/"

// exported is what a page of metrics has: the values of each label of each series name.
type exported map[string]map[string]map[string]bool

var (
	sampleIn = regexp.MustCompile(`(?m)^([a-z_][a-z0-9_]*)(?:\{(.*)\})? \S+$`)
	pairIn   = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)
)

func (e exported) read(page string) {
	for _, m := range sampleIn.FindAllStringSubmatch(page, -1) {
		if e[m[1]] == nil {
			e[m[1]] = map[string]map[string]bool{"job": nil, "instance": nil} // which whoever scrapes adds
		}
		for _, p := range pairIn.FindAllStringSubmatch(m[2], -1) {
			if e[m[1]][p[1]] == nil {
				e[m[1]][p[1]] = map[string]bool{}
			}
			e[m[1]][p[1]][p[2]] = true
		}
	}
}

// busyMetrics is the page of metrics of a process of which everything was asked, so that it shows
// all that it can.
func busyMetrics(t *testing.T) string {
	t.Helper()
	h := own(t, shared.config(ownPrefix()[1:], "")+
		"  - {name: signed, path: /signed, verify: {scheme: token, header: X-Token, secret_env: SIGNED}}\n"+
		"  - {name: parks, path: /parks, park: true}\n  - {name: gitlab, path: /gitlab, preset: gitlab, workflow: gitlab, verify: {secret_env: SIGNED}}\n"+
		"  - {name: ordered, path: /ordered, order: {by: \"{body.at}\"}}\n  - {name: limited, path: /limited, uses: [erp]}\n"+
		"  - {name: asks, path: /asks, idempotency: {on_unknown: ask}, ask: {url: /x, executed: {status: 200}, not_executed: {status: 404}}}\n"+
		"park_store: {single_member: true}\nlimits: {shared: {erp: 2}}\n", "SIGNED="+planted)
	if got := testkit.Post(t, h.Addr, "/limited", "{}", key("limited")); got.Status != 200 {
		t.Fatalf("%+v", got)
	}
	path := at(t, "wait")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, h.Addr, path, "{}", key("1"))
	work.await(t)
	second := testkit.GoPost(t, h.Addr, path, "{}", key("2"))
	testkit.Until(t, "one waits", func() bool { return strings.Contains(h.Metrics(t), "\nhooklock_lock_waiting 1\n") })
	work.answer <- testkit.OK("")
	testkit.Receive(t, "the first answer", first)
	work.answer <- "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"
	testkit.Receive(t, "the second answer", second)
	drained(t, h, "route:plain")
	testkit.Until(t, "what needs attention is counted", func() bool {
		return strings.Contains(h.Metrics(t), "\nhooklock_attention_items{")
	})
	return h.Metrics(t)
}

// busy is what such a process shows, beside what its etcd shows.
func busy(t *testing.T) exported {
	t.Helper()
	all := exported{}
	all.read(busyMetrics(t))
	all["db_client_operation_duration_seconds_count"]["error_type"] = nil // only a failing etcd makes one
	res, err := http.Get(shared.etcd.Endpoint + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	all.read(string(text))
	return all
}

var (
	matchers = regexp.MustCompile(`([a-z_][a-z0-9_]*)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z_]+)(=~|!~|!=|=)"([^"]*)"`)
	grouping = regexp.MustCompile(`(?:by|on|without|ignoring|group_left|group_right) \(([^)]*)\)`)
	metricIn = regexp.MustCompile(`\b(?:hooklock|http|db|go|etcd|process|target)_[a-z0-9_]+\b`)
)

// check says what a query asks for that is not there.
func (e exported) check(t *testing.T, where, query string) {
	t.Helper()
	labels := map[string]bool{"le": true}
	plain := grouping.ReplaceAllString(query, "")
	for _, m := range matchers.FindAllStringSubmatch(plain, -1) {
		for _, p := range matcher.FindAllStringSubmatch(m[2], -1) {
			values, there := e[m[1]][p[1]]
			if !there {
				t.Errorf("%s: %s has no label %s", where, m[1], p[1])
			}
			for value := range strings.SplitSeq(p[3], "|") {
				if values != nil && value != "" && regexp.MustCompile(`^[a-z_]+$`).MatchString(value) &&
					!values[value] {
					t.Errorf("%s: %s never has %s=%q", where, m[1], p[1], value)
				}
			}
		}
	}
	asked := metricIn.FindAllString(matchers.ReplaceAllString(plain, "$1"), -1)
	if len(asked) == 0 {
		t.Errorf("%s: asks for nothing: %s", where, query)
	}
	for _, metric := range asked {
		if e[metric] == nil {
			t.Errorf("%s: nobody shows %s", where, metric)
		}
		for label := range e[metric] {
			labels[label] = true
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(query, -1) {
		for label := range strings.SplitSeq(g[1], ",") {
			if !labels[strings.TrimSpace(label)] {
				t.Errorf("%s: groups by %s, which nothing in it has: %s", where, label, query)
			}
		}
	}
}

// grafana is what matters of the dashboard.
type grafana struct {
	Panels []struct {
		ID                       int
		Title, Type, Description string
		Targets                  []struct{ Expr string }
	}
	Annotations struct{ List []struct{ Name, Expr string } }
	Templating  struct {
		List []struct {
			Name, Type string
			Definition string
		}
	}
}

func readDashboard(t *testing.T) *grafana {
	t.Helper()
	text, err := os.ReadFile(observability + "grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	d := new(grafana)
	if err := json.Unmarshal(text, d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEachPanelHasADescriptionAndAnIDOfItsOwn(t *testing.T) {
	t.Parallel()
	ids := map[int]string{}
	for _, p := range readDashboard(t).Panels {
		if other, twice := ids[p.ID]; twice {
			t.Errorf("%s and %s have one ID", p.Title, other)
		}
		ids[p.ID] = p.Title
		if p.Type != "row" && p.Description == "" {
			t.Errorf("%s has no description", p.Title)
		}
		for _, target := range p.Targets {
			expr := grouping.ReplaceAllString(target.Expr, "")
			for _, at := range metricIn.FindAllStringIndex(expr, -1) {
				rest := expr[at[1]:]
				selector, _, _ := strings.Cut(rest, "}")
				if !strings.HasPrefix(rest, "{") || !strings.Contains(selector, `job=~"$`) ||
					!strings.Contains(selector, `instance=~"$`) {
					t.Errorf("%s asks everybody: %s", p.Title, target.Expr)
				}
			}
		}
	}
}

// dashboard returns the queries of the dashboard by where they stand.
func dashboard(t *testing.T) map[string]string {
	t.Helper()
	d := readDashboard(t)
	queries := map[string]string{}
	for _, p := range d.Panels {
		for i, target := range p.Targets {
			queries[fmt.Sprint(p.Title, " ", i)] = target.Expr
		}
	}
	for _, a := range d.Annotations.List {
		queries["annotation "+a.Name] = a.Expr
	}
	asks := regexp.MustCompile(`^label_values\((.*), ([a-z_]+)\)$`)
	for _, v := range d.Templating.List {
		if m := asks.FindStringSubmatch(v.Definition); m != nil {
			queries["variable "+v.Name] = "count by (" + m[2] + ") (" + m[1] + ")"
		} else if v.Type == "query" {
			t.Errorf("variable %s: %s", v.Name, v.Definition)
		}
	}
	filled := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$instance", ".*", "$route", ".*",
		"$store_job", ".*", "$store", ".*")
	for where, q := range queries {
		queries[where] = filled.Replace(q)
	}
	return queries
}

// rules are the alerts by name.
func rules(t *testing.T) map[string]alert {
	t.Helper()
	text, err := os.ReadFile(observability + "alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []alert } }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	all := map[string]alert{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			all[r.Alert] = r
		}
	}
	return all
}

type alert struct {
	Alert, Expr string
	Annotations map[string]string
}

func TestTheDashboardAndTheAlertsAskForWhatTheProgramShows(t *testing.T) {
	t.Parallel()
	all := busy(t)
	queries := dashboard(t)
	for name, r := range rules(t) {
		queries["alert "+name] = r.Expr
	}
	if len(queries) < 40 {
		t.Errorf("%d queries", len(queries))
	}
	for _, where := range slices.Sorted(maps.Keys(queries)) {
		all.check(t, where, queries[where])
	}
}

var testsOfAlerts = []string{"alerts_test.yaml", "alerts_week_test.yaml"}

func TestEachAlertHasItsSectionInTheRunbook(t *testing.T) {
	t.Parallel()
	book, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, name := range testsOfAlerts {
		text, err := os.ReadFile(observability + name)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(text)
	}
	for name, r := range rules(t) {
		if !strings.HasPrefix(r.Annotations["runbook"], "docs/runbook.md#"+strings.ToLower(name)+" - ") {
			t.Errorf("%s: runbook %q", name, r.Annotations["runbook"])
		}
		if !strings.Contains(string(book), "\n## "+name+"\n") {
			t.Errorf("docs/runbook.md has no section %s", name)
		}
		if !strings.Contains(tests.String(), name) {
			t.Errorf("no test of the alerts has %s", name)
		}
	}
}

// promtool runs Prometheus's own checker.
func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	program := testkit.Program(t, "promtool") // Debian has it in the package prometheus
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Stdin = observability, strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestPrometheusTakesTheAlertsAndTheyFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	promtool(t, "", "check", "rules", "alerts.yaml")
	promtool(t, "", append([]string{"test", "rules"}, testsOfAlerts...)...)
}

func TestPrometheusUnderstandsTheQueriesOfTheDashboard(t *testing.T) {
	t.Parallel()
	type record struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var records []record
	for where, q := range dashboard(t) {
		records = append(records, record{fmt.Sprintf("q%x", where), q})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": records}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "check", "rules", file)
}

func TestPrometheusFindsNothingWrongWithTheMetrics(t *testing.T) {
	t.Parallel()
	h := own(t, shared.config("linted", ""))
	testkit.Post(t, h.Addr, at(t, "plain"), "{}", key("1"))
	// OpenTelemetry's name, which promtool takes for a histogram's
	page := regexp.MustCompile(`(?m)^.*\bgo_goroutine_count\b.*\n`).ReplaceAllString(h.Metrics(t), "")
	promtool(t, page, "check", "metrics")
}
