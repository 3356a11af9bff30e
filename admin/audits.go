package admin

import (
	"net/http"
	"slices"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
	"hooklock/idem/naming"
)

// noKeeping are calls that clients of the lock API make all the time: the log has them, and only
// what operators do is stored.
var noKeeping = []string{"lock.acquire", "lock.renew", "lock.release"}

// store stores an audit in the ledger, later. Calls without a known token are not stored, because
// they could fill the store.
func (c *call) store(a idem.Audit) {
	if c.endpoint.access != forCallback && c.caller.token.Name != "" && a.Code != "unauthorized" &&
		!slices.Contains(noKeeping, a.What) {
		c.api.options.Ledger.AuditRefusal(a)
	}
}

func (c *call) auditQuery() (q idem.AuditQuery, err error) {
	q = idem.AuditQuery{Who: c.query("who"), What: c.query("what"),
		Workflow: naming.SpelledPattern(c.query("workflow")), Prefix: c.query("prefix"),
		Execution: idem.ExecutionID(c.query("execution"))}
	if q.PageSize, err = c.limit(); err != nil {
		return q, err
	}
	if q.Since, q.Until, err = c.period(c.query("since"), c.query("until")); err != nil {
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
	ctx, cancel := c.reading()
	defer cancel()
	answer := client.AuditPage{Audits: []client.Audit{}}
	began := time.Now()
	for more := true; more; more = len(answer.Audits) == 0 && c.mayGoOn(q.Cursor, began) {
		page, err := c.api.options.Ledger.Audits(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Audits {
			if a := &page.Audits[i]; !c.caller.limited() || a.Workflow != "" && c.caller.sees(a.Workflow) {
				answer.Audits = append(answer.Audits, viewOfAudit(a))
			}
		}
		q.Cursor = page.NextCursor
	}
	answer.NextCursor = c.caller.sealCursor(q.Cursor)
	return c.ok(http.StatusOK, answer)
}

func viewOfAudit(a *idem.Audit) client.Audit {
	return client.Audit{
		At: client.Time{Time: a.At}, Who: a.Who, What: a.What, Result: a.Result, Why: a.Why, Before: a.Before,
		After: a.After, Workflow: a.Workflow,
		ExecutionID: string(a.Execution), Code: a.Code, Remote: a.Remote, JobID: a.Job,
	}
}
