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
			fmt.Fprintln(e.Stdout, versionText())
			return nil
		},
	}
}

// versionText returns the output of hooklock version and hooklock --version.
func versionText() string {
	return fmt.Sprintf("hooklock %s %s %s/%s", cli.BuildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
