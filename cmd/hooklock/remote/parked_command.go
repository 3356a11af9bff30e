package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
)

// parkedFlags select executions whose request is stored, or events that are possibly lost.
type parkedFlags struct{ any, blocked, deadLetters, lost bool }

func (p *parkedFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.any, string(client.ParkWaiting), false,
		"only executions with a stored request: parked ones and dead letters")
	cmd.Flags().BoolVar(&p.blocked, "blocked", false, "only parked ones that wait for a person")
	cmd.Flags().BoolVar(&p.deadLetters, "dead-letters", false,
		"only parked executions that ended without success and can be run again")
	cmd.Flags().BoolVar(&p.lost, "lost", false,
		"only events that are possibly lost: they were refused and did not come again in time")
}

func (p *parkedFlags) isAsked() bool { return p.any || p.blocked || p.deadLetters }

// narrowQuery sets q to the flags. It refuses flags that exclude each other.
func (p *parkedFlags) narrowQuery(q *client.ExecutionQuery) error {
	if p.lost && (p.isAsked() || q.Status != "" || q.Outcome != "" || q.Decision != "") {
		return errors.New("--lost is for events that were refused and did not come again: leave out --status, " +
			"--outcome, --decision, --parked, --blocked and --dead-letters")
	}
	if q.Lost = p.lost; !p.isAsked() {
		return nil
	}
	q.Parked = true
	switch {
	case p.blocked && p.deadLetters:
		return errors.New("--blocked, --dead-letters: give one of them; --parked lists both")
	case q.Status != "":
		return errors.New("--status does not apply to parked executions: give --blocked or --dead-letters")
	case q.Decision != "":
		return errors.New("--decision is for the list of all executions: leave out --parked, --blocked and " +
			"--dead-letters")
	case p.blocked:
		q.State = client.ParkBlocked
	case p.deadLetters:
		q.State = client.ParkDeadLetter
	}
	return nil
}

// showParkedIn sets the columns and the empty message of a list of parked executions.
func (d *Desk) showParkedIn(l *listing[client.Execution], state client.ParkState) {
	now := time.Now()
	none := "no accepted events and no dead letters"
	switch state {
	case client.ParkBlocked:
		none = "no blocked queues"
	case client.ParkDeadLetter:
		none = "no dead letters"
	}
	if l.none = none; !d.screen.Terminal() || d.output == outputWide {
		l.head = []string{"EXECUTION", "STATE", "AGE", "TRIES", "NEXT", "WORKFLOW", "EVENT", "WHY"}
		l.row = func(x *client.Execution) []string { return d.parkedRow(x, now) }
	}
}

func (d *Desk) parkedRow(x *client.Execution, now time.Time) []string {
	state, since, tries, next, because := "dead letter", x.StartedAt, x.Tries, "", d.reasonText(x)
	if p := x.Parked; p != nil {
		state, since, tries, because = string(client.ParkWaiting), p.Since, p.Tries, evidenceText(p.LastEvidence)+
			x.LastFailed()
		if !p.NextAttempt.IsZero() {
			next = cli.Span(max(0, p.NextAttempt.Sub(now)))
		}
		if p.Blocked != "" {
			state, because = "blocked", p.Blocked+x.LastFailed()
		}
	}
	return []string{x.ExecutionID, state, cli.Span(now.Sub(since.Time)), strconv.Itoa(tries), next, x.Workflow,
		x.EventID, because}
}

// evidenceText returns what is known of a try, or "" if none has ended.
func evidenceText(e *client.Evidence) string {
	if e == nil {
		return ""
	}
	text := string(e.Outcome)
	if e.Status != 0 {
		text += fmt.Sprintf(", answered %d", e.Status)
	}
	for _, more := range []string{e.Code, e.Detail} {
		if more != "" {
			text += ": " + more
		}
	}
	return text
}

// showParked adds what a parked execution waits for, or what is stored of one that has ended.
func (d *Desk) showParked(x *client.Execution, add func(name, value string)) {
	if x.RequestKept {
		add("request", "kept: it can be run again")
	}
	if x.RequestStored != "" {
		add("request stored", x.RequestStored)
	}
	add("tries", numberText(x.Tries))
	add("parked for", x.ParkedOn)
	p := x.Parked
	if p == nil {
		return
	}
	add("waits since", d.shown.Stamp(p.Since.Time)+" ("+cli.Span(time.Since(p.Since.Time))+" ago), for "+p.On)
	add("tries", fmt.Sprintf("%d, of which %d failed", p.Tries, p.Failures))
	if p.LastEvidence != nil {
		add("last try", d.shown.Stamp(p.LastEvidence.At.Time)+" "+evidenceText(p.LastEvidence))
	}
	if !p.NextAttempt.IsZero() {
		add("next try", d.shown.Stamp(p.NextAttempt.Time))
	}
	add("blocked", p.Blocked)
}

// person is a command about one parked execution, or about all that match a filter.
type person struct {
	action      client.ParkedAction
	aliases     []string
	short, long string
	example     string // a reason
	done        func(*client.Execution) string
	state       client.ParkState   // that a flag selects
	flag, about string             // the flag and its help
	known       []client.ParkState // what completion offers
	again       bool               // it may be about any event that has ended
}

func newExecutionsRun(e *cli.Environment, r *Remote) *cobra.Command {
	return newPerson(e, r, &person{
		action: client.Run, aliases: []string{"try"}, short: "let parked executions be tried now",
		example: `"repaired"`, done: func(x *client.Execution) string {
			return x.ExecutionID + " is tried now, or next in the queue of " + x.Workflow
		},
		long: `Let a parked execution be tried now, whatever it waits for: its next try, or a person. It has its whole max_age again from now. One that is not at
the head of its queue goes on waiting for those before it.`,
		state: client.ParkBlocked, flag: "blocked", about: "all that wait for a person",
		known: []client.ParkState{client.ParkBlocked, client.ParkWaiting},
	})
}

func newExecutionsSkip(e *cli.Environment, r *Remote) *cobra.Command {
	return newPerson(e, r, &person{
		action: client.Skip, short: "end parked executions as dead letters, so that the next of their queues run",
		example: `"poison"`, done: func(x *client.Execution) string {
			return x.ExecutionID + " is a dead letter"
		},
		long: `End a parked execution as a dead letter: its request is kept as long as its record, so that it can be run again later (hooklock rerun), and the
next one of its workflow runs. The try of one that runs is closed.`,
		state: client.ParkBlocked, flag: "blocked", about: "all that wait for a person",
		known: []client.ParkState{client.ParkBlocked, client.ParkWaiting},
	})
}

func newExecutionsRerun(e *cli.Environment, r *Remote) *cobra.Command {
	return newPerson(e, r, &person{
		action: client.Rerun, aliases: []string{"retry"}, short: "let dead letters run again", example: `"repaired"`,
		done: func(x *client.Execution) string {
			return "retrying as " + x.ExecutionID + ", last in the queue of " + x.Workflow
		},
		long: `Let the event of a dead letter run again, with the request as it came: a new execution of the same event, the last in its workflow's queue.
Several of one workflow run in the order in which they were in it.

With --again any event that has ended runs once more, also one that was settled, if its route keeps the requests of all events (requests.keep). Until that
has ended, duplicates meet it; after that they get its answer, or that of the attempt before if it does not settle the event. Several of one workflow run in
the order in which they had run.

With --to the kept requests, of all that have ended, go from this machine to another service instead, such as a new version: without lock and record, with
Hooklock-Replay: true and the Host of the URL. The report says how long it took, and which answers differ from the recorded ones (the status; the body where
the record has its hash). The exit code is 1 where any does, or none came. It needs a token with the scope bodies; each request has a line in the audit log.`,
		again: true, state: client.ParkDeadLetter, flag: "dead-letters", about: "all dead letters",
		known: []client.ParkState{client.ParkDeadLetter},
	})
}

func newPerson(e *cli.Environment, r *Remote, p *person) *cobra.Command {
	var b client.Bulk
	var byState, detach, again bool
	var to, toCA string
	name := string(p.action)
	cmd := &cobra.Command{
		ValidArgsFunction: r.askFirst(e, keptExecutions(p.known)),

		Use: name + " [ID] --reason TEXT", Aliases: p.aliases,
		Short: p.short,
		Long: p.long + `

Without an ID it is done with all that fit the filter, so many a second as --rate says; --dry-run shows them. That is a job, which the replicas run: this
command watches it (see "hooklock jobs watch"), and --detach does not. Each event has a line in the audit log.`,
		Example: `  hooklock executions ` + name + ` exec_7hq3p2k5wv6d4x3nbyc2zt5gj4m6s7ra --reason ` + p.example + `
  hooklock executions ` + name + ` --` + p.flag + ` --route orders --dry-run
  hooklock executions ` + name + ` --workflow orders/acme --rate 50 --reason ` + p.example,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return OneArg("ID")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if byState {
				b.Filter.State = p.state
			}
			if toCA != "" && to == "" {
				return cli.Misuse(errors.New("--to-ca-file is of --to: say where the requests are to go"))
			}
			many, err := p.isAboutMany(cmd, args, &b, again, to != "")
			if err != nil {
				return err
			}
			if to != "" {
				return r.replayTo(cmd.Context(), e, to, toCA, args, &b)
			}
			return r.run(cmd.Context(), e, func(ctx context.Context, d *Desk) error {
				switch {
				case many:
					return d.actOnAll(ctx, p, &b, again, detach)
				case again:
					return d.runAgain(ctx, p, args[0], b.Reason)
				}
				return d.actOn(ctx, p, args[0], b.Reason)
			})
		},
	}
	textFlag(cmd, &b.Filter.Workflow, "workflow", "this workflow, or those that match a pattern: orders/*")
	textFlag(cmd, &b.Filter.Route, "route", "all of this route")
	textFlag(cmd, &b.Filter.Label, "label", "all with this label: order=1042, or the value alone")
	textFlag(cmd, &b.Filter.Since, "since", "all that ended (or began, if it has not ended) since "+momentsHelp)
	textFlag(cmd, &b.Filter.Until, "until", "all that ended (or began, if it has not ended) until then")
	cmd.Flags().BoolVar(&byState, p.flag, false, p.about)
	cmd.Flags().BoolVar(&b.DryRun, "dry-run", false, "show what would be done, and do nothing")
	cmd.Flags().BoolVar(&detach, "detach", false, "start the job, and do not watch it")
	cmd.Flags().IntVar(&b.Rate, "rate", 0, "how many a second, at most 1000 (default 10)")
	NoFiles(cmd, "rate")
	if p.again {
		againFlags(cmd, &b, &again)
		textFlag(cmd, &to, "to", "send the kept requests from here to another service, as http://HOST:PORT, and run "+
			"nothing")
		cmd.Flags().StringVar(&toCA, "to-ca-file", "", "authority that signed the certificate of an https --to "+
			"(default: the system's)")
	}
	reasonFlag(cmd, &b.Reason, "")
	return cmd
}

// isAboutMany reports whether the command is about all that match the filter of b, and not about
// the one of args. It refuses what is neither, flags that exclude each other, and a lack of a
// reason if something changes; sends: it sends requests elsewhere, which changes nothing.
func (p *person) isAboutMany(cmd *cobra.Command, args []string, b *client.Bulk, again, sends bool) (bool, error) {
	if err := checkAgain(b, again, sends); err != nil {
		return false, err
	}
	for flag, value := range map[string]string{"workflow": b.Filter.Workflow, "route": b.Filter.Route,
		"label": b.Filter.Label, "since": b.Filter.Since, "until": b.Filter.Until, "status": string(b.Filter.Status)} {
		if value == "" && cmd.Flags().Changed(flag) { // an unset variable would widen the filter
			return false, cli.Misuse(fmt.Errorf("--%s is empty: name one, or leave it out for all of them", flag))
		}
	}
	filter := "a filter (--" + p.flag + ", --workflow, --route, --label, --since, --until)"
	many := b.Filter != (client.BulkFilter{})
	if many && len(args) > 0 || !many && b.DryRun {
		return false, cli.Misuse(errors.New("give an ID, or " + filter + ", and --dry-run with a filter"))
	}
	if !many {
		if err := OneArg("ID, or "+filter)(cmd, args); err != nil {
			return false, err
		}
	}
	if b.DryRun || sends {
		return many, nil
	}
	return many, requireFlag(cmd, "reason", b.Reason, p.example)
}

// actOn acts on the one execution that text names, as whole finds it.
func (d *Desk) actOn(ctx context.Context, p *person, text, reason string) error {
	id, err := d.completeID(ctx, text)
	if err != nil {
		return err
	}
	return printChange(d, story.ShellLine("hooklock", "show", id), func(x *client.Execution) string {
		if x.Status == client.CancelRequested {
			return x.ExecutionID + " is to stop: " + toldText(x)
		}
		return p.done(x)
	})(d.Act(ctx, p.action, id, reason))
}

// fixTimes converts spans to times, because a bulk may take many requests.
func fixTimes(now time.Time, times ...*string) {
	for _, t := range times {
		if span, err := time.ParseDuration(*t); err == nil && span >= 0 {
			*t = now.Add(-span).UTC().Format(time.RFC3339Nano)
		}
	}
}

// dryRun prints all executions that match, part by part.
func (d *Desk) dryRun(ctx context.Context, action client.ParkedAction, b client.Bulk) error {
	all := client.BulkResult{Executions: []client.BulkItem{}}
	t := d.newTable("EXECUTION", "RESULT", "WORKFLOW")
	t.Cut = map[string]int{"EXECUTION": 20, "WORKFLOW": 8}
	for part, err := range d.Bulk(ctx, action, b) {
		if err != nil {
			return err
		}
		all.Matched = max(all.Matched, part.Matched)
		all.Executions = append(all.Executions, part.Executions...)
		if d.isRaw() {
			continue
		}
		for i := range part.Executions {
			x := &part.Executions[i]
			t.Add(x.ExecutionID, x.Result+" "+string(action), x.Workflow)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if d.isRaw() {
		text, err := json.Marshal(all)
		if err == nil {
			err = d.printObject(text, nil)
		}
		if err != nil {
			return err
		}
	}
	why := ""
	if all.Matched == 0 {
		why = d.whyNone(ctx, b.Filter.Route, b.Filter.Label)
	}
	_, err := fmt.Fprintf(d.environment.Stderr, "%d match, nothing changed (dry run)%s\n", all.Matched, why)
	return err
}

func newExecutionsRequest(e *cli.Environment, r *Remote) *cobra.Command {
	return &cobra.Command{
		ValidArgsFunction: r.askFirst(e, keptExecutions([]client.ParkState{""})),

		Use:   "request ID",
		Short: "print the request of a parked execution or a dead letter, as it came",
		Long: `Print the request that is kept of a parked execution or a dead letter: its head and its body as the sender sent them, the body without its transfer
coding. It has every secret that the sender sent. It needs a token with the scope bodies, and leaves a line in the audit log. The exit code is 3
where no request is kept.`,
		Example: `  hooklock request exec_7hq3p2k5wv6d4x3nbyc2zt5gj4m6s7ra > request.http`,
		Args:    OneArg("ID"),
		RunE: r.onExecution(e, func(ctx context.Context, d *Desk, id string) error {
			var whole bytes.Buffer // a part is of no use
			if err := d.Request(ctx, id, &whole); err != nil {
				return err
			}
			_, err := d.environment.Stdout.Write(whole.Bytes())
			return err
		}),
	}
}

// keptExecutions offers executions in these states.
func keptExecutions(states []client.ParkState) func(context.Context, *Desk, string) []cobra.Completion {
	return func(ctx context.Context, d *Desk, begun string) (words []cobra.Completion) {
		for _, state := range states {
			page, err := d.ExecutionPage(ctx, client.ExecutionQuery{Parked: true, State: state, Limit: 50})
			if err != nil {
				return words
			}
			words = append(words, completionsOf(page.Executions, begun)...)
		}
		return words
	}
}

// actOnAll does it with all that fit the filter, or shows them.
func (d *Desk) actOnAll(ctx context.Context, p *person, b *client.Bulk, again, detach bool) error {
	d.rewriteTimes(&b.Filter.Since, &b.Filter.Until)
	fixTimes(time.Now(), &b.Filter.Since, &b.Filter.Until)
	switch {
	case again:
		return d.allAgain(ctx, b, detach)
	case b.DryRun:
		return d.dryRun(ctx, p.action, *b)
	}
	return d.startJob(ctx, client.NewJob{Kind: client.JobKind(p.action), Reason: b.Reason, Filter: b.Filter,
		Rate: b.Rate}, detach)
}
