package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/etcdlock/diagnose"
	"hooklock/idem/naming"
)

// errUnwell is returned if a check failed. The findings have been printed.
var errUnwell = errors.New("a check failed")

// NewDoctor is the command doctor.
func NewDoctor(e *cli.Environment) *cobra.Command {
	var path, output, harmless string
	var o probeOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "check what a configuration needs: etcd, its release and permissions, the upstream, the addresses",
		Long: `Check what a configuration needs, before serve needs it: the configuration itself, each etcd endpoint, etcd's release, leases,
transactions and permissions, its alarms and space, the upstream's port, the own addresses, who can read the admin API's tokens, the clock.

It may run beside a running hooklock. The upstream gets no request; etcd gets a few keys below <prefix>/v1/doctor/, which are removed.
With --upstream it gets two POSTs with a short JSON body on one connection, to the path that you name because a POST does no harm there, with an
empty line between them and two behind them; if it refuses the line, two more POSTs without it. doctor says whether the service reads bodies, and
whether upstream.reuse_after_body: true is right for it.
With --probe it also finds out what stands in front: whether it sends a delivery twice, strips headers, changes bodies, replaces answers or
gives up too early. For that doctor stands in hooklock's place, so hooklock must not run at that address; the upstream gets nothing.

A line is ok, warning, failed or skipped. The exit code is 1 when one failed, and 2 when the configuration is not valid.`,
		Example: `  hooklock doctor --config sidecar.yaml
  hooklock doctor -o json
  hooklock doctor --upstream /health
  hooklock doctor --probe https://hooks.example.com/hooks/acme`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return cli.Misuse(fmt.Errorf("-o %s: use text or json", output))
			}
			findings, err := runChecks(cmd.Context(), e, path, harmless, o)
			if printed := printFindings(e, findings, output == "json"); printed != nil {
				return printed
			}
			return err
		},
	}
	cmd.Flags().StringVar(&path, "config", wiring.DefaultConfig, "configuration file")
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	cmd.Flags().StringVar(&harmless, "upstream", "",
		"send the upstream two POSTs to this path, where they do no harm, and say whether its connections can be kept")
	cmd.Flags().StringVar(&o.url, "probe", "", "send probes through this URL, as a sender would call it")
	cmd.Flags().StringArrayVar(&o.listen, "probe-listen", nil, "where probes arrive (default: listen of the "+
		"configuration); given twice, doctor stands for two replicas, and one of them dies")
	cmd.Flags().DurationVar(&o.wait, "probe-wait", -1,
		"how late the slow probe is answered; 0s leaves it out (default: as long as a delivery may take)")
	cmd.Flags().Lookup("probe-wait").DefValue = "0s" // so that help shows no default
	return cmd
}

// runChecks checks everything, or the configuration alone if that is not valid.
func runChecks(ctx context.Context, e *cli.Environment, path, harmless string, o probeOptions) ([]diagnose.Finding,
	error) {
	loaded, err := wiring.Load(e, path, nil, true)
	if errors.Is(err, fs.ErrNotExist) {
		err = cli.Misuse(fmt.Errorf("%w; write one (README.md shows two lines to begin with), or name it with "+
			"--config", err))
	}
	if err == nil {
		err = wiring.Check(loaded, true)
	}
	if err != nil {
		return badConfig(err)
	}
	clock := diagnose.Clock()
	findings := []diagnose.Finding{configFinding(path, loaded)}
	findings = append(findings, storeFindings(ctx, loaded.Config)...)
	findings = append(findings, UpstreamFinding(ctx, loaded.Config))
	if harmless != "" {
		findings = append(findings, trialFinding(ctx, loaded.Config, harmless))
	}
	findings = append(findings, listenFindings(ctx, loaded.Config)...)
	findings = append(findings, clock())
	findings = append(findings, probeFront(ctx, loaded.Config, o)...)
	if slices.ContainsFunc(findings, func(f diagnose.Finding) bool { return f.Result == diagnose.Failed }) {
		return findings, errUnwell
	}
	return findings, nil
}

func badConfig(err error) ([]diagnose.Finding, error) {
	var findings []diagnose.Finding
	for line := range strings.Lines(err.Error()) {
		findings = append(findings, diagnose.Finding{Check: "configuration", Result: diagnose.Failed,
			Found: strings.TrimSpace(line)})
	}
	findings = append(findings, diagnose.Finding{Check: "the rest", Result: diagnose.Skipped,
		Found: "it needs a valid configuration"})
	return findings, cli.Misuse(errors.New("the configuration is not valid"))
}

func configFinding(path string, loaded *config.Loaded) diagnose.Finding {
	f := diagnose.Finding{Check: "configuration", Result: diagnose.OK,
		Found: fmt.Sprintf("%s is valid; routes: %d", path, len(loaded.Config.Routes))}
	if n := len(loaded.Warnings); n > 0 {
		f.Result, f.Advice = diagnose.Warning, "hooklock validate prints them"
		f.Found += fmt.Sprintf("; warnings: %d", n)
	}
	return f
}

// probeFront probes the proxies in front, or says how to.
func probeFront(ctx context.Context, c *config.Config, o probeOptions) []diagnose.Finding {
	if o.url != "" {
		return frontFindings(ctx, c, o)
	}
	return []diagnose.Finding{{
		Check: "retries in front", Result: diagnose.Skipped,
		Found:  "what stands in front of hooklock cannot be seen from here",
		Advice: "give --probe with the URL that a sender calls, and doctor sends itself requests through it",
	}}
}

func printFindings(e *cli.Environment, findings []diagnose.Finding, asJSON bool) error {
	for i := range findings {
		f := &findings[i]
		f.Found, f.Advice = naming.HideSecrets(f.Found), naming.HideSecrets(f.Advice)
	}
	if asJSON {
		out := json.NewEncoder(e.Stdout)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		return out.Encode(struct {
			Checks []diagnose.Finding `json:"checks"`
		}{append([]diagnose.Finding{}, findings...)})
	}
	t := &cli.Table{Out: e.Stdout, Screen: e.ScreenOf(e.Stdout)}
	for _, f := range findings {
		text := f.Found
		if f.Advice != "" {
			text += "; " + f.Advice
		}
		t.Add(string(f.Result), f.Check, text)
	}
	return t.Flush()
}
