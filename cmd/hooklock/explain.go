package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/idem"
	"hooklock/proxy"
)

func newExplain(e *cli.Environment) *cobra.Command {
	var path, method, target, data string
	var headers []string
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "say which route a delivery takes, how it is named, and what each decision would answer",
		Long:  "Say what Hooklock would make of a delivery: which route, workflow, event ID and key, and what each decision would answer. Nothing is sent and no store is asked.",
		Example: `  hooklock explain --path /hooks/stripe/acme -H 'Idempotency-Key: k1' -d '{"id":"evt_1"}'
  hooklock explain --path /hooks/stripe/acme -d @event.json`,
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			loaded, err := wiring.Load(e, path, nil, false)
			if err != nil {
				return err
			}
			rules, err := wiring.NewRules(loaded.Config)
			if err != nil {
				return err
			}
			sample, err := newSample(method, target, headers, data)
			if err != nil {
				return cli.Misuse(err)
			}
			return printExplanation(e, loaded, rules.Explain(sample, int(loaded.Config.Limits.RequestHeader), time.Now()))
		},
	}
	f := cmd.Flags()
	f.StringVar(&path, "config", wiring.DefaultConfig, "configuration file")
	f.StringVarP(&method, "request", "X", "POST", "method")
	f.StringVar(&target, "path", "", "request target, with its query (required)")
	f.StringArrayVarP(&headers, "header", "H", nil, "header line `'Name: value'`; may be given several times; without a Host it is localhost")
	f.StringVarP(&data, "data", "d", "", "body, or @file")
	return cmd
}

func newSample(method, target string, headers []string, data string) (*proxy.Sample, error) {
	if !strings.HasPrefix(target, "/") {
		return nil, fmt.Errorf("--path %q: give the request target, such as /hooks/stripe/acme", target)
	}
	s := &proxy.Sample{Method: method, Target: target}
	for _, line := range headers {
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			return nil, fmt.Errorf("-H %q: write it as 'Name: value'", line)
		}
		s.Header = append(s.Header, [2]string{name, strings.TrimSpace(value)})
	}
	s.Body = []byte(data)
	if name, ok := strings.CutPrefix(data, "@"); ok {
		var err error
		if s.Body, err = os.ReadFile(name); err != nil {
			return nil, fmt.Errorf("-d: %w", err)
		}
	}
	return s, nil
}

// errNoRoute is returned for a delivery that no route takes.
var errNoRoute = cli.WithCode(errors.New("NO ROUTE takes this delivery, so Hooklock does not guard it; is this the configuration that you mean (--config), and the path?"), cli.ExitNotFound)

// errNotNamed is returned for a delivery that would be refused.
var errNotNamed = errors.New("this delivery would be refused")

func printExplanation(e *cli.Environment, loaded *config.Loaded, x *proxy.Explanation) error {
	w := tabwriter.NewWriter(e.Stdout, 0, 4, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, value)
		}
	}
	row("route", x.Route)
	row("pattern", x.Pattern)
	for _, v := range x.Vars {
		row("  {"+v[0]+"}", v[1])
	}
	row("preset", x.Preset)
	row("signature", x.Signature)
	for _, line := range x.Diagnosis {
		row("", line)
	}
	row("handshake", x.Handshake)
	row("workflow", x.Workflow)
	slots := wiring.Limits(loaded.Config)
	for _, l := range x.Limits {
		row("limit", fmt.Sprintf("%s: %d slots", l.Limit, slots(x.Route, l)))
	}
	row("event ID", x.EventID)
	row("event ID from", x.Source)
	for _, l := range x.Labels {
		row("label "+l.Name, l.Value)
	}
	for _, u := range x.Unread {
		row("no value in", fmt.Sprintf("{%s}: %s", u.Source, u.Why))
	}
	row("key", x.Key)
	row("fingerprint", x.Fingerprint)
	row("order", x.Order)
	row("note", x.Note)
	row(string(idem.DecisionParked), x.Park)
	noRoute := x.Route == "" && (len(x.Refusals) == 0 || x.Refusals[0].Status == http.StatusNotFound)
	if noRoute {
		row("unmatched", string(loaded.Config.Unmatched))
		for _, n := range loaded.Notes {
			row("", n.String())
		}
	}
	refused := "refused"
	for _, bad := range x.Refusals {
		row(refused, fmt.Sprintf("%d %s: %s", bad.Status, bad.Code, bad.Detail))
		refused = "and after that"
	}
	if len(x.Answers) > 0 {
		fmt.Fprintln(w, "\nanswers")
		for _, a := range slices.Clip(x.Answers) {
			fmt.Fprintf(w, "  %s\t%s\n", a.Decision, a.Text)
		}
	}
	printRoute(w, loaded, x.Route)
	if err := w.Flush(); err != nil {
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

// printRoute prints the settings of a route that are not the defaults, with their origins and warnings.
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
