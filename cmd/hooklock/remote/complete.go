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

// completionTime bounds a completion.
const completionTime = 2 * time.Second

// mostCompletions bounds the words of a completion.
const mostCompletions = 50

// completer returns words for an argument; args are the arguments before it.
type completer = func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective)

// completeFlag registers the words of a flag; without any, it takes no files.
func completeFlag(cmd *cobra.Command, flag string, words ...string) {
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// NoFiles registers flags whose values are not files.
func NoFiles(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		completeFlag(cmd, flag)
	}
}

// textFlag adds a flag that takes a text, with the words of its completion.
func textFlag(cmd *cobra.Command, into *string, name, usage string, words ...string) {
	cmd.Flags().StringVar(into, name, "", usage)
	completeFlag(cmd, name, words...)
}

// completerOf returns a completer that asks the server. It offers nothing if the server does not
// answer.
func (r *Remote) completerOf(e *cli.Environment,
	words func(ctx context.Context, d *Desk, args []string, begun string) []cobra.Completion) completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		d, err := r.open(e)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer d.Close()
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		offered := slices.DeleteFunc(words(ctx, d, args, begun), func(w cobra.Completion) bool {
			return strings.ContainsFunc(strings.ReplaceAll(w, "\t", ""), cli.Odd)
		})
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}

// askFirst returns a completer of the first argument that asks the server.
func (r *Remote) askFirst(e *cli.Environment,
	words func(ctx context.Context, d *Desk, begun string) []cobra.Completion) completer {
	return r.completerOf(e, func(ctx context.Context, d *Desk, args []string, begun string) []cobra.Completion {
		if len(args) > 0 {
			return nil
		}
		return words(ctx, d, begun)
	})
}

// lockedWorkflows offers the locked workflows.
func lockedWorkflows(ctx context.Context, d *Desk, begun string) []cobra.Completion {
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

// lockHolder offers the executions that hold the lock of the workflow in the first argument.
func lockHolder(ctx context.Context, d *Desk, args []string, _ string) []cobra.Completion {
	if len(args) == 0 {
		return nil
	}
	l, err := d.Lock(ctx, args[0])
	if err != nil {
		return nil
	}
	if len(l.Executions) > 0 {
		return l.Executions
	}
	return []cobra.Completion{l.ExecutionID}
}

// knownExecutions offers execution IDs.
func knownExecutions(ctx context.Context, d *Desk, begun string) []cobra.Completion {
	var words []cobra.Completion
	_ = d.eachWithBeginning(ctx, begun, func(x *client.Execution) bool { // an error leaves what was found in time
		if strings.HasPrefix(x.ExecutionID, begun) {
			words = append(words, completionOf(x))
		}
		return len(words) < mostCompletions
	})
	return words
}

// knownEvents offers event IDs, or execution IDs for a word that begins like one.
func knownEvents(ctx context.Context, d *Desk, begun string) []cobra.Completion {
	if strings.HasPrefix(begun, strings.TrimSuffix(idPrefix, "_")) {
		return knownExecutions(ctx, d, begun)
	}
	page, err := d.ExecutionPage(ctx, client.ExecutionQuery{Text: begun, Limit: mostCompletions})
	if err != nil {
		return nil
	}
	var words []cobra.Completion
	for i := range page.Executions {
		if x := &page.Executions[i]; x.EventID != "" && strings.HasPrefix(x.EventID, begun) {
			words = append(words, cobra.CompletionWithDesc(x.EventID, string(x.Status)+" "+x.Workflow))
		}
	}
	return words
}

// completionOf returns an execution as a completion.
func completionOf(x *client.Execution) cobra.Completion {
	what := string(x.Status) + " " + x.Workflow
	if x.EventID != "" {
		what += " " + x.EventID
	}
	return cobra.CompletionWithDesc(x.ExecutionID, what)
}

// completionsOf returns the executions whose IDs begin with begun.
func completionsOf(executions []client.Execution, begun string) (words []cobra.Completion) {
	for i := range executions {
		if x := &executions[i]; strings.HasPrefix(x.ExecutionID, begun) {
			words = append(words, completionOf(x))
		}
	}
	return words
}
