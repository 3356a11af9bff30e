// Command hooklock is a reverse proxy in front of webhook endpoints: each event runs once, and each workflow runs one at a time, across
// all replicas.
//
// This is the only room that knows every other room. main.go has the command line, wire.go turns configuration into objects, service.go
// starts and stops them; each command has a file of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	redirectGRPC()
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// run is main without the process.
func run(ctx context.Context, args, env []string, stdout, stderr io.Writer) int {
	e := &environment{env: env, stdout: stdout, stderr: stderr}
	defer e.close()
	root := newRoot(e)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitFine
	}
	fmt.Fprintln(e.stderr, "hooklock: "+err.Error())
	var usage usageError
	var coded codedError
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &coded):
		return coded.code
	}
	return exitFailed
}

func newRoot(e *environment) *cobra.Command {
	root := &cobra.Command{
		Use:   "hooklock",
		Short: "each webhook event runs once, each workflow runs one at a time, across all replicas",
		Long: `Hooklock is a reverse proxy in front of an existing webhook endpoint. Each event runs once and each workflow
runs one at a time, across all replicas, without a change to the service or to the sender.

Exit codes: 0 fine, 1 failed, 2 bad usage or bad configuration, 3 not found, 4 refused (somebody else holds the lock, or it has ended).`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return misuse(fmt.Errorf("unknown command %q; hooklock --help lists them%s", args[0], suggestion(cmd, args[0])))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return misuse(fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
	})
	root.AddCommand(newServe(e), newDrain(), newDemo(e), newValidate(e), newExplain(e), newSampleCommand(e), newConfig(e), newDoctor(e),
		newVersion(e), newMan(), newLocks(e), newExecutions(e), newReport(e), newEmbedded(e))
	return root
}
