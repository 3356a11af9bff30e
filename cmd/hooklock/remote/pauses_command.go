package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/cmd/hooklock/cli"
	"hooklock/idem"
	"hooklock/idem/naming"
)

// drainLook is the interval of --drain.
const drainLook = 500 * time.Millisecond

// pauseFlags are how a scope is paused.
type pauseFlags struct {
	reason       string
	until        time.Duration // how long it lasts; 0 = until it is resumed
	drain, force bool
}

// NewPause is the command pause.
func NewPause(e *cli.Environment) *cobra.Command {
	var r Remote
	var f pauseFlags
	cmd := &cobra.Command{
		Use:   "pause route:NAME|workflow:PATTERN --reason TEXT",
		Short: "let nothing of a route, or of workflows, begin",
		Long: `Let nothing of a route, or of the workflows that a pattern covers, begin any more. What runs goes on, and duplicates of settled events are
answered as ever. New events are parked where their route has park, wait under strategy wait, and are refused with 503 workflow_paused and
Retry-After otherwise. What is parked already rests.

The pause is kept in etcd: no deploy and no restart lifts it. Each replica obeys it as soon as its watch has reported it;
--drain waits until all do, and until nothing of it runs at any of them: then nothing begins until "hooklock resume". Ctrl-C ends the waiting
and not the pause.

A name without its kind is a route's, or, with / or * in it, a workflow's. A pause of the same scope is replaced, so the same command with another --until prolongs it.

A route that the replica does not have is refused, and so is a pattern that no known workflow fits, with exit code 2; --force pauses them all the same.`,
		Example: `  hooklock pause route:stripe --reason "migration of the orders table" --until 15m --drain
  hooklock pause 'workflow:stripe/acme*' --reason "refunds run twice"`,
		Args: OneArg("route:NAME|workflow:PATTERN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("until") && f.until <= 0 {
				return cli.Misuse(fmt.Errorf("--until %s: give how long the pause lasts, such as 15m, or leave it out",
					f.until))
			}
			return r.run(cmd.Context(), e, func(ctx context.Context, d *Desk) error {
				return d.beginPause(ctx, args[0], &f)
			})
		},
	}
	r.Flags(cmd)
	reasonFlag(cmd, &f.reason, `"migration of the orders table"`)
	cmd.Flags().BoolVar(&f.force, "force", false, "pause also if no known route or workflow matches")
	cmd.Flags().DurationVar(&f.until, "until", 0, "end it after that time, such as 15m (default: at hooklock resume)")
	cmd.Flags().BoolVar(&f.drain, "drain", false, "wait until nothing of it runs")
	NoFiles(cmd, "until")
	return cmd
}

// beginPause pauses the scope that text means.
func (d *Desk) beginPause(ctx context.Context, text string, f *pauseFlags) error {
	scope, err := d.pauseScope(ctx, text)
	if err != nil {
		return err
	}
	fits := ""
	if !f.force {
		if fits, err = d.checkScope(ctx, scope); err != nil {
			return err
		}
	}
	p, err := d.BeginPause(ctx, scope, f.reason, f.until)
	if err != nil {
		return withDoubt(ofUntil(err), "hooklock pauses")
	}
	d.warnOfPause(p)
	if f.drain {
		if p, err = d.waitUntilDrained(ctx, scope); err != nil {
			return err
		}
	}
	return d.PrintResult(p.RawJSON(), d.pauseText(p)+fits)
}

// ofUntil names the flag --until in an error of the API about its parameter for.
func ofUntil(err error) error {
	if refused, ok := errors.AsType[*client.Problem](err); ok {
		if rest, ok := strings.CutPrefix(refused.Detail, "for: "); ok {
			refused.Detail = "--until: " + rest
		}
	}
	return err
}

// pauseScope returns the scope that text means: a route of that name, or, where it could not be a
// route's, the workflows of that name or pattern.
func (d *Desk) pauseScope(ctx context.Context, text string) (string, error) {
	if strings.HasPrefix(text, "route:") || strings.HasPrefix(text, "workflow:") {
		return text, nil
	}
	names, err := d.routeNames(ctx)
	switch near := naming.Nearest(text, names); {
	case err != nil: // the API says what is wrong with the scope
		return text, nil //nolint:nilerr // see above
	case slices.Contains(names, text):
		return "route:" + text, nil
	case strings.ContainsAny(text, "/*"):
		return "workflow:" + text, nil
	case near != "":
		return "", cli.Misuse(fmt.Errorf("unknown scope %q: give route:NAME, or workflow:PATTERN; did you mean "+
			"route:%s?", text, near))
	}
	return "", cli.Misuse(fmt.Errorf("unknown scope %q: give route:NAME, or workflow:PATTERN", text))
}

// routeNames returns the names of the routes of the replica.
func (d *Desk) routeNames(ctx context.Context) (names []string, err error) {
	list, err := d.Routes(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range list.Routes {
		names = append(names, r.Route)
	}
	return names, nil
}

// checkScope returns a text with the known workflows that a scope covers. It returns an error if
// there is none, or no such route: the scope is probably mistyped. If the API does not say, it
// returns "", and the pause goes ahead.
func (d *Desk) checkScope(ctx context.Context, text string) (string, error) {
	const forced = "; nothing was paused; --force pauses it all the same"
	scope, err := idem.ParsePauseScope(text)
	if err != nil { // the API says what is wrong with it
		return "", nil //nolint:nilerr // see above
	}
	if scope.Route != "" {
		names, err := d.routeNames(ctx)
		if err != nil {
			return "", nil //nolint:nilerr // see above
		}
		switch near := naming.Nearest(scope.Route, names); {
		case slices.Contains(names, scope.Route):
			return "", nil
		case near != "":
			return "", cli.Misuse(fmt.Errorf("no route is called %q, did you mean %q?%s", scope.Route, near, forced))
		}
		return "", cli.Misuse(fmt.Errorf("no route is called %q: there are %s%s", scope.Route,
			strings.Join(names, ", "), forced))
	}
	page, err := d.ExecutionPage(ctx, client.ExecutionQuery{Workflow: scope.Workflow, Limit: mostOnAPage})
	if err != nil {
		return "", nil //nolint:nilerr // see above
	}
	var names []string
	for i := range page.Executions {
		if w := page.Executions[i].Workflow; !slices.Contains(names, w) {
			names = append(names, w)
		}
	}
	least := ""
	if page.NextCursor != "" {
		least = "at least "
	}
	switch n := len(names); {
	case n == 0 && page.NextCursor == "":
		return "", cli.Misuse(fmt.Errorf("no known workflow matches %s%s", cli.Plain(text), forced))
	case n == 0:
		return "; none of the workflows with the newest events matches it", nil
	case n == 1:
		return "; " + least + "1 known workflow matches: " + names[0], nil
	default:
		return fmt.Sprintf("; %s%d known workflows match, such as %s", least, n, strings.Join(names[:min(n, 3)], ", ")),
			nil
	}
}

// warnOfPause prints the warning of a pause, which is in force all the same.
func (d *Desk) warnOfPause(p *client.Pause) {
	if p.Warning != "" {
		fmt.Fprintf(d.environment.Stderr, "warning: %s is paused, but %s\n", cli.Plain(p.Scope), cli.Plain(p.Warning))
	}
}

// waitUntilDrained waits until nothing of a pause runs.
func (d *Desk) waitUntilDrained(ctx context.Context, scope string) (p *client.Pause, err error) {
	err = d.progress.runShown(ctx, "wait until nothing of "+cli.Plain(scope)+" runs", func() error {
		for {
			if p, err = d.Pause(ctx, scope); err != nil {
				return fmt.Errorf("it is paused; whether nothing of it runs is not known: %w", err)
			}
			if p.Drained {
				return nil
			}
			if !cli.Pause(ctx, drainLook) {
				return cli.WithCode(fmt.Errorf("%s; interrupted, and it stays paused", d.pauseText(p)), cli.ExitFailed)
			}
		}
	})
	return p, err
}

// pauseText returns how far a pause has come.
func (d *Desk) pauseText(p *client.Pause) string {
	text := p.Scope + " is paused"
	if !p.Until.IsZero() {
		text += " until " + d.shown.Stamp(p.Until.Time)
	}
	switch {
	case p.Drained:
		return text + "; nothing of it runs"
	case len(p.Unheard) > 0:
		replicas := "replicas"
		if len(p.Unheard) == 1 {
			replicas = "replica"
		}
		var names []string
		for _, name := range p.Unheard {
			names = append(names, replicaOf(name))
		}
		return text + fmt.Sprintf("; %d running; %d %s not yet confirmed (%s)", p.Running, len(names), replicas,
			strings.Join(names, ", "))
	case p.Incomplete:
		return text + "; too much runs to be counted"
	}
	return text + fmt.Sprintf("; %d still running", p.Running)
}

// NewResume is the command resume.
func NewResume(e *cli.Environment) *cobra.Command {
	var r Remote
	var reason string
	cmd := &cobra.Command{
		Use: "resume route:NAME|workflow:PATTERN", SuggestFor: []string{"unpause", "continue"},
		Short:   "end a pause",
		Long:    `End a pause: what waits runs, each workflow in the order in which its events came. The exit code is 3 where nothing of that name is paused.`,
		Example: `  hooklock resume route:stripe`,
		Args:    OneArg("route:NAME|workflow:PATTERN"),
		RunE: r.Action(e, func(ctx context.Context, d *Desk, args []string) error {
			scope, err := d.pausedScope(ctx, args[0])
			if err != nil {
				return err
			}
			return printChange(d, "hooklock pauses", func(p *client.EndedPause) string {
				return p.Scope + " is resumed; " + p.By + " had paused it: " + p.Reason
			})(d.Resume(ctx, scope, reason))
		}),
	}
	r.Flags(cmd)
	textFlag(cmd, &reason, "reason", "for the audit log")
	return cmd
}

// pausedScope returns the scope that is paused and that text means, with or without its kind.
func (d *Desk) pausedScope(ctx context.Context, text string) (string, error) {
	if strings.HasPrefix(text, "route:") || strings.HasPrefix(text, "workflow:") {
		return text, nil
	}
	l, err := d.Pauses(ctx)
	if err != nil {
		return "", err
	}
	for i := range l.Pauses {
		if _, name, _ := strings.Cut(l.Pauses[i].Scope, ":"); name == text {
			return l.Pauses[i].Scope, nil
		}
	}
	return "", cli.WithCode(fmt.Errorf("nothing of the name %s is paused; hooklock pauses lists what is",
		cli.Plain(text)), cli.ExitNotFound)
}

// NewPauses is the command pauses.
func NewPauses(e *cli.Environment) *cobra.Command {
	var r Remote
	cmd := &cobra.Command{
		Use:   "pauses",
		Short: "list what is paused",
		Long: `List what is paused, the oldest first: by whom, since when and why, how many executions wait (PARKED of them have their answer), and how many still
run. STATE is drained where nothing of it runs or can begin, draining where something runs, and spreading where a replica has not acknowledged
it.`,
		Example: `  hooklock pauses
  hooklock pauses -o json | jq -r '.pauses[] | select(.drained | not) | .scope'`,
		Args: cli.NoArgs,
		RunE: r.Action(e, func(ctx context.Context, d *Desk, _ []string) error {
			return printAnswer(d, d.printPauses)(d.Pauses(ctx))
		}),
	}
	r.Flags(cmd)
	r.watchFlag(cmd)
	return cmd
}

func (d *Desk) printPauses(l *client.PauseList) error {
	now := time.Now()
	if len(l.Pauses) == 0 {
		fmt.Fprintln(d.environment.Stderr, "nothing is paused")
		return nil
	}
	t := d.newTable("SCOPE", "STATE", "AGE", "LEFT", "WAITING", "PARKED", "RUNNING", "BY", "REASON")
	t.Drop, t.Cut = []string{"PARKED", "BY"}, map[string]int{"SCOPE": 12, "REASON": 12}
	for i := range l.Pauses {
		p := &l.Pauses[i]
		t.Add(p.Scope, pauseState(p), cli.Span(now.Sub(p.Since.Time)), pauseLeft(p.Until, now), strconv.Itoa(p.Waiting),
			strconv.Itoa(p.Parked), strconv.Itoa(p.Running), p.By, p.Reason)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range l.Pauses {
		d.warnOfPause(&l.Pauses[i])
	}
	return nil
}

func pauseState(p *client.Pause) string {
	switch {
	case p.Drained:
		return "drained"
	case len(p.Unheard) > 0:
		return "spreading"
	}
	return "draining"
}

// pauseLeft returns the time until a pause ends by itself, or "" if it has no end.
func pauseLeft(until client.Time, now time.Time) string {
	if until.IsZero() {
		return ""
	}
	return cli.Span(max(0, until.Sub(now)))
}
