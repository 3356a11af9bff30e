// Command hooklock is a reverse proxy in front of webhook endpoints: each event runs once, and each
// workflow runs one at a time, across all replicas.
//
// The packages below this one are the only ones that import all others: serve, remote and doctor
// are groups of commands, wiring converts the configuration to objects, and cli has what commands
// share. Each other command has a file beside main.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/doctor"
	"hooklock/cmd/hooklock/inject"
	"hooklock/cmd/hooklock/remote"
	"hooklock/cmd/hooklock/serve"
	"hooklock/idem/naming"
)

func main() {
	serve.RedirectGRPC()
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// run is main with its inputs and outputs as arguments. It returns the exit code.
func run(ctx context.Context, args, env []string, stdout, stderr io.Writer) int {
	out := &cli.Output{To: stdout}
	e := &cli.Environment{Env: env, Stdin: os.Stdin, Stdout: out, Stderr: stderr}
	defer e.Close()
	root := newRoot(e)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = out.Err()
	}
	if err == nil {
		return cli.ExitFine
	}
	fmt.Fprintln(e.Stderr, "hooklock: "+naming.HideSecrets(err.Error()))
	var coded cli.CodedError
	switch {
	case !errors.As(err, &coded):
		return cli.ExitFailed
	case coded.Code == cli.ExitUsage && cmd.Name() == serve.Name:
		return cli.ExitServe
	}
	return coded.Code
}

func newRoot(e *cli.Environment) *cobra.Command {
	root := &cobra.Command{
		Use:   "hooklock",
		Short: "each webhook event runs once, each workflow runs one at a time, across all replicas",
		Long: `Hooklock is a reverse proxy in front of an existing webhook endpoint. Each event runs once and each workflow
runs one at a time, across all replicas, without a change to the service or to the sender.

Exit codes: 0 fine, 1 failed, 2 bad usage or bad configuration (78 of serve, whose crash is 2), 3 not found, 4 refused (another execution
holds the lock, or it has ended).`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Misuse(fmt.Errorf(
					"unknown command %q; hooklock --help lists them%s", args[0], cli.Suggestion(cmd, args[0])))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.Version = versionText()
	root.SetVersionTemplate("{{.Version}}\n")
	cli.WrapHelp(root, e)
	root.SetOut(e.Stdout)
	root.SetErr(e.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return cli.Misuse(fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
	})
	addCommands(root, e)
	return root
}

// addCommands adds the commands in groups: first the six with which people begin.
func addCommands(root *cobra.Command, e *cli.Environment) {
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Begin with", []*cobra.Command{
			serve.NewDemo(e), serve.NewServe(e), newValidate(e), newExplain(e), remote.NewStatus(e),
			remote.NewShow(e)}},
		{"Serve and check", []*cobra.Command{
			newConfig(e), doctor.NewDoctor(e), newDrain(), newHealthcheck(e), inject.New(e, os.Stdin), newObserve(e),
			newReload(e), newSampleCommand(e)}},
		{"Look", append(remote.NewKept(e), remote.NewAudit(e), remote.NewCounts(e), remote.NewEvents(e),
			remote.NewExecutions(e), remote.NewPauses(e), remote.NewQueue(e), remote.NewReport(e),
			remote.NewSignatures(e), remote.NewSuggest(e))},
		{"Act", append(remote.NewActions(e), remote.NewJobs(e), remote.NewNotify(e), remote.NewPause(e),
			remote.NewResume(e), remote.NewSeen(e))},
		{"Locks", []*cobra.Command{remote.NewLocks(e)}},
		{"etcd", []*cobra.Command{newEmbedded(e), newEtcd(e)}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title + ":"})
		for _, cmd := range group.commands {
			cmd.GroupID = group.title
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(newVersion(e), newMan())
}

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

// newMan is for packagers, so it is not in the help.
func newMan() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "man",
		Short: "write the manual pages",
		Long: "Write a manual page for each command. Their date is SOURCE_DATE_EPOCH where that is set, so that " +
			"they can be reproduced.",
		Hidden: true,
		Args:   cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return cli.Misuse(errors.New("say where to with --dir"))
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("make the folder of the pages: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			header := &doc.GenManHeader{Section: "1", Source: "hooklock " + cli.BuildVersion(), Manual: "Hooklock"}
			if err := doc.GenManTree(root, header, dir); err != nil {
				return fmt.Errorf("write the pages: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder for the pages")
	return cmd
}
