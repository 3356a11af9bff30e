package remote

import (
	"strings"

	"github.com/spf13/cobra"

	"hooklock/cmd/hooklock/cli"
)

// NewActions returns the actions on an event as commands of their own: each is one of "executions".
func NewActions(e *cli.Environment) []*cobra.Command {
	var all []*cobra.Command
	for _, action := range []struct {
		name string
		make func(*cli.Environment, *Remote) *cobra.Command
	}{
		{"cancel", newExecutionsCancel}, {"retry", newExecutionsRerun}, {"allow", newExecutionsForget},
		{"try", newExecutionsRun}, {"skip", newExecutionsSkip},
	} {
		var r Remote
		cmd := action.make(e, &r)
		old := cmd.Name()
		_, arguments, _ := strings.Cut(cmd.Use, " ")
		cmd.Use, cmd.Aliases = action.name+" "+arguments, nil
		if old != action.name {
			cmd.Aliases = []string{old}
		}
		cmd.Example = strings.ReplaceAll(cmd.Example, "hooklock executions "+old, "hooklock "+action.name)
		cmd.Long += "\n\nID is that of an event, a part of it between slashes, that of an execution, or its beginning."
		r.Flags(cmd)
		all = append(all, cmd)
	}
	return all
}
