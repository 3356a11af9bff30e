package telemetry

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy"
	"hooklock/proxy/sender"
	"hooklock/proxy/wire"
	"hooklock/test/testkit"
)

var update = flag.Bool("update", false, "write docs/metrics.md anew")

// family is one metric as the page shows it.
type family struct {
	name, kind, help string
	labels           map[string]bool
}

// families reads a page.
func families(page string) []*family {
	var all []*family
	label := regexp.MustCompile(`([a-zA-Z_]+)="`)
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "# HELP "):
			name, help, _ := strings.Cut(strings.TrimPrefix(line, "# HELP "), " ")
			all = append(all, &family{name: name, help: help, labels: map[string]bool{}})
		case strings.HasPrefix(line, "# TYPE "):
			_, all[len(all)-1].kind, _ = strings.Cut(strings.TrimPrefix(line, "# TYPE "), " ")
		default:
			for _, m := range label.FindAllStringSubmatch(line, -1) {
				if m[1] != "le" {
					all[len(all)-1].labels[m[1]] = true
				}
			}
		}
	}
	return all
}

// everything makes each metric appear, with each of its labels.
func everything(t *testing.T) *rig {
	t.Helper()
	r := open(t)
	r.Delivered(full())
	failed := executed()
	failed.Decision, failed.Status, failed.UpstreamStatus, failed.Scheme, failed.Signature = idem.DecisionUpstreamFailed, 502, 0, "stripe", "valid"
	failed.Stages.Wait = proxy.Stretch{From: began, For: time.Second}
	r.Delivered(failed)
	r.Operation("txn", "etcd-0", "2379", time.Millisecond, "UNAVAILABLE")
	r.WatchListener("listen", 1, func() wire.Counts { return wire.Counts{} })
	zero := func() (int, time.Time) { return 0, time.Time{} }
	if err := r.Watch(Watched{Active: zero, Held: zero, Waiting: zero, Remaining: func() time.Duration { return 0 }, Memory: wire.NewBudget(0),
		Paused: func() []idem.PauseState {
			return []idem.PauseState{{Pause: idem.Pause{Scope: idem.PauseScope{Route: "stripe"}}}}
		},
		Routes: func() []RouteHealth {
			return []RouteHealth{{Route: "gitlab", Last: time.Unix(1, 0), Limits: []SenderLimit{{Limit: "4_in_a_row"}}}}
		}, Shed: func() int64 { return 0 }, Audits: func() int64 { return 0 }, Slots: func() []idem.SlotCount { return []idem.SlotCount{{Limit: "erp", Taken: 1, Waiting: 1}} }}); err != nil {
		t.Fatal(err)
	}
	if err := r.WatchUpstream(func() wire.ReuseState { return wire.ReuseState{} }); err != nil {
		t.Fatal(err)
	}
	if err := r.WatchLog(func() int64 { return 0 }); err != nil {
		t.Fatal(err)
	}
	return r
}

// values says which words a label has, where it is a closed set of ours.
func values(metric, label string) []string {
	switch metric + " " + label {
	case "hooklock_deliveries_total decision":
		return texts(decisions)
	case "hooklock_lock_acquisitions_total result":
		return acquisitionResults
	case "hooklock_idempotency_lookups_total result":
		return lookupResults
	case "hooklock_executions_total outcome":
		return outcomes
	case "hooklock_lock_losses_total reason":
		return texts([]proxy.Loss{proxy.LossSession, proxy.LossUnheard, proxy.LossReleased})
	case "hooklock_key_extractions_total part":
		return []string{naming.PartWorkflow, naming.PartEventID}
	case "hooklock_key_extractions_total result":
		return texts(partResults)
	case "hooklock_order_events_total result":
		return orderResults
	case "hooklock_signature_verifications_total result":
		return signatureResults
	case "hooklock_signature_verifications_total scheme":
		return []string{"verify.scheme of the route"}
	case "hooklock_config_reloads_total result":
		return []string{reloaded, refused}
	case "hooklock_route_info mode":
		return []string{"enforce", "observe"}
	case "hooklock_connections_open listener", "hooklock_connections_idle listener", "hooklock_connections_limit listener", "hooklock_connections_refused_total listener",
		"hooklock_connections_closed_idle_total listener", "hooklock_accept_failures_total listener":
		return []string{"listen, admin.listen, health.listen"}
	case "hooklock_deliveries_total would":
		return []string{"a decision, or empty"}
	}
	return nil
}

func texts[T ~string](list []T) []string {
	var all []string
	for _, v := range list {
		all = append(all, string(v))
	}
	return all
}

const preamble = `# Metrics

Generated from the program: ` + "`go test ./proxy/telemetry -run Documented -update`" + ` writes this page, and a test keeps it equal to what the program shows.

They are on ` + "`/metrics`" + ` of ` + "`admin.listen`" + ` and ` + "`health.listen`" + `, as Prometheus text or, where asked for, as OpenMetrics, whose histograms have trace IDs as exemplars where [traces](tracing.md) are sent. Over OTLP
they have the names of OpenTelemetry: dots for underscores, and no unit or ` + "`_total`" + ` at the end.

All times are in seconds, all sizes in bytes. ` + "`route`" + ` is the name of a configured route, empty where none took the request. No label holds a workflow, a key, an event ID, a path or a host that a sender chose;
a method that no standard names is ` + "`_OTHER`" + `, and a status above 599 is no label but the error type ` + "`_OTHER`" + `, so a flood of deliveries makes no new series. What only a rare event counts is there from the start with 0, so ` + "`increase()`" + ` sees the first one. Series of routes that a
reload took away stay until the process ends. All of it is of one process: sum over replicas.

`

func TestAllMetricsAreDocumented(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what is known of a process differs from system to system")
	}
	var b bytes.Buffer
	b.WriteString(preamble)
	sections := []struct {
		title, intro string
		has          func(name string) bool
	}{
		{"Ours", "", func(name string) bool { return strings.HasPrefix(name, "hooklock_") }},
		{"HTTP and etcd", "As OpenTelemetry's conventions have them: the door, the calls of the upstream, and the requests to etcd (watches are not in it).\n\n",
			func(name string) bool { return strings.HasPrefix(name, "http_") || strings.HasPrefix(name, "db_") }},
		{"The process", "On Linux, and on the page alone: as every program has them that Prometheus watches.\n\n",
			func(name string) bool { return strings.HasPrefix(name, "process_") }},
		{"The Go runtime, and who measures", "", func(name string) bool { return strings.HasPrefix(name, "go_") || name == "target_info" }},
	}
	all := families(everything(t).page(t, ""))
	rows := 0
	for _, s := range sections {
		fmt.Fprintf(&b, "## %s\n\n%s| Metric | Type | Labels | |\n| --- | --- | --- | --- |\n", s.title, s.intro)
		for _, f := range all {
			if s.has(f.name) {
				rows++
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.name, f.kind, f.text(), f.help)
			}
		}
		b.WriteByte('\n')
	}
	if rows != len(all) {
		t.Errorf("%d of %d metrics have a section", rows, len(all))
	}
	page := []byte(testkit.Wrap(strings.TrimRight(b.String(), "\n") + "\n"))
	const path = "../../docs/metrics.md"
	if *update {
		if err := os.WriteFile(path, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, page) {
		t.Errorf("docs/metrics.md is not what the program shows; run go test ./proxy/telemetry -run Documented -update\n%s", page)
	}
}

// text lists the labels of f with their words.
func (f *family) text() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(f.labels)) {
		text := "`" + name + "`"
		if words := values(f.name, name); words != nil {
			text += " (" + strings.Join(words, ", ") + ")"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// A word that the code has and the closed sets do not would make a series that is not there from the start.
func TestTheClosedSetsAreClosed(t *testing.T) {
	for _, d := range decisions {
		if result := d.Row().Acquisition; result != "" && !slices.Contains(acquisitionResults, result) {
			t.Errorf("acquisition %s", result)
		}
		for attempt := range 3 {
			if result := lookupOf(d, attempt); result != "" && !slices.Contains(lookupResults, result) {
				t.Errorf("lookup %s", result)
			}
		}
	}
	for _, r := range []sender.Reason{sender.Missing, sender.Malformed, sender.Mismatch, sender.TooOld, sender.TooNew} {
		if !slices.Contains(signatureResults, string(r)) {
			t.Errorf("signature %s", r)
		}
	}
}
