package main

import (
	"fmt"
	"runtime"

	"hooklock/cmd/hooklock/cli"

	"github.com/spf13/cobra"
)

func newVersion(e *cli.Environment) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Args:  cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintf(e.Stdout, "hooklock %s %s %s/%s\n", cli.BuildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
