package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"hooklock/cmd/hooklock/cli"
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
	var path string
	var origin bool
	show := &cobra.Command{
		Use:   "show",
		Short: "print the configuration with every default filled in; secrets are not shown",
		Args:  cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			loaded, err := wiring.Load(e, path, nil, false)
			if err != nil {
				return err
			}
			return loaded.Show(e.Stdout, origin)
		},
	}
	show.Flags().StringVar(&path, "config", wiring.DefaultConfig, "configuration file")
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
	var path, format string
	var elsewhere bool
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "check a configuration file, its shape and its sense, without running anything",
		Long: `Check a configuration file with the code that serve uses: what is valid here, serve starts with. All problems are printed at once.
With --without-files a secret or certificate that is missing here is a warning: for a configuration that is for another machine.`,
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if format != "text" && format != "json" {
				return cli.Misuse(fmt.Errorf("--format %s: use text or json", format))
			}
			loaded, err := wiring.Load(e, path, nil, !elsewhere)
			if err == nil {
				err = wiring.Check(loaded.Config, !elsewhere)
			}
			var problems, warnings, notes config.Problems
			if err != nil && !errors.As(err, &problems) {
				return err
			}
			if loaded != nil {
				warnings, notes = loaded.Warnings, loaded.Notes
			}
			if format == "json" {
				if err := printJSON(e, problems, warnings, notes); err != nil {
					return err
				}
			} else {
				printText(e, path, problems, warnings, notes)
			}
			if len(problems) > 0 {
				return cli.Misuse(fmt.Errorf("%s: %d to mend", path, len(problems)))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "config", wiring.DefaultConfig, "configuration file")
	cmd.Flags().BoolVar(&elsewhere, "without-files", false, "secrets and certificates are on another machine: those that are missing here are warnings")
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	return cmd
}

func printText(e *cli.Environment, path string, problems, warnings, notes config.Problems) {
	for _, p := range problems {
		fmt.Fprintln(e.Stderr, p.String())
	}
	for _, w := range warnings {
		fmt.Fprintln(e.Stderr, "warning: "+w.String())
	}
	if len(problems) == 0 {
		fmt.Fprintf(e.Stdout, "%s: valid\n", path)
	}
	for _, n := range notes {
		fmt.Fprintln(e.Stdout, "note: "+n.String())
	}
}

func printJSON(e *cli.Environment, problems, warnings, notes config.Problems) error {
	out := json.NewEncoder(e.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(struct {
		Valid    bool            `json:"valid"`
		Errors   config.Problems `json:"errors"`
		Warnings config.Problems `json:"warnings"`
		Notes    config.Problems `json:"notes"`
	}{len(problems) == 0, append(config.Problems{}, problems...), append(config.Problems{}, warnings...), append(config.Problems{}, notes...)})
}
