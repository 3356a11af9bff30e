package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/cmd/hooklock/cli"
)

// NewSuggest is the command suggest.
func NewSuggest(e *cli.Environment) *cobra.Command {
	var r Remote
	var since, route string
	cmd := &cobra.Command{
		Use:   "suggest [FILE...]",
		Short: "find out of the deliveries that came what names an event, its workflow, and what the sender changes",
		Long: `Print the routes that fit the deliveries which came, as YAML to paste: for each path what names an event (event_id), what its workflow is,
which members change between attempts of one event (ignore), and below it what that is concluded from. What cannot be known is said, and
left out. It needs no route: a hooklock that has only upstream: learns, too.

A hooklock learns from the newest 2000 deliveries of each path, by hashes whose key dies with it (limits.suggestions). So it knows what came
to itself, since its start, and two replicas cannot compare what they saw. FILE is what another one suggests, as -o json prints it: its
deliveries are counted, and of two suggestions for one path the one that saw more repeats is printed. Recorded deliveries: hooklock observe.`,
		Example: `  hooklock suggest
  hooklock suggest --route shop --since 24h
  hooklock suggest > routes.yaml && hooklock validate --config routes.yaml
  kubectl exec POD -- hooklock suggest -o json > other.json; hooklock suggest other.json`,
		RunE: r.Action(e, func(ctx context.Context, d *Desk, files []string) error {
			d.rewriteTimes(&since)
			if len(files) > 0 && d.isRaw() {
				return cli.Misuse(errors.New("-o, FILE: the suggestions of several replicas are printed as text alone"))
			}
			found, err := d.Suggestions(ctx, since, route)
			if err != nil {
				return err
			}
			for _, file := range files {
				if err := addSuggestions(found, file, route); err != nil {
					return cli.Misuse(err)
				}
			}
			return d.printObject(found.RawJSON(), func() error { return d.printSuggestions(found) })
		}),
	}
	r.Flags(cmd)
	cmd.Flags().StringVar(&route, "route", "", "the suggestion of that name, or for that path, alone")
	cmd.Flags().StringVar(&since, "since", "", "deliveries since then alone: "+momentsHelp)
	NoFiles(cmd, "route", "since")
	return cmd
}

// addSuggestions adds what another replica suggests.
func addSuggestions(to *client.SuggestionList, file, route string) error {
	text, err := os.ReadFile(file) //nolint:gosec // the file that the user names
	if err != nil {
		return err
	}
	var other client.SuggestionList
	if err := json.Unmarshal(text, &other); err != nil || other.Replica == "" {
		return fmt.Errorf("%s: is not what hooklock suggest -o json prints", file)
	}
	if to.Others--; other.Replica == to.Replica {
		return fmt.Errorf("%s: is of %s, which answers itself", file, other.Replica)
	}
	to.Passed, to.Missed = to.Passed+other.Passed, to.Missed+other.Missed
	for i := range other.Suggestions {
		s := &other.Suggestions[i]
		if route != "" && s.Route != route && s.Path != route {
			continue
		}
		at := slices.IndexFunc(to.Suggestions, func(o client.Suggestion) bool {
			return o.Path == s.Path && o.Configured == s.Configured
		})
		if at < 0 {
			to.Suggestions = append(to.Suggestions, *s)
			continue
		}
		to.Suggestions[at] = mergedSuggestion(&to.Suggestions[at], s)
	}
	return nil
}

// mergedSuggestion returns the suggestion of two replicas for a path that knows more, with what the
// other one saw.
func mergedSuggestion(a, b *client.Suggestion) client.Suggestion {
	repeats := func(s *client.Suggestion) int {
		if s.Predicted == nil {
			return -1
		}
		return s.Predicted.Repeats
	}
	if repeats(b) > repeats(a) {
		a, b = b, a
	}
	merged := *a
	merged.Deliveries += b.Deliveries
	said := fmt.Sprintf("Another replica saw %d deliveries, and suggests the same.", b.Deliveries)
	switch {
	case b.EventID == "" && a.EventID != "":
		said = fmt.Sprintf("Another replica saw %d deliveries, and does not know what names an event.", b.Deliveries)
	case a.EventID != b.EventID, a.Workflow != b.Workflow, !slices.Equal(a.Ignore, b.Ignore):
		said = fmt.Sprintf("Another replica saw %d deliveries, and suggests event_id %s, workflow %s, ignore [%s]: "+
			"compare them before you choose.",
			b.Deliveries, cmp.Or(b.EventID, "unknown"), cmp.Or(b.Workflow, "unknown"), strings.Join(b.Ignore, ", "))
	}
	merged.Sentences = append(slices.Clone(a.Sentences), said+" A repeat that came to the other one is not counted.")
	return merged
}

// printSuggestions prints the routes as YAML, with everything else as comments.
func (d *Desk) printSuggestions(list *client.SuggestionList) error {
	var b strings.Builder
	note := func(format string, args ...any) { b.WriteString("# " + cli.Plain(fmt.Sprintf(format, args...)) + "\n") }
	switch {
	case !list.Recording:
		note("%s does not learn from deliveries: limits.suggestions is 0B.", list.Replica)
	case len(list.Suggestions) == 0:
		note("%s has seen no delivery to learn from: send one, or wait.", list.Replica)
	default:
		b.WriteString("routes:\n")
	}
	for i := range list.Suggestions {
		for line := range strings.Lines(list.Suggestions[i].Paste()) {
			b.WriteString(cli.Plain(strings.TrimSuffix(line, "\n")) + "\n")
		}
	}
	if list.Passed > 0 {
		note("%d deliveries were not looked at, because more than 200 came in a second.", list.Passed)
	}
	if list.Missed > 0 {
		note("%d deliveries of further paths were forgotten for others.", list.Missed)
	}
	if list.Others > 0 {
		note("%d more replicas are alive, and saw deliveries of their own: give what each suggests as FILE.",
			list.Others)
	}
	_, err := d.environment.Stdout.Write([]byte(b.String()))
	return err
}
