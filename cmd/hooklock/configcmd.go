package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/remote"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
)

func newConfig(e *cli.Environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "show the configuration, or its schema",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var r remote.Remote
	var origin, running bool
	show := &cobra.Command{
		Use:   "show",
		Short: "print the configuration with every default filled in; secrets are not shown",
		Long: `Print the configuration as a start would read it, with every default filled in; secrets are not shown. With --running it is the one that a
running hooklock has in force, in the same spelling:

  diff <(hooklock config show) <(hooklock config show --running)`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if running {
				return r.ShowRunning(cmd.Context(), e, origin)
			}
			if output := cmd.Flag("output"); !slices.Contains([]string{"table", "yaml"}, output.Value.String()) {
				return cli.Misuse(fmt.Errorf("-o %s: without --running the configuration is shown as YAML alone",
					cli.Plain(output.Value.String())))
			}
			loaded, err := wiring.Load(e, r.ConfigFile(), nil, false)
			if err != nil {
				return err
			}
			return loaded.Show(e.Stdout, origin)
		},
	}
	r.Flags(show)
	show.Flags().BoolVar(&running, "running", false, "ask a running hooklock which one it has in force")
	show.Flags().BoolVar(&origin, "origin", false, "say where each value comes from")
	schema := &cobra.Command{
		Use:   "schema",
		Short: "print the JSON Schema of the configuration file",
		Args:  cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := e.Stdout.Write(config.Schema())
			return err
		},
	}
	cmd.AddCommand(show, schema)
	return cmd
}

func newValidate(e *cli.Environment) *cobra.Command {
	var path, output string
	var elsewhere, running bool
	var r remote.Remote
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "check a configuration file without running anything",
		Long: `Check a configuration file with the code that serve uses: what is valid here, serve starts with. All problems are printed at once: first
those of its shape, and what does not make sense when those are mended.
With --without-files a secret or certificate that is missing here is a warning: for a configuration that is for another machine.
With --running a running hooklock is asked which events it has accepted: those that would lose their route are a warning.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return cli.Misuse(fmt.Errorf("-o %s: use text or json", cli.Plain(output)))
			}
			report, loaded, err := validateFile(e, path, !elsewhere)
			if err != nil {
				return err
			}
			if running && len(report.problems) == 0 {
				lost, err := r.WarnUnrouted(cmd.Context(), e, path, loaded.Config)
				if err != nil {
					return err
				}
				report.warnings = append(report.warnings, lost...)
			}
			if output == "json" {
				err = report.printJSON(e)
			} else {
				report.printText(e, path)
			}
			if n := len(report.problems); err == nil && n > 0 {
				return cli.Misuse(fmt.Errorf("%s: %s", path, story.Count(n, "error", "errors")))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&path, "config", wiring.DefaultConfig, "configuration file")
	cmd.Flags().BoolVar(&elsewhere, "without-files", false,
		"secrets and certificates are on another machine: those that are missing here are warnings")
	cmd.Flags().BoolVar(&running, "running", false,
		"ask a running hooklock which accepted events would lose their route")
	r.AddressFlags(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	cmd.Flags().StringVar(&output, "format", "text", "as --output")
	_ = cmd.Flags().MarkHidden("format") // its name before; the flag is there
	return cmd
}

// validation is the problems, warnings and notes of a configuration file.
type validation struct{ problems, warnings, notes config.Problems }

// validateFile checks a configuration file. loaded is not nil if there are no problems. The error
// is that the file cannot be read.
func validateFile(e *cli.Environment, path string, files bool) (v validation, loaded *config.Loaded, err error) {
	loaded, err = wiring.Load(e, path, nil, files)
	if err == nil {
		err = wiring.Check(loaded, files)
	}
	if err != nil && !errors.As(err, &v.problems) {
		return v, nil, err
	}
	if loaded != nil {
		v.warnings, v.notes = loaded.Warnings, loaded.Notes
	}
	return v, loaded, nil
}

func (v *validation) printText(e *cli.Environment, path string) {
	for _, p := range v.problems {
		fmt.Fprintln(e.Stderr, p.String())
	}
	for _, w := range v.warnings {
		fmt.Fprintln(e.Stderr, "warning: "+w.String())
	}
	if len(v.problems) == 0 {
		fmt.Fprintf(e.Stdout, "%s: valid\n", path)
	}
	for _, n := range v.notes {
		fmt.Fprintln(e.Stdout, "note: "+n.String())
	}
}

func (v *validation) printJSON(e *cli.Environment) error {
	out := json.NewEncoder(e.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(struct {
		Valid    bool            `json:"valid"`
		Errors   config.Problems `json:"errors"`
		Warnings config.Problems `json:"warnings"`
		Notes    config.Problems `json:"notes"`
	}{len(v.problems) == 0, append(config.Problems{}, v.problems...), append(config.Problems{},
		v.warnings...), append(config.Problems{}, v.notes...)})
}
