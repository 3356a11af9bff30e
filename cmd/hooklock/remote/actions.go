package remote

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hooklock/cmd/hooklock/cli"
)

// newCommand returns a command of "executions", which gets its flags from the Remote.
type newCommand func(*cli.Environment, *Remote) *cobra.Command

// NewActions returns the actions on an event. Each has the name of its call in the API; its former
// name, and the same below "executions", go on working without being listed.
func NewActions(e *cli.Environment) []*cobra.Command {
	return slices.Concat(
		onTop(e, newExecutionsCancel, "cancel"),
		onTop(e, newExecutionsErase, "erase"),
		onTop(e, newExecutionsForget, "forget", "allow"),
		onTop(e, newExecutionsRerun, "rerun", "retry"),
		onTop(e, newExecutionsRun, "run", "try"),
		onTop(e, newExecutionsSkip, "skip"),
	)
}

// NewKept returns the commands that print what is stored of an event.
func NewKept(e *cli.Environment) []*cobra.Command {
	return slices.Concat(onTop(e, newExecutionsAnswer, "answer"), onTop(e, newExecutionsRequest, "request"))
}

// onTop returns a command of "executions" as one of the program, under each of the names. Only the
// first is listed.
func onTop(e *cli.Environment, makeCommand newCommand, names ...string) []*cobra.Command {
	var all []*cobra.Command
	for i, name := range names {
		var r Remote
		cmd := makeCommand(e, &r)
		_, arguments, _ := strings.Cut(cmd.Use, " ")
		cmd.Use, cmd.Aliases, cmd.Hidden = name+" "+arguments, nil, i > 0
		cmd.Example = strings.ReplaceAll(cmd.Example, "hooklock executions ", "hooklock ")
		if strings.Contains(arguments, "ID") {
			cmd.Long += "\n\nID is that of an event, a part of it between slashes, that of an execution, or its " +
				"beginning."
		}
		r.Flags(cmd)
		all = append(all, cmd)
	}
	return all
}
