package remote

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
)

// NewAudit is the command audit, with its subcommand.
func NewAudit(e *cli.Environment) *cobra.Command {
	r := Remote{more: []string{outputCSV}}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "see who changed what, why and when",
		Long: `See who changed what, why and when: each cancel, release, forget, run, skip, rerun, pause, resume, reload and backup with a token, also refused
ones, and each look at what a sender sent. They are kept in etcd for 30 days, and 20,000 of them; the log has the same as lines admin.audit.`,
		Args: Subcommand,
	}
	r.Flags(cmd)
	addList(cmd, newAuditList(e, &r))
	return cmd
}

func newAuditList(e *cli.Environment, r *Remote) *cobra.Command {
	var q client.AuditQuery
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list what was asked for with tokens, the newest first",
		Long: `List what was asked for with tokens, the newest first: over all replicas, done or refused. All filters that are given have to hold. RESULT is done,
refused, nothing to do, or unknown (etcd did not answer).`,
		Example: `  hooklock audit list --since 24h
  hooklock audit list --execution exec_7hq3p2k5wv6d4x3nbyc2zt5gj4m6s7ra
  hooklock audit list --who ops --what lock.
  hooklock audit list -o json | jq -r '.audits[] | select(.result == "refused") | .code'`,
		Args: cli.NoArgs,
		RunE: r.Action(e, func(ctx context.Context, d *Desk, _ []string) error {
			d.rewriteTimes(&q.Since, &q.Until)
			return listAudits(ctx, d, q).print(d)
		}),
	}
	textFlag(cmd, &q.Who, "who", "only by the token of this name")
	textFlag(cmd, &q.What, "what", "only actions that begin with this: execution., lock.force_release")
	textFlag(cmd, &q.Workflow, "workflow", "only this workflow, or those that match a pattern: stripe/*")
	textFlag(cmd, &q.ExecutionID, "execution", "only about this execution")
	textFlag(cmd, &q.Since, "since", "only since "+momentsHelp)
	textFlag(cmd, &q.Until, "until", "only until then")
	listFlags(cmd, &q.Limit, &q.Cursor)
	r.watchFlag(cmd)
	return cmd
}

// listAudits returns the list of the entries that q selects.
func listAudits(ctx context.Context, d *Desk, q client.AuditQuery) *listing[client.Audit] {
	now := time.Now()
	return &listing[client.Audit]{
		name: "audits", none: "no matching changes", limit: q.Limit, cursor: q.Cursor,
		head:    []string{"AGE", "WHO", "WHAT", "RESULT", "WORKFLOW", "EXECUTION", "BEFORE", "AFTER", "FROM", "WHY"},
		drop:    []string{"FROM", "BEFORE", "AFTER", "WORKFLOW"},
		cut:     map[string]int{"WORKFLOW": 8, "EXECUTION": 14, "WHY": 16},
		csvHead: []string{"time", "who", "what", "result", "workflow", "execution", "before", "after", "from", "why"},
		csvRow: func(a *client.Audit) []string {
			return append([]string{story.CSVTime(a.At)}, auditRow(a, now)[1:]...)
		},
		row: func(a *client.Audit) []string { return auditRow(a, now) }, raw: (*client.Audit).RawJSON,
		page: pageOf(&q.Limit, &q.Cursor, func() (*client.AuditPage, error) { return d.AuditPage(ctx, q) },
			func(p *client.AuditPage) ([]client.Audit, string) { return p.Audits, p.NextCursor }),
	}
}

func auditRow(a *client.Audit, now time.Time) []string {
	result := a.Result
	if a.Code != "" {
		result += ": " + a.Code
	}
	return []string{cli.Span(now.Sub(a.At.Time)), a.Who, a.What, result, a.Workflow, a.ExecutionID, a.Before, a.After,
		a.Remote, a.Why}
}
