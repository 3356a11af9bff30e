package admin

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
	"hooklock/idem/naming"
)

// entry is what the audit of a call says. It holds no secrets.
type entry struct {
	idem.Audit      // Before and After are "" if they are not known: the call was refused before it was looked up
	existing   bool // nothing was changed, because the state was reached before
	quiet      bool // a read, not a change
	broken     bool // the answer ended in its middle
}

// setExecution fills in the execution that was found.
func (e *entry) setExecution(f *idem.Found) {
	e.Workflow, e.Execution = f.Workflow(), f.ID()
}

// beginAudit fills in what is known of the audit before the call is made.
func (c *call) beginAudit() {
	c.audit.At, c.audit.Who = c.api.options.Now(), c.callerName()
	c.audit.What, c.audit.Remote = c.endpoint.change, c.r.RemoteAddr
}

// endAudit writes the audit line: who, what, why, before, after, result. The ledger has written the
// same with the change. What was refused is stored later, and so is it if the result is not known.
func (c *call) endAudit(p *problem) {
	a := c.audit.Audit
	a.Workflow, a.Execution = cutText(a.Workflow), idem.ExecutionID(cutText(string(a.Execution)))
	stored, status := a.Result != "" && a.Result != idem.AuditBegun, 0
	switch {
	case c.audit.broken:
		a.Result, stored = idem.AuditUnknown, false
	case stored: // and what was refused after it does not undo it
	case p != nil && p.Code == "store_unavailable":
		if a.Result == "" { // a transaction may have written that it was done, under this name: that stays
			a.Name = ""
		}
		a.Result = idem.AuditUnknown
	case p != nil:
		a.Result = idem.AuditRefused
	case c.audit.existing:
		a.Result = idem.AuditNothing
	default:
		a.Result = idem.AuditDone
	}
	if p != nil {
		a.Code, status = p.Code, p.Status
	}
	if !stored {
		c.storeAudit(a)
	}
	c.logAudit(&a, status)
}

func (c *call) logAudit(a *idem.Audit, status int) {
	attributes := []slog.Attr{slog.String("who", a.Who), slog.String("what", a.What), slog.String("result", a.Result)}
	for _, one := range []slog.Attr{
		slog.String("why", a.Why), slog.String("before", a.Before), slog.String("after", a.After),
		slog.String("workflow", a.Workflow), slog.String("execution", string(a.Execution)), slog.String("job", a.Job),
		slog.String("code", a.Code), slog.Int("status", status), slog.String("remote", a.Remote),
	} {
		if !one.Value.Equal(slog.StringValue("")) && !one.Value.Equal(slog.IntValue(0)) {
			attributes = append(attributes, one)
		}
	}
	logger := slog.New(everyLevel{c.auditLine().Handler()})
	logger.LogAttrs(context.Background(), slog.LevelInfo, "admin.audit", attributes...)
}

// auditBegin stores the audit of an action on many executions before the first of them, under a
// name that its result replaces: if this process dies meanwhile, the audit says that it has begun,
// and each execution has an audit of its own.
func (c *call) auditBegin() error {
	ctx, done := c.changeContext()
	defer done()
	c.audit.Result = idem.AuditBegun
	return c.api.options.Ledger.Audit(ctx, &c.audit.Audit)
}

// auditNow stores the audit of what is no change of the ledger's, before it is answered. If the
// ledger does not take it now, it is stored later: a backup must be possible even then.
func (c *call) auditNow(result string) {
	ctx, done := c.changeContext()
	defer done()
	c.audit.Result = result
	if c.api.options.Ledger.Audit(ctx, &c.audit.Audit) != nil {
		c.storeAudit(c.audit.Audit)
	}
}

// reserveAuditLine reserves room for the audit line of a change that an operator requests. A
// callback of an upstream is a part of its execution, which no log may stop.
func (c *call) reserveAuditLine() (release func(), p *problem) {
	line, release, err := c.api.options.Audit()
	if err != nil {
		return nil, refuse("audit_unavailable",
			"nothing was changed, because the audit log (standard error) cannot be written: "+err.Error()+
				"; repair what reads it, then ask again")
	}
	c.line = line
	return release, nil
}

// auditLine returns the logger of the line: the reserved one, or else the usual one.
func (c *call) auditLine() *slog.Logger {
	if c.line == nil {
		if line, _, err := c.api.options.Audit(); err == nil {
			return line
		}
		return c.api.options.Log
	}
	return c.line
}

// everyLevel is a handler that takes lines of any level: changes must leave a trace even if lines
// about deliveries are not wanted.
type everyLevel struct{ slog.Handler }

// Enabled returns true.
func (everyLevel) Enabled(context.Context, slog.Level) bool { return true }

// callerName returns the name of the token, or the execution of a callback.
func (c *call) callerName() string {
	switch {
	case c.caller.key != "":
		return "callback of " + cutText(c.name)
	case c.caller.token.Name == "":
		return "unknown"
	}
	return c.caller.token.Name
}

// cutText bounds text from a client, so that it cannot fill the log.
func cutText(s string) string {
	const longest = 2048
	if len(s) > longest {
		return s[:longest] + "…"
	}
	return s
}

// noKeeping are calls that clients of the lock API make all the time: the log has them, and only
// what operators do is stored.
var noKeeping = []string{"lock.acquire", "lock.renew", "lock.release"}

// storeAudit stores an audit in the ledger, later. Calls without a known token are not stored,
// because they could fill the store.
func (c *call) storeAudit(a idem.Audit) {
	if c.endpoint.access != forCallback && c.caller.token.Name != "" && a.Code != "unauthorized" &&
		!slices.Contains(noKeeping, a.What) {
		c.api.options.Ledger.AuditRefusal(a)
	}
}

func (c *call) auditQuery() (q idem.AuditQuery, err error) {
	q = idem.AuditQuery{Who: c.query("who"), What: c.query("what"),
		Workflow: naming.SpelledPattern(c.query("workflow")), Prefix: c.query("prefix"),
		Execution: idem.ExecutionID(c.query("execution"))}
	if q.PageSize, err = c.readPageSize(); err != nil {
		return q, err
	}
	if q.Since, q.Until, err = c.readPeriod(c.query("since"), c.query("until")); err != nil {
		return q, err
	}
	q.Cursor, err = c.caller.openCursor(c.query("cursor"))
	return q, err
}

// listAudits lists changes. A token that is limited to some workflows sees changes of these.
func (c *call) listAudits() error {
	q, err := c.auditQuery()
	if err != nil {
		return err
	}
	ctx, cancel := c.readContext()
	defer cancel()
	answer := client.AuditPage{Audits: []client.Audit{}}
	began := time.Now()
	for more := true; more; more = len(answer.Audits) == 0 && c.mayGoOn(q.Cursor, began) {
		page, err := c.api.options.Ledger.Audits(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Audits {
			if a := &page.Audits[i]; !c.caller.isLimited() || a.Workflow != "" && c.caller.maySee(a.Workflow) {
				answer.Audits = append(answer.Audits, viewOfAudit(a))
			}
		}
		q.Cursor = page.NextCursor
	}
	answer.NextCursor = c.caller.sealCursor(q.Cursor)
	return c.respond(http.StatusOK, answer)
}

func viewOfAudit(a *idem.Audit) client.Audit {
	return client.Audit{
		At: client.Time{Time: a.At}, Who: a.Who, What: a.What, Result: a.Result, Why: a.Why, Before: a.Before,
		After: a.After, Workflow: a.Workflow,
		ExecutionID: string(a.Execution), Code: a.Code, Remote: a.Remote, JobID: a.Job,
	}
}
