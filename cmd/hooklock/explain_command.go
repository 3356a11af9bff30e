package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/idem"
	"hooklock/proxy"
	"hooklock/proxy/asking"
)

func newExplain(e *cli.Environment) *cobra.Command {
	var path, method, target, data, against string
	var headers []string
	var allRoutes, ask bool
	cmd := &cobra.Command{
		Use:   "explain [FILE...]",
		Short: "say which route a delivery takes, how it is named, and what each decision would answer",
		Long: `Say what Hooklock would make of a delivery: which route, workflow, event ID and key, and what each decision would answer. Nothing is sent and no store is
asked. What would refuse it after the first reason is said, too. With --ask the service is asked what became of the event (on_unknown: ask), once.

With --all-routes it reads recorded deliveries, from files and folders, and prints a line for each. A file is a whole request, as "hooklock
request" prints it, or a body, which is tried at each route. With --against only what another configuration makes of it
differently is printed, with exit code 1 if there is anything.`,
		Example: `  hooklock explain --path /hooks/stripe/acme -H 'Idempotency-Key: k1' -d '{"id":"evt_1"}'
  hooklock explain --path /hooks/stripe/acme -d @event.json
  hooklock explain --all-routes recorded/
  hooklock explain --all-routes --config new.yaml --against sidecar.yaml recorded/*.http`,
		RunE: func(cmd *cobra.Command, files []string) error {
			if err := checkExplain(cmd, files, allRoutes, target); err != nil {
				return cli.Misuse(err)
			}
			now, err := readRules(e, path)
			if err != nil {
				return err
			}
			if allRoutes {
				return explainRecorded(e, now, against, files, headers)
			}
			sample, err := newSample(method, target, headers, data)
			if err != nil {
				return cli.Misuse(err)
			}
			x := now.explainSample(sample, time.Now())
			said := ""
			if ask {
				if said, err = now.askService(cmd.Context(), x); err != nil {
					return err
				}
			}
			return printExplanation(e, now.loaded, x, said)
		},
	}
	f := cmd.Flags()
	f.StringVar(&path, "config", wiring.DefaultConfig, "configuration file")
	f.StringVarP(&method, "request", "X", "POST", "method")
	f.StringVar(&target, "path", "", "request target, with its query (required)")
	f.StringArrayVarP(&headers, "header", "H", nil,
		"header line `'Name: value'`; may be given several times; without a Host it is localhost")
	f.StringVarP(&data, "data", "d", "", "body, or @file")
	f.BoolVar(&allRoutes, "all-routes", false, "explain the recorded deliveries in FILE..., bodies alone at each route")
	f.BoolVar(&ask, "ask", false, "ask the service what became of the event, as on_unknown: ask does, and say what "+
		"would follow")
	f.StringVar(&against, "against", "", "with --all-routes: print only what this configuration decides differently")
	return cmd
}

// checkExplain refuses flags and arguments that do not go together.
func checkExplain(cmd *cobra.Command, files []string, allRoutes bool, target string) error {
	switch {
	case allRoutes && len(files) == 0:
		return errors.New("--all-routes: name files of recorded deliveries, or a folder that has some")
	case allRoutes && target != "":
		return errors.New("--all-routes, --path: give one of them; a file with a whole request has its path")
	case allRoutes:
		return nil
	case len(files) > 0:
		return fmt.Errorf("%s takes files with --all-routes alone, got %q", cmd.CommandPath(), files[0])
	case cmd.Flags().Changed("against"):
		return errors.New("--against needs --all-routes, and files of recorded deliveries")
	}
	return nil
}

// explainRecorded explains recorded deliveries, alone or against another configuration.
func explainRecorded(e *cli.Environment, now reading, against string, files, headers []string) error {
	given, err := parseHeaders(headers)
	if err != nil {
		return cli.Misuse(err)
	}
	if against == "" {
		return explainAll(e, now, nil, files, given)
	}
	old, err := readRules(e, against)
	if err != nil {
		return err
	}
	return explainAll(e, now, &old, files, given)
}

func newSample(method, target string, headers []string, data string) (*proxy.Sample, error) {
	if !strings.HasPrefix(target, "/") {
		return nil, fmt.Errorf("--path %q: give the request target, such as /hooks/stripe/acme", target)
	}
	header, err := parseHeaders(headers)
	if err != nil {
		return nil, err
	}
	s := &proxy.Sample{Method: method, Target: target, Header: header, Body: []byte(data)}
	if name, ok := strings.CutPrefix(data, "@"); ok {
		if s.Body, err = os.ReadFile(name); err != nil {
			return nil, fmt.Errorf("-d: %w", err)
		}
	}
	return s, nil
}

// parseHeaders reads header lines of flags.
func parseHeaders(lines []string) (header [][2]string, err error) {
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			return nil, fmt.Errorf("-H %q: write it as 'Name: value'", line)
		}
		header = append(header, [2]string{name, strings.TrimSpace(value)})
	}
	return header, nil
}

// errNoRoute is returned for a delivery that no route takes.
var errNoRoute = cli.WithCode(errors.New("NO ROUTE takes this delivery, so Hooklock does not guard it; is this the "+
	"configuration that you mean (--config), and the path?"), cli.ExitNotFound)

// errNotNamed is returned for a delivery that would be refused.
var errNotNamed = errors.New("this delivery would be refused")

// printExplanation prints x, and what the service said when it was asked; "" = it was not.
func printExplanation(e *cli.Environment, loaded *config.Loaded, x *proxy.Explanation, said string) error {
	rows := explanationRows{tabwriter.NewWriter(e.Stdout, 0, 4, 2, ' ', 0)}
	rows.addDelivery(loaded, x)
	rows.addRow("it says", said)
	noRoute := x.Route == "" && (len(x.Refusals) == 0 || x.Refusals[0].Status == http.StatusNotFound)
	if noRoute {
		rows.addRow("unmatched", string(loaded.Config.Unmatched))
		for _, note := range loaded.Notes {
			rows.addRow("", note.String())
		}
	}
	rows.addAnswers(x)
	printRoute(rows, loaded, x.Route)
	if err := rows.Flush(); err != nil {
		return err
	}
	switch {
	case noRoute:
		return errNoRoute
	case len(x.Refusals) > 0:
		return errNotNamed
	}
	return nil
}

// explanationRows are the lines of an explanation: a name and a value each.
type explanationRows struct{ *tabwriter.Writer }

// addRow writes a line, unless it has no value.
func (w explanationRows) addRow(name, value string) {
	if value != "" {
		fmt.Fprintf(w, "%s\t%s\n", name, value)
	}
}

// addDelivery writes what was read of the delivery, and what it is called.
func (w explanationRows) addDelivery(loaded *config.Loaded, x *proxy.Explanation) {
	row := w.addRow
	row("route", x.Route)
	row("pattern", x.Pattern)
	for _, variable := range x.Vars {
		row("  {"+variable[0]+"}", variable[1])
	}
	row("preset", x.Preset)
	row("signature", x.Signature)
	for _, line := range x.Diagnosis {
		row("", line)
	}
	row("handshake", x.Handshake)
	row("workflow", x.Workflow)
	slots := wiring.Limits(loaded.Config)
	for _, slot := range x.Limits {
		row("limit", fmt.Sprintf("%s: %d slots", slot.LimitName, slots(x.Route, slot)))
	}
	row("event ID", x.EventID)
	row("event ID from", x.Source)
	for _, label := range x.Labels {
		row("label "+label.Name, label.Value)
	}
	for _, unread := range x.Unread {
		row("no value in", fmt.Sprintf("{%s}: %s", unread.Source, unread.Why))
	}
	row("key", x.Key)
	row("fingerprint", x.Fingerprint)
	row("order", x.Order)
	row("note", x.Note)
	row(string(idem.DecisionParked), x.Park)
	row("asks", x.Question)
}

// addAnswers writes why the delivery would be refused, and what its sender gets for each decision.
func (w explanationRows) addAnswers(x *proxy.Explanation) {
	name := "refused"
	for _, refusal := range x.Refusals {
		w.addRow(name, fmt.Sprintf("%d %s: %s", refusal.Status, refusal.Code, refusal.Detail))
		name = "and after that"
	}
	if len(x.Answers) == 0 {
		return
	}
	fmt.Fprintln(w, "\nanswers")
	for _, answer := range x.Answers {
		fmt.Fprintf(w, "  %s\t%s\n", answer.Decision, answer.Text)
	}
}

// printRoute prints the settings of a route that are not the defaults, with their origins and
// warnings.
func printRoute(w io.Writer, loaded *config.Loaded, name string) {
	i := slices.IndexFunc(loaded.Config.Routes, func(r config.Route) bool { return r.Name == name })
	if i < 0 {
		return
	}
	fmt.Fprintln(w, "\nsettings")
	for _, s := range loaded.RouteSettings(i) {
		fmt.Fprintf(w, "  %s\t%s\t# %s\n", s.Path, s.Value, s.Origin)
	}
	prefix := fmt.Sprintf("routes[%d]", i)
	heading := "\nwarnings\n"
	for _, p := range slices.Concat(loaded.Warnings, loaded.Notes) {
		if strings.HasPrefix(p.Path, prefix) {
			fmt.Fprintf(w, "%s  %s: %s\n", heading, strings.TrimPrefix(p.Path, prefix+"."), p.Text)
			heading = ""
		}
	}
}

// askService asks the service what became of the event of x, once, and says what would follow from
// it.
func (r *reading) askService(ctx context.Context, x *proxy.Explanation) (string, error) {
	if x.Question == "" {
		return "", cli.Misuse(errors.New("--ask: nothing is asked about this delivery: its route has no on_unknown: " +
			"ask, or a value of ask.url is missing from it"))
	}
	upstream, host, err := wiring.UpstreamOptions(r.loaded.Config, nil)
	if err != nil {
		return "", err
	}
	asker := asking.New(asking.Options{Service: wiring.Service(&upstream, host), Rule: r.rules.AskRule})
	said := asker.Once(ctx,
		&idem.Lock{ExecutionFacts: idem.ExecutionFacts{Route: x.Route}, Question: &idem.Question{URL: x.Question}})
	switch said.Outcome {
	case idem.Executed:
		return "executed (" + strconv.Itoa(said.Status) + "): a duplicate would be replayed", nil
	case idem.NotExecuted:
		return "not executed (" + strconv.Itoa(said.Status) + "): it would run again", nil
	}
	return "nothing: " + said.Detail + "; after as many questions as ask.attempts says it would wait for a person", nil
}
