package remote

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
)

// outputMarkdown is an output of show alone.
const outputMarkdown = "md"

// NewShow is the command show.
func NewShow(e *cli.Environment) *cobra.Command {
	r := Remote{more: []string{outputMarkdown}}
	var web bool
	var wait time.Duration
	cmd := &cobra.Command{
		ValidArgsFunction: r.askFirst(e, knownEvents),

		Use: "show TEXT", SuggestFor: []string{"find", "get", "search", "describe"},
		Short: "say what happened to an event and what to do, by anything in hand",
		Long: `Say what happened to an event and what an operator can do about it, then all that is known of it. TEXT is an event ID or a part of one, a label
(order:1042) or its value, an execution ID, its beginning or its last letters, an idempotency key, a trace ID, or a workflow; where several events match, they are
listed, and what came with its event ID and a bad signature as well. -o md writes Markdown for a ticket, and --web prints the address of the event's page. With --wait it is shown when its execution changes, and at once when that
has ended; when nothing changes in that time (at most 5m), as it is. The exit code is 3 when nothing is found.`,
		Example: `  hooklock show evt_1QRefused409
  hooklock show order:1042
  hooklock show 72d3162e-cc78-11e3-81ab-4c9367dc0958 -o md
  hooklock show evt_1QRefused409 --wait 30s -o json
  hooklock show --web exec_7hq3p2k5wv6d4x3nbyc2`,
		Args: OneArg("event, or anything of it"),
		RunE: r.Action(e, func(ctx context.Context, d *Desk, args []string) error {
			if wait < 0 {
				return cli.Misuse(fmt.Errorf("--wait %s: a time span is not negative", wait))
			}
			found, err := d.searchEvents(ctx, args[0])
			if client.IsCode(err, client.CodeExecutionNotFound) && d.output != outputMarkdown && !web {
				return d.showBadSignatures(ctx, args[0], err)
			}
			if err != nil {
				return err
			}
			if len(found.events) > 1 || !found.complete && !isCalled(found.events[0].EventID,
				args[0]) && !hasLabel(&found.events[0], args[0]) {
				if d.output == outputMarkdown || web {
					return cli.Misuse(fmt.Errorf("%s means several events; hooklock show lists them",
						cli.Plain(args[0])))
				}
				return d.showSeveral(ctx, found, args[0])
			}
			x, err := d.completeExecution(ctx, &found.events[0], wait)
			if err != nil {
				return err
			}
			if web {
				_, err := fmt.Fprintln(d.environment.Stdout, d.pageAddress(x))
				return err
			}
			return d.tellStory(ctx, x)
		}),
	}
	r.Flags(cmd)
	cmd.PersistentFlags().Lookup("output").Usage += "; md: for a ticket"
	r.watchFlag(cmd)
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait so long for a change, e.g. 30s; at most 5m")
	NoFiles(cmd, "wait")
	cmd.Flags().BoolVar(&web, "web", false, "print the address of its page, and nothing else")
	return cmd
}

// showSeveral lists the events that text means.
func (d *Desk) showSeveral(ctx context.Context, found *hits, text string) error {
	l := d.listHits(ctx, found)
	d.asEvents(l)
	if err := l.print(d); err != nil || d.output != outputTable {
		return err
	}
	return d.addBadSignatures(ctx, client.BadSignatureQuery{EventID: text})
}

// completeExecution returns an event of a list with all that is known of it, at its next change or
// after wait; 0: at once.
func (d *Desk) completeExecution(ctx context.Context, x *client.Execution, wait time.Duration) (*client.Execution,
	error) {
	if x.ExecutionID == "" { // a list has all of it
		return x, nil
	}
	whole, err := d.AwaitExecution(ctx, x.ExecutionID, wait)
	if client.IsCode(err, client.CodeExecutionNotFound) { // it has been forgotten meanwhile
		return x, nil
	}
	return whole, err
}

// pageAddress returns the address of an event's page.
func (d *Desk) pageAddress(x *client.Execution) string {
	q := url.Values{"id": {x.ExecutionID}}
	if x.ExecutionID == "" {
		q = url.Values{"key": {x.IdempotencyKey}, "workflow": {x.Workflow}}
	}
	return d.url + "/#story?" + q.Encode()
}

// tellStory prints what happened to an event, what to do, and all that is known of it.
func (d *Desk) tellStory(ctx context.Context, x *client.Execution) error {
	s := story.Story{Execution: x, Lock: d.lockOf(ctx, x), Rules: d.rulesOf(ctx, x.Route), Now: time.Now(),
		Stamp: d.shown.Stamp}
	if d.output == outputMarkdown {
		_, err := fmt.Fprint(d.environment.Stdout, s.Markdown(d.pageAddress(x)))
		return err
	}
	return d.printObject(x.RawJSON(), func() error {
		d.printParagraph(s.Happened())
		if todo := s.Todo(); todo != "" {
			d.printParagraph("What to do: " + todo)
		}
		fmt.Fprintln(d.environment.Stdout)
		if err := d.showRows(x, d.lockText(x, s.Lock)); err != nil {
			return err
		}
		return d.addBadSignatures(ctx, client.BadSignatureQuery{Route: x.Route, EventID: x.EventID})
	})
}

// printParagraph prints a text, wrapped on a terminal.
func (d *Desk) printParagraph(text string) {
	text = cli.Plain(text) + "\n"
	if d.screen.Terminal() {
		text = cli.Wrap(text, d.screen.Width)
	}
	fmt.Fprint(d.environment.Stdout, text)
}

// rulesOf returns what a route does; nil = nothing is known.
func (d *Desk) rulesOf(ctx context.Context, route string) *client.RouteRules {
	list, err := d.Routes(ctx)
	if err != nil {
		return nil
	}
	return list.Of(route)
}
