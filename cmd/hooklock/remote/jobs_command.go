package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
)

const (
	// jobLook is the interval in which a watched job is asked for.
	jobLook = 500 * time.Millisecond
	// jobPatience is how long a watch goes on while nothing answers: another replica may take the
	// address over.
	jobPatience = 30 * time.Second
)

// NewJobs is the command jobs, with its subcommands.
func NewJobs(e *cli.Environment) *cobra.Command {
	var r Remote
	cmd := &cobra.Command{
		Use: "jobs", Aliases: []string{"job"},
		Short: "list, watch and stop actions on many events",
		Long: `List the actions on many events ("hooklock rerun --dead-letters", and those of the page), the newest first. They run at the replicas, one replica for each, and
another one goes on if that dies: each event is done once. They do not need the command or the page that started them.

ENDED of MATCHED have come to their end, FAILED of them ran and failed, and LEFT ALONE had changed meanwhile.`,
		Example: `  hooklock jobs
  hooklock jobs watch job_k2v7qf4m3zt5w6ya
  hooklock jobs stop job_k2v7qf4m3zt5w6ya --reason "the service fails again"`,
		Args: Subcommand,
		RunE: r.Action(e, func(ctx context.Context, d *Desk, _ []string) error {
			return printAnswer(d, d.printJobs)(d.Jobs(ctx))
		}),
	}
	r.Flags(cmd)
	cmd.AddCommand(newJobsGet(e, &r), newJobsWatch(e, &r), newJobsChange(e, &r, "stop"), newJobsChange(e, &r, "resume"))
	return cmd
}

func (d *Desk) printJobs(l *client.JobList) error {
	if len(l.Jobs) == 0 {
		fmt.Fprintln(d.environment.Stderr, "no jobs")
		return nil
	}
	t := d.newTable("JOB", "STATE", "KIND", "AGE", "MATCHED", "ENDED", "FAILED", "LEFT ALONE", "BY", "REASON")
	t.Drop, t.Cut = []string{"LEFT ALONE", "BY"}, map[string]int{"REASON": 12}
	for i := range l.Jobs {
		j := &l.Jobs[i]
		t.Add(j.JobID, string(j.State), string(j.Kind), cli.Span(time.Since(j.StartedAt.Time)),
			strconv.Itoa(max(j.Matched, 0)), strconv.Itoa(j.Ended()),
			strconv.Itoa(j.Failed), strconv.Itoa(j.Refused), j.Who, j.Reason)
	}
	return t.Flush()
}

// wholeJob returns the ID of the job that begins as text.
func (d *Desk) wholeJob(ctx context.Context, text string) (string, error) {
	const length = len("job_k2v7qf4m3zt5w6ya")
	if len(text) >= length {
		return text, nil
	}
	l, err := d.Jobs(ctx)
	if err != nil {
		return "", err
	}
	var ids []string
	for i := range l.Jobs {
		if id := l.Jobs[i].JobID; strings.HasPrefix(id, text) || strings.HasPrefix(id, "job_"+text) {
			ids = append(ids, id)
		}
	}
	switch len(ids) {
	case 1:
		return ids[0], nil
	case 0:
		return text, nil
	}
	return "", cli.Misuse(fmt.Errorf("%d jobs begin with %s: give more of the ID", len(ids), cli.Plain(text)))
}

// onJob returns the RunE of a command about one job.
func (r *Remote) onJob(e *cli.Environment,
	work func(ctx context.Context, d *Desk, id string) error) func(*cobra.Command, []string) error {
	return r.Action(e, func(ctx context.Context, d *Desk, args []string) error {
		id, err := d.wholeJob(ctx, args[0])
		if err != nil {
			return err
		}
		return work(ctx, d, id)
	})
}

func newJobsGet(e *cli.Environment, r *Remote) *cobra.Command {
	return &cobra.Command{
		Use: "get ID", Short: "look at a job",
		Long:    "Look at a job: what it is about, how far it is, and the first ten that failed or were left alone.",
		Example: "  hooklock jobs get job_k2v7qf4m3zt5w6ya", Args: OneArg("ID"),
		ValidArgsFunction: r.askFirst(e, someJobs),
		RunE: r.onJob(e, func(ctx context.Context, d *Desk, id string) error {
			return printAnswer(d, d.printJob)(d.Job(ctx, id))
		}),
	}
}

func newJobsWatch(e *cli.Environment, r *Remote) *cobra.Command {
	return &cobra.Command{
		Use: "watch ID", Short: "watch a job until it ends",
		Long: `Watch a job until it ends: a bar on a terminal, and with -o json the job in a line each time it has changed. Ctrl-C asks whether to stop the job or only
watching; without a terminal it ends watching. The exit code is 4 where something was left alone, and 1 where the job was stopped.`,
		Example: "  hooklock jobs watch job_k2v7qf4m3zt5w6ya", Args: OneArg("ID"),
		ValidArgsFunction: r.askFirst(e, someJobs),
		RunE: r.onJob(e, func(ctx context.Context, d *Desk, id string) error {
			j, err := d.Job(ctx, id)
			if err != nil {
				return err
			}
			return d.watchJob(ctx, j)
		}),
	}
}

func newJobsChange(e *cli.Environment, r *Remote, what string) *cobra.Command {
	var reason string
	short, long, example := "stop a job", "Stop a job. What it has let run goes on; \"hooklock jobs resume\" lets "+
		"the job go on.", `"the service fails again"`
	if what == "resume" {
		short, long, example = "let a stopped job go on",
			"Let a stopped job go on where it was, and watch it; see \"hooklock jobs watch\".", `"repaired"`
	}
	cmd := &cobra.Command{
		Use: what + " ID --reason TEXT", Short: short,
		Long:              long + " The exit code is 4 where the job is in another state.",
		Example:           "  hooklock jobs " + what + " job_k2v7qf4m3zt5w6ya --reason " + example,
		ValidArgsFunction: r.askFirst(e, someJobs),
		Args:              OneArg("ID"),
		RunE: r.onJob(e, func(ctx context.Context, d *Desk, id string) error {
			if what == "resume" {
				j, err := d.ResumeJob(ctx, id, reason)
				if err != nil {
					return withDoubt(err, "hooklock jobs get "+id)
				}
				return d.watchJob(ctx, j)
			}
			return printChange(d, "hooklock jobs get "+id, func(j *client.Job) string {
				return j.JobID + " is " + j.Result
			})(d.StopJob(ctx, id, reason))
		}),
	}
	reasonFlag(cmd, &reason, example)
	return cmd
}

// someJobs offers the IDs of jobs.
func someJobs(ctx context.Context, d *Desk, begun string) (words []cobra.Completion) {
	if l, err := d.Jobs(ctx); err == nil {
		for i := range l.Jobs {
			if j := &l.Jobs[i]; strings.HasPrefix(j.JobID, begun) {
				words = append(words, cobra.CompletionWithDesc(j.JobID, string(j.State)+" "+string(j.Kind)+": "+
					j.Reason))
			}
		}
	}
	return words
}

// printJob prints all of a job.
func (d *Desk) printJob(j *client.Job) error {
	t := d.newTable()
	add := func(name, value string) {
		if value != "" {
			t.Add(name, value)
		}
	}
	add("job", j.JobID)
	add("state", string(j.State))
	add("kind", string(j.Kind))
	add("about", aboutJob(j))
	add("by", j.Who+": "+j.Reason)
	add("started", d.shown.Stamp(j.StartedAt.Time))
	if !j.EndedAt.IsZero() {
		add("ended", d.shown.Stamp(j.EndedAt.Time))
	}
	add("replica", j.Replica)
	add("progress", progressOf(j))
	add("result", j.Result)
	if err := t.Flush(); err != nil {
		return err
	}
	return d.printFailures(j)
}

func aboutJob(j *client.Job) string {
	if n := len(j.Executions); n > 0 {
		return story.Count(n, "execution", "executions")
	}
	f, said := &j.Filter, []string{}
	for _, one := range [][2]string{{"route", f.Route}, {"workflow", f.Workflow}, {"state", string(f.State)},
		{"label", f.Label}, {"since", f.Since}, {"until", f.Until}} {
		if one[1] != "" {
			said = append(said, one[0]+" "+one[1])
		}
	}
	return strings.Join(said, ", ")
}

func (d *Desk) printFailures(j *client.Job) error {
	if len(j.Failures) == 0 {
		return nil
	}
	t := d.newTable("EXECUTION", "RESULT", "WORKFLOW", "WHY")
	t.Cut, t.Hue = map[string]int{"EXECUTION": 20, "WORKFLOW": 8, "WHY": 16}, hueOf
	for _, f := range j.Failures {
		result := "failed"
		if f.Refused {
			result = "left alone"
		}
		t.Add(f.ExecutionID, result, f.Workflow, f.Why)
	}
	return t.Flush()
}

// progressOf says how far a job is.
func progressOf(j *client.Job) string {
	if j.Matched < 0 {
		return "looking for what matches"
	}
	text := fmt.Sprintf("%d of %d", j.Ended(), j.Matched)
	for _, part := range []struct {
		n    int
		text string
	}{{j.Failed, "failed"}, {j.Refused, "left alone"}, {j.Waiting, "wait or run"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.text)
		}
	}
	if j.PerSecond > 0 && j.Acted < j.Matched {
		text += fmt.Sprintf(", %.3g/s", j.PerSecond)
	}
	if j.SecondsLeft > 0 {
		text += ", " + cli.SpanSeconds(j.SecondsLeft) + " left"
	}
	return text
}

// barOf draws how far a job is.
func barOf(j *client.Job) string { return drawBar(j.Ended(), j.Matched) + progressOf(j) }

// drawBar draws how many there are of so many; of < 0: that is not known yet.
func drawBar(n, of int) string {
	const width = 20
	done := width
	if of > 0 {
		done = min(width, width*n/of)
	} else if of < 0 {
		done = 0
	}
	return "[" + strings.Repeat("#", done) + strings.Repeat(".", width-done) + "] "
}

// startJob starts a job, and watches it.
func (d *Desk) startJob(ctx context.Context, n client.NewJob, detach bool) error {
	j, err := d.StartJob(ctx, n)
	if err != nil {
		return withDoubt(err, "hooklock jobs")
	}
	if detach {
		return d.PrintResult(j.RawJSON(), j.JobID+" has begun; hooklock jobs watch "+j.JobID+" shows it")
	}
	return d.watchJob(ctx, j)
}

// watchJob shows a job until it ends.
func (d *Desk) watchJob(ctx context.Context, j *client.Job) error {
	d.progress.showOnly(barOf(j))
	defer d.progress.showOnly("")
	if !d.isRaw() && !d.progress.screen.Terminal() {
		fmt.Fprintln(d.environment.Stderr, j.JobID+" has begun")
	}
	var shown []byte
	for answered := time.Now(); ; {
		if d.isRaw() && !slices.Equal(shown, j.RawJSON()) {
			if shown = j.RawJSON(); d.jobLine(shown) != nil {
				return nil // nothing reads it any more
			}
		}
		if j.Over() {
			return d.endOfJob(ctx, j)
		}
		if !cli.Pause(ctx, jobLook) {
			return d.endWatch(j)
		}
		switch next, err := d.Job(ctx, j.JobID); {
		case err == nil:
			j, answered = next, time.Now()
			d.progress.showOnly(barOf(j))
		case ctx.Err() != nil:
			return d.endWatch(j)
		case time.Since(answered) > jobPatience || isRefusal(err):
			return fmt.Errorf("%s may go on; whether it does, hooklock jobs get %s says: %w", j.JobID, j.JobID, err)
		}
	}
}

// isRefusal reports whether err is an answer of the API that asking again does not change.
func isRefusal(err error) bool {
	var p *client.Problem
	return errors.As(err, &p) && p.Status < 500 && p.Code != client.CodeRateLimited
}

// jobLine prints a job for a program.
func (d *Desk) jobLine(raw []byte) error {
	if d.output == outputYAML {
		fmt.Fprintln(d.environment.Stdout, "---")
		return cli.PrintYAML(d.environment.Stdout, raw)
	}
	line, err := cli.JSONLine(raw)
	if err == nil {
		_, err = fmt.Fprintf(d.environment.Stdout, "%s\n", line)
	}
	return err
}

// endOfJob prints how a job ended, unless a program has read it, and returns the exit code.
func (d *Desk) endOfJob(ctx context.Context, j *client.Job) error {
	d.progress.showOnly("")
	if !d.isRaw() {
		if err := d.printFailures(j); err != nil {
			return err
		}
	}
	said := j.JobID + ": " + j.Result
	if !d.isRaw() && j.Matched >= 0 {
		why := ""
		if j.Matched == 0 {
			why = d.whyNone(ctx, j.Filter.Route, j.Filter.Label)
		}
		fmt.Fprintf(d.environment.Stderr, "%d match, %d done, %d refused%s\n", j.Matched, j.Acted-j.Refused, j.Refused,
			why)
	}
	switch {
	case j.Refused > 0:
		return cli.WithCode(errors.New(said), cli.ExitRefused)
	case j.State == client.JobStopped:
		return cli.WithCode(errors.New(said), cli.ExitFailed)
	}
	_, err := fmt.Fprintln(d.environment.Stderr, said)
	return err
}

// endWatch ends a watch on Ctrl-C, and the job if the person says so.
func (d *Desk) endWatch(j *client.Job) error {
	d.progress.showOnly("")
	if d.asks {
		signal.Reset(syscall.SIGINT, syscall.SIGTERM) // a second one ends this command, and not the job
		fmt.Fprintf(d.environment.Stdout, "\n%s: stop the job, or only watching? [s/W] ", j.JobID)
		answer, _ := bufio.NewReader(d.environment.Stdin).ReadString('\n')
		if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "s" || answer == "stop" {
			ctx, cancel := context.WithTimeout(context.Background(), jobPatience)
			defer cancel()
			stopped, err := d.StopJob(ctx, j.JobID, "Ctrl-C")
			if err != nil {
				return withDoubt(err, "hooklock jobs get "+j.JobID)
			}
			return d.endOfJob(ctx, stopped)
		}
	}
	return cli.WithCode(fmt.Errorf("%s goes on (%s); hooklock jobs watch %s shows it, hooklock jobs stop %s ends it",
		j.JobID, progressOf(j), j.JobID, j.JobID), cli.ExitFailed)
}
