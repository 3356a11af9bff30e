//go:build linux

package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
)

// What DESIGN calls for, as ratios within one run.
const (
	budgetNginx   = 1.2       // CPU per request, passing through
	budgetNetHTTP = 1.0 / 3.0 // CPU per request, passing through
	budgetPlain   = 1.3       // CPU per request, passing through, to that of a plain proxy on the same library
	budgetNew     = 1.08      // CPU of a new event with telemetry at its defaults, to that of measuring nothing
	budgetReplay  = 1.15      // the same of a duplicate
	budgetBefore  = 0.65      // CPU of a new event, to the release before
	budgetSeen    = 1.1       // CPU per request, passing through, with everything measured
	budgetAlone   = 1.15      // p50 of a new event of one caller, to that of two puts on the same etcd
	budgetAlone99 = 1.5       // the same of p99
	// CPU and latency of a route that parks, whose upstream answers in time, to one that does not
	budgetPark    = 1.03
	budgetKeep    = 1.1 // CPU of a new event whose request is kept, to one whose is not
	budgetDrain   = 1.1 // p50 of other deliveries while an outage's events run, to that afterwards
	budgetDecided = 0.8 // requests per second, decided in the process, of those that pass through
)

// span is a median with the smallest and the largest.
type span struct{ median, low, high float64 }

// spanOf is the span of values, of which there is at least one.
func spanOf(values []float64) span {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return span{(v[(n-1)/2] + v[n/2]) / 2, v[0], v[n-1]}
}

// text prints a span with so many digits after the point.
func (s span) text(digits int) string {
	return fmt.Sprintf("%.*f (%.*f–%.*f)", digits, s.median, digits, s.low, digits, s.high)
}

func rateOf(r round) float64 { return r.rate }
func cpuOf(r round) float64  { return r.cpu }
func ownOf(r round) float64  { return r.own }
func p50Of(r round) float64  { return r.p50 }
func p99Of(r round) float64  { return r.p99 }
func rssOf(r round) float64  { return r.rss }

func fewestOf(r round) float64 { return r.fewest }
func mostOf(r round) float64   { return r.most }

func (s *subject) span(of func(round) float64) span {
	var values []float64
	for _, r := range s.rounds {
		values = append(values, of(r))
	}
	return spanOf(values)
}

// ratio is the span of the ratios of a to b, round by round.
func ratio(a, b *subject, of func(round) float64) span {
	var values []float64
	for i := range a.rounds {
		values = append(values, of(a.rounds[i])/of(b.rounds[i]))
	}
	return spanOf(values)
}

// report prints the tables and the ratios.
func report(out io.Writer, subjects []*subject) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\trequests/s\tp50 ms\tp99 ms\tCPU µs/request\tRSS MiB")
	for _, kind := range kinds {
		for _, s := range subjects {
			if s.kind != kind.name {
				continue
			}
			if kind.title != "" {
				fmt.Fprintln(w, kind.title+":\t\t\t\t\t")
				kind.title = ""
			}
			cpu, rss := "", ""
			if !s.direct {
				cpu, rss = s.span(cpuOf).text(1), fmt.Sprintf("%.0f", s.span(rssOf).high)
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\n", s.name, s.span(rateOf).text(0), s.span(p50Of).text(2),
				fmt.Sprintf("%.1f", s.span(p99Of).median), cpu, rss)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, line := range ratios(subjects) {
		fmt.Fprintln(out, line)
	}
	return nil
}

// kinds are the parts of the table.
var kinds = []struct{ name, title string }{
	{kindPlain, "passing through"},
	{kindBodiless, "the same without a body"},
	{kindReplayed, "duplicates of a settled event"},
	{kindLocked, "events of a workflow that is locked"},
	{kindExecuted, "new events (claim and settle in etcd)"},
	{kindAlone, "the same of one caller"},
	{kindPuts, "one caller, without hooklock"},
	{kindInTime, "the same, on a route with park"},
	{kindParked, fmt.Sprintf("parked at once, 2 KiB, %d connections; CPU with their tries", parkedConnections)},
}

// ratios are the sentences under the table.
func ratios(subjects []*subject) []string {
	find := func(name, kind string) *subject {
		i := slices.IndexFunc(subjects, func(s *subject) bool { return s.name == name && s.kind == kind })
		if i < 0 {
			return nil
		}
		return subjects[i]
	}
	var lines []string
	say := func(name, kind, than, thanKind string, of func(round) float64, text string, budget float64) {
		a, b := find(name, kind), find(than, thanKind)
		if a != nil && b != nil {
			lines = append(lines, fmt.Sprintf(text, ratio(a, b, of).text(2), budget))
		}
	}
	for _, kind := range []string{kindPlain, kindBodiless} {
		for _, c := range []struct {
			other  string
			budget float64
		}{{subjectNginx, budgetNginx}, {subjectNetHTTP, budgetNetHTTP}, {subjectFasthttp, budgetPlain}} {
			say(subjectHooklock, kind, c.other, kind, cpuOf, kind+": %s × the CPU of "+c.other+
				" (to reach: at most %.2f)", c.budget)
		}
	}
	for _, kind := range []string{kindReplayed, kindLocked} {
		say(subjectHooklock, kind, subjectHooklock, kindPlain, rateOf,
			kind+": %s × the rate of passing through (to reach: at least %.2f)", budgetDecided)
	}
	for _, kind := range []string{kindPlain, kindReplayed} {
		say(subjectAll, kind, subjectBare, kind, cpuOf, kind+": metrics, traces that are not sampled and OTLP to a "+
			"dead collector take %s × the CPU of measuring nothing (passing through, to reach: at most %.2f)",
			budgetSeen)
	}
	for _, c := range []struct {
		kind   string
		budget float64
	}{{kindExecuted, budgetNew}, {kindReplayed, budgetReplay}} {
		say(subjectDefaults, c.kind, subjectBare, c.kind, cpuOf, c.kind+": telemetry at its defaults, log lines "+
			"with it, takes %s × the CPU of measuring nothing (to reach: at most %.2f)", c.budget)
	}
	say(subjectExternal, kindAlone, subjectPuts, kindPuts, p50Of,
		"one caller: %s × the p50 of two puts on the same etcd (to reach: at most %.2f)", budgetAlone)
	say(subjectExternal, kindAlone, subjectPuts, kindPuts, p99Of, "    %s × their p99 (to reach: at most %.2f)",
		budgetAlone99)
	say(subjectKeeps, kindExecuted, subjectHooklock, kindExecuted, cpuOf,
		"new events whose requests are kept: %s × the CPU (to reach: at most %.2f)", budgetKeep)
	say(subjectKeeps, kindExecuted, subjectHooklock, kindExecuted, p50Of,
		"    %s × the p50 (to reach: at most %.2f)", 1)
	for _, s := range subjects {
		if s.kind == kindExecuted && s.name != subjectBare {
			say(s.name, s.kind, before+s.name, s.kind, cpuOf, "new events, "+s.name+
				": %s × the CPU of before (to reach: at most %.2f)", budgetBefore)
			say(s.name, s.kind, before+s.name, s.kind, rateOf, "    at %s × its rate (to reach: more than %.2f)", 1)
		}
	}
	if h, s := find(subjectHooklock, kindPlain), find(subjectHooklock, kindExecuted); h != nil && s != nil {
		lines = append(lines, fmt.Sprintf("executed: %.0f µs of CPU more than passing through, with the embedded "+
			"etcd in it", math.Max(0, s.span(cpuOf).median-h.span(cpuOf).median)))
	}
	executed, inTime, parked := find(subjectHooklock, kindExecuted), find(subjectHooklock, kindInTime),
		find(subjectHooklock, kindParked)
	if executed != nil && inTime != nil && parked != nil {
		lines = append(lines, fmt.Sprintf("a route with park whose upstream answers in time: %s × the CPU and %s × "+
			"the p50 of one without (to reach: at most %.2f)",
			ratio(inTime, executed, cpuOf).text(2), ratio(inTime, executed, p50Of).text(2), budgetPark),
			fmt.Sprintf("parked at once: %s × the rate of claim and settle, %s × the CPU with their tries",
				ratio(parked, executed, rateOf).text(2), ratio(parked, executed, cpuOf).text(2)))
	}
	return lines
}
