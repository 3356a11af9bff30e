package remote

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/cmd/hooklock/cli"
)

// completionTime bounds how long somebody who presses Tab waits.
const completionTime = 2 * time.Second

// mostCompletions are as many as a person reads.
const mostCompletions = 50

// completer offers words for an argument; args are those before it.
type completer = func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective)

// complete offers words for a flag.
func complete(cmd *cobra.Command, flag string, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// NoFiles keeps a shell from offering files for flags whose values are none.
func NoFiles(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions) // the flag is there
	}
}

// ask offers what the server has. Where it does not answer, nothing is offered.
func (r *Remote) ask(e *cli.Environment, words func(ctx context.Context, d *Desk, args []string, begun string) []cobra.Completion) completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		d, err := r.open(e)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer d.Close()
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		offered := slices.DeleteFunc(words(ctx, d, args, begun), func(w cobra.Completion) bool { return strings.ContainsFunc(strings.ReplaceAll(w, "\t", ""), cli.Odd) })
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}

// lockedWorkflows offers the workflows that are locked, for the first argument.
func lockedWorkflows(ctx context.Context, d *Desk, args []string, begun string) []cobra.Completion {
	if len(args) > 0 {
		return nil
	}
	page, err := d.LockPage(ctx, client.LockQuery{Prefix: begun, Limit: mostCompletions})
	if err != nil {
		return nil
	}
	var words []cobra.Completion
	for i := range page.Locks {
		words = append(words, cobra.CompletionWithDesc(page.Locks[i].Workflow, lockState(&page.Locks[i])))
	}
	return words
}

// lockHolder offers who holds the lock that the first argument names.
func lockHolder(ctx context.Context, d *Desk, args []string, _ string) []cobra.Completion {
	if len(args) == 0 {
		return nil
	}
	l, err := d.Lock(ctx, args[0])
	if err != nil {
		return nil
	}
	return []cobra.Completion{l.ExecutionID}
}

// knownExecutions offers executions, for the first argument.
func knownExecutions(ctx context.Context, d *Desk, args []string, begun string) []cobra.Completion {
	if len(args) > 0 {
		return nil
	}
	var words []cobra.Completion
	_ = d.beginning(ctx, begun, func(x *client.Execution) bool { // what was found in time is offered
		if strings.HasPrefix(x.ExecutionID, begun) {
			words = append(words, offer(x))
		}
		return len(words) < mostCompletions
	})
	return words
}

// offer is an execution as a completion.
func offer(x *client.Execution) cobra.Completion {
	what := string(x.Status) + " " + x.Workflow
	if x.EventID != "" {
		what += " " + x.EventID
	}
	return cobra.CompletionWithDesc(x.ExecutionID, what)
}

// offered are those whose IDs begin so.
func offered(executions []client.Execution, begun string) (words []cobra.Completion) {
	for i := range executions {
		if x := &executions[i]; strings.HasPrefix(x.ExecutionID, begun) {
			words = append(words, offer(x))
		}
	}
	return words
}
