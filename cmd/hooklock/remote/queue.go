package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
	"hooklock/idem"
)

// NewQueue is the command queue.
func NewQueue(e *cli.Environment) *cobra.Command {
	r := Remote{more: []string{outputCSV}}
	cmd := &cobra.Command{
		Use:   "queue [WORKFLOW]",
		Short: "show what runs and what waits behind it, in order",
		Long: `Show what runs and what waits behind it: of each workflow the events that have its lock, without a position, then those that wait, the next one first.
The workflow with the longest queue is the first. HOLDER is the replica where it runs or waits. WORKFLOW is a name, or a pattern: 'orders/*'.`,
		Example: `  hooklock queue
  hooklock queue orders/shop-blocked
  hooklock queue 'orders/*' -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return OneArg("WORKFLOW")(cmd, args)
		},
		ValidArgsFunction: r.askFirst(e, lockedWorkflows),
		RunE: func(cmd *cobra.Command, args []string) error {
			workflow := ""
			if len(args) > 0 {
				workflow = args[0]
			}
			return r.run(cmd.Context(), e, func(ctx context.Context, d *Desk) error {
				queues, err := d.listQueues(ctx, workflow)
				if err != nil {
					return err
				}
				if d.output == outputCSV {
					return d.csvQueues(queues, time.Now())
				}
				raw, err := json.Marshal(map[string][]*queue{"queues": queues})
				if err != nil {
					return err
				}
				return d.printObject(raw, func() error { return d.printQueues(queues, workflow, time.Now()) })
			})
		},
	}
	r.Flags(cmd)
	r.watchFlag(cmd)
	return cmd
}

// queue holds the locks and the waiting executions of one workflow.
type queue struct {
	Workflow string            `json:"workflow"`
	Locks    []json.RawMessage `json:"locks"`
	Queued   []json.RawMessage `json:"queued"` // the next one first
	locks    []*client.Lock
	waiting  []*client.Execution
}

// listQueues returns the queues of a workflow, or of those that a pattern matches ("" = all), the
// longest first.
func (d *Desk) listQueues(ctx context.Context, workflow string) ([]*queue, error) {
	of := map[string]*queue{}
	at := func(name string) *queue {
		if of[name] == nil {
			of[name] = &queue{Workflow: name, Locks: []json.RawMessage{}, Queued: []json.RawMessage{}}
		}
		return of[name]
	}
	prefix, _, _ := strings.Cut(workflow, "*")
	for l, err := range d.Locks(ctx, client.LockQuery{Prefix: prefix}) {
		if err != nil {
			return nil, err
		}
		if workflow == "" || idem.MatchPattern(workflow, l.Workflow) {
			q := at(l.Workflow)
			q.locks, q.Locks = append(q.locks, l), append(q.Locks, l.RawJSON())
		}
	}
	for x, err := range d.Executions(ctx, client.ExecutionQuery{Workflow: workflow, Status: client.Pending}) {
		if err != nil {
			return nil, err
		}
		q := at(x.Workflow)
		q.waiting, q.Queued = append(q.waiting, x), append(q.Queued, x.RawJSON())
	}
	all := []*queue{}
	for _, q := range of {
		slices.Reverse(q.waiting) // a list has the newest first
		slices.Reverse(q.Queued)
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b *queue) int {
		return cmp.Or(cmp.Compare(len(b.waiting), len(a.waiting)), cmp.Compare(a.Workflow, b.Workflow))
	})
	return all, nil
}

func (d *Desk) printQueues(queues []*queue, workflow string, now time.Time) error {
	if len(queues) == 0 {
		none := "nothing runs or waits"
		if workflow != "" {
			none += " in " + cli.Plain(workflow)
		}
		if workflow != "" && !strings.Contains(workflow, "*") {
			none += "; give a workflow, or a pattern: " + story.ShellLine("hooklock", "queue", workflow+"/*")
		}
		fmt.Fprintln(d.environment.Stderr, none)
		return nil
	}
	t := d.newTable("WORKFLOW", "POS", "EVENT", "STATE", "AGE", "HOLDER", headHappened, "RUN")
	t.Drop, t.Middle, t.Hue = []string{"RUN", headHappened, "HOLDER"}, []string{"WORKFLOW", "EVENT"}, hueOf
	t.Cut = map[string]int{"WORKFLOW": 12, "EVENT": 17, headHappened: 20, "RUN": shortRun}
	for _, q := range queues {
		for _, l := range q.locks {
			t.Add(q.Workflow, "", l.EventID, lockState(l), cli.SpanSeconds(l.HeldFor), replicaOf(l.Holder),
				heldText(l, now), l.ExecutionID)
		}
		for i, x := range q.waiting {
			t.Add(q.Workflow, strconv.Itoa(i+1), story.Name(x), "waits", cli.Span(now.Sub(cameAt(x))),
				replicaOf(x.Holder), story.Short(x, now), x.ExecutionID)
		}
	}
	return t.Flush()
}

// csvQueues prints a line for each event that runs or waits: as a list of events has it, with its
// place in its queue before it.
func (d *Desk) csvQueues(queues []*queue, now time.Time) error {
	err := story.WriteCSV(d.environment.Stdout, append([]string{"position", "holder"}, story.CSVHead()...))
	for _, q := range queues {
		for _, l := range q.locks {
			x := client.Execution{ExecutionID: l.ExecutionID, Workflow: l.Workflow, EventID: l.EventID,
				Status: client.Running, StartedAt: l.LockedAt, Parked: l.Parked}
			err = cmp.Or(err, story.WriteCSV(d.environment.Stdout,
				append([]string{"0", l.Holder}, story.CSVRow(&x, now)...)))
		}
		for i, x := range q.waiting {
			err = cmp.Or(err, story.WriteCSV(d.environment.Stdout,
				append([]string{strconv.Itoa(i + 1), x.Holder}, story.CSVRow(x, now)...)))
		}
	}
	return err
}

// heldText says what ends a lock.
func heldText(l *client.Lock, now time.Time) string {
	switch left := timeLeft(l); {
	case l.Parked != nil:
		x := client.Execution{Status: client.Running, Parked: l.Parked}
		return story.Short(&x, now)
	case left != "":
		return "ends in " + left + " by " + l.EndsBy
	}
	return ""
}
