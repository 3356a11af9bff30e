package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
	"hooklock/idem/naming"
)

// Bounds of an action on many executions.
const (
	defaultRate = 10 // a second
	maxRate     = 1000
	// bulkTime bounds one request; the next one goes on behind its cursor.
	bulkTime = 20 * time.Second
)

// The result for one execution of many.
const (
	resultWould   = "would" // a dry run would have done it
	resultDone    = "done"
	resultRefused = "refused"
)

// bulk is a request for many executions.
type bulk struct {
	action            *action
	reason            string
	client.BulkFilter                     // Status: of jobs that are Again
	again             bool                // also events that have ended and whose request is not stored
	narrow            idem.ExecutionQuery // Since, Until and Label
	dryRun            bool
	rate, limit       int
	at                bulkCursor
}

// forMany returns the endpoint of an action for all executions that match.
func forMany(a *action) func(*call) error {
	return func(c *call) error {
		b := bulk{action: a, rate: defaultRate, limit: defaultLimit}
		if err := c.readBulk(&b); err != nil {
			return err
		}
		life, done, err := c.waitContext(bulkTime)
		if err != nil {
			return err
		}
		defer done()
		if !b.dryRun {
			if err := c.auditBegin(); err != nil {
				return err
			}
		}
		result, err := c.actOnAll(life, &b)
		if err != nil {
			return err
		}
		if c.audit.quiet = b.dryRun; !b.dryRun {
			c.audit.After = fmt.Sprintf("%d done, %d refused", result.Done, result.Refused)
			c.auditNow(idem.AuditDone)
		}
		return c.respond(http.StatusOK, result)
	}
}

// readBulk reads the body of the request, and checks it.
func (c *call) readBulk(b *bulk) error {
	cursor := ""
	err := c.readBody(fields{
		"reason": &b.reason, "filter": b.filterMembers(), "dryRun": &b.dryRun, "rate": &b.rate, "limit": &b.limit,
		"cursor": &cursor})
	if err != nil {
		return err
	}
	if b.at, err = c.bulkCursor(cursor); err != nil {
		return err
	}
	return c.checkBulk(b)
}

// filterMembers are the members of the filter in a body.
func (b *bulk) filterMembers() fields {
	return fields{
		"workflow": readName(&b.Workflow), "route": readName(&b.Route), "state": readName(&b.State),
		"since": readName(&b.Since),
		"until": readName(&b.Until), "label": readName(&b.Label),
	}
}

// checkBulk checks a filter, and whether the caller may do what it asks for.
func (c *call) checkBulk(b *bulk) (err error) {
	c.audit.Workflow = b.Workflow
	b.Workflow = naming.SpelledPattern(b.Workflow)
	if err := b.checkFilter(); err != nil {
		return err
	}
	if b.narrow.Since, b.narrow.Until, err = c.readPeriod(b.Since, b.Until); err != nil {
		return err
	}
	if b.narrow.Label, err = labelOf(b.Label); err != nil {
		return err
	}
	return c.mayStart(b)
}

// mayStart refuses a caller that may not do what it asks for, and a lack of a reason.
func (c *call) mayStart(b *bulk) error {
	switch {
	case b.dryRun && !c.caller.token.Read:
		return forbiddenProblem("read") // it lists executions
	case b.dryRun:
		return nil
	}
	return c.checkReason(b.reason)
}

// readName reads a member of a filter. It refuses "", which is a variable that was not set and
// would match more than was meant.
func readName[T ~string](place *T) func(json.RawMessage) error {
	return func(text json.RawMessage) error {
		var given string
		if err := decodeMember(text, &given); err != nil {
			return err
		}
		if *place = T(given); given == "" {
			return errors.New("is empty: name one, or leave it out for all of them")
		}
		return nil
	}
}

// checkFilter refuses a filter that matches more than can be meant.
func (b *bulk) checkFilter() error {
	state, err := parkState(string(b.State))
	switch {
	case err != nil:
		return err
	case b.BulkFilter == client.BulkFilter{}:
		return refuse("bad_request", "give a filter: a workflow, a route, a state, a label or a time")
	case b.listsEnded() && state != "", !b.listsEnded() && b.Status != "":
		return refuse("bad_request", "filter: a state is for requests that are stored, a status for a rerun with again")
	case b.Status != "" && !b.Status.Terminal():
		return refuse("bad_request", "status="+quoteText(string(b.Status))+": give SUCCESS, FAILED or ABORTED")
	case state != "" && !slices.Contains(b.action.states, state):
		return refuse("bad_request",
			fmt.Sprintf("state=%s: %s is for %v", quoteText(string(b.State)), b.action.change, b.action.states))
	case b.limit < 1 || b.limit > maxLimit:
		return refuse("bad_request", fmt.Sprintf("limit: give a number from 1 to %d", maxLimit))
	}
	return b.checkRate()
}

func (b *bulk) checkRate() error {
	if b.rate < 1 || b.rate > maxRate {
		return refuse("bad_request",
			fmt.Sprintf("rate: give a number from 1 to %d, which is so many a second", maxRate))
	}
	return nil
}

// listsEnded reports whether it is about all executions that have ended, whether or not their
// requests are stored.
func (b *bulk) listsEnded() bool { return b.again || b.action.ended }

// jobFilter returns the filter of a job, which has its times.
func (b *bulk) jobFilter() idem.JobFilter {
	return idem.JobFilter{
		Workflow: b.Workflow, Route: b.Route, State: idem.ParkState(b.State), Status: idem.Status(b.Status),
		Label: b.Label, Since: b.narrow.Since, Until: b.narrow.Until,
	}
}

// actOnAll runs the action on those that match, until the limit, or until life ends.
func (c *call) actOnAll(life context.Context, b *bulk) (*client.BulkResult, error) {
	at := &b.at
	entries, err := c.findMatching(life, b, at)
	if err != nil {
		return nil, err
	}
	result := &client.BulkResult{Matched: len(entries), Executions: []client.BulkItem{}}
	pause := time.NewTicker(time.Second / time.Duration(b.rate))
	defer pause.Stop()
	for i := range entries {
		e := &entries[i]
		if i == b.limit || life.Err() != nil {
			result.NextCursor = c.caller.sealCursor(at.String())
			break
		}
		item, err := c.actOnOne(b, e)
		switch {
		case err != nil && i == 0:
			return nil, err
		case err != nil: // this one is the first of the next request
			result.NextCursor = c.caller.sealCursor(at.String())
			return result, nil
		}
		result.Executions = append(result.Executions, item)
		switch item.Result {
		case resultDone:
			result.Done++
		case resultRefused:
			result.Refused++
		}
		at.revision, at.id = e.Revision, e.Execution
		if b.dryRun || i == len(entries)-1 {
			continue
		}
		select {
		case <-pause.C:
		case <-life.Done():
		}
	}
	return result, nil
}

// findMatching returns the executions behind the cursor that match, in the order in which they came
// into their state. For the dead letters of a queue that is their order in it.
func (c *call) findMatching(ctx context.Context, b *bulk, at *bulkCursor) ([]idem.ParkedEntry, error) {
	if b.listsEnded() {
		return c.listEnded(ctx, b, at)
	}
	var all []idem.ParkedEntry
	within, err := c.findByLabelAndTime(ctx, b)
	if err != nil {
		return nil, err
	}
	for q := (idem.ParkedQuery{Workflow: b.Workflow, State: idem.ParkState(b.State), PageSize: maxLimit}); ; {
		bounded, done := context.WithTimeout(ctx, c.api.options.RequestTimeout)
		page, err := c.api.options.Ledger.ParkedEntries(bounded, q)
		done()
		if err != nil {
			return nil, err
		}
		if at.until == 0 {
			at.until = page.Revision
		}
		for i := range page.Entries {
			e := &page.Entries[i]
			if slices.Contains(b.action.states, e.State) && (b.Route == "" || e.Route == b.Route) &&
				c.caller.maySee(e.Workflow) && at.isBefore(e) && (within == nil || within[e.Execution]) {
				all = append(all, *e)
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	slices.SortFunc(all, byRevision)
	return all, nil
}

func byRevision(x, y idem.ParkedEntry) int {
	return cmp.Or(cmp.Compare(x.Revision, y.Revision), cmp.Compare(x.Execution, y.Execution))
}

// listEnded is fitting for executions that have ended, in the order of their ends. In a workflow
// that runs one at a time, that is the order in which they ran.
func (c *call) listEnded(ctx context.Context, b *bulk, at *bulkCursor) (all []idem.ParkedEntry, err error) {
	q := b.narrow
	q.Workflow, q.Route, q.Status, q.PageSize = b.Workflow, b.Route, idem.Status(b.Status), maxLimit
	for newest := int64(1); ; {
		bounded, done := context.WithTimeout(ctx, c.api.options.RequestTimeout)
		page, err := c.api.options.Ledger.Executions(bounded, q)
		done()
		if err != nil {
			return nil, err
		}
		for i := range page.Executions {
			r := page.Executions[i].Record
			if r == nil || !c.caller.maySee(r.Workflow) {
				continue
			}
			newest = max(newest, r.Revision)
			e := idem.ParkedEntry{
				Execution: r.Execution, Scope: r.Scope, Route: r.Route, Since: r.FinishedAt, Revision: r.Revision}
			if at.until == 0 || at.isBefore(&e) {
				all = append(all, e)
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			at.until = cmp.Or(at.until, newest)
			slices.SortFunc(all, byRevision)
			return all, nil
		}
	}
}

// findByLabelAndTime returns the executions that have the label of b and ended (or began, if they
// have not ended) in its time; nil = b names neither. The index of stored requests knows none of
// these.
func (c *call) findByLabelAndTime(ctx context.Context, b *bulk) (map[idem.ExecutionID]bool, error) {
	if b.narrow.Since.IsZero() && b.narrow.Until.IsZero() && b.narrow.Label == (idem.Label{}) {
		return nil, nil //nolint:nilnil // see above
	}
	fits := map[idem.ExecutionID]bool{}
	for q := (idem.ParkedQuery{Workflow: b.Workflow, State: idem.ParkState(b.State), PageSize: maxLimit}); ; {
		bounded, done := context.WithTimeout(ctx, c.api.options.RequestTimeout)
		page, err := c.api.options.Ledger.ParkedExecutions(bounded, q)
		done()
		if err != nil {
			return nil, err
		}
		for i := range page.Executions {
			if f := &page.Executions[i]; b.narrow.Matches(f) {
				fits[f.ID()] = true
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return fits, nil
		}
	}
}

// actOnOne runs the action on one execution, with an audit line of its own. An error means that
// neither this one nor those behind it can be handled now.
func (c *call) actOnOne(b *bulk, e *idem.ParkedEntry) (client.BulkItem, error) {
	item := client.BulkItem{
		ExecutionID: string(e.Execution), Workflow: e.Workflow, Route: e.Route, State: client.ParkState(e.State),
		Since: client.Time{Time: e.Since}, Result: resultWould,
	}
	if b.dryRun {
		return item, nil
	}
	found, p := c.actFor(b.action, e, b.reason, b.at.until, nil)
	switch {
	case p == nil:
		item.Result, item.Status = resultDone, client.Status(found.Status())
		if found.ID() != e.Execution {
			item.NewID = string(found.ID())
		}
	case p.Status >= http.StatusInternalServerError && p.Code != "request_unavailable":
		// request_unavailable says nothing about the next one.
		return item, p
	default:
		item.Result, item.Code, item.Message = resultRefused, p.Code, p.Detail
	}
	return item, nil
}

// actFor runs an action of many on one execution, as it was at revision seen, in the name of the
// caller and with an audit of its own. step is set in a job.
func (c *call) actFor(
	a *action, e *idem.ParkedEntry, reason string, seen int64, step *idem.JobStep) (*idem.Found, *problem) {
	single := &call{
		api: c.api, endpoint: &endpoint{path: c.endpoint.path, access: forWrite, change: a.change},
		name: string(e.Execution), caller: c.caller, w: c.w, r: c.r, only: c.only, again: c.again,
		audit: entry{Audit: idem.Audit{
			Why: cutText(reason), Workflow: e.Workflow, Execution: e.Execution, Before: string(e.State), Step: step,
			SeenAt: seen}},
	}
	if step != nil {
		single.audit.Job = step.Job.ID
	}
	single.beginAudit()
	release, p := single.reserveAuditLine()
	if p != nil {
		return nil, p
	}
	defer release()
	ctx, done := c.changeContext()
	defer done()
	var err error
	if e.Workflow == "" { // it was named, and not found by a filter
		_, err = single.findExecution(ctx)
	}
	var found *idem.Found
	if err == nil {
		found, err = single.runAction(ctx, a, reason)
	}
	if err != nil {
		p = single.problemOf(err)
	}
	if !errors.Is(err, idem.ErrJobMoved) { // nothing was done, and another process has the job
		single.endAudit(p)
	}
	return found, p
}

// bulkCursor is where a bulk goes on: behind an execution, among those that existed when it began.
type bulkCursor struct {
	until, revision int64
	id              idem.ExecutionID
}

func (c *call) bulkCursor(sealed string) (at bulkCursor, err error) {
	text, err := c.caller.openCursor(sealed)
	if err != nil || text == "" {
		return at, err
	}
	if _, err := fmt.Sscanf(text, "%d/%d/%s", &at.until, &at.revision, &at.id); err != nil {
		return at, idem.ErrCursor
	}
	return at, nil
}

// String returns the text that is read back as a bulkCursor.
func (b bulkCursor) String() string { return fmt.Sprintf("%d/%d/%s", b.until, b.revision, b.id) }

// isBefore reports whether e is behind the cursor, and existed when the bulk began.
func (b bulkCursor) isBefore(e *idem.ParkedEntry) bool {
	behind := cmp.Or(cmp.Compare(e.Revision, b.revision), cmp.Compare(e.Execution, b.id)) > 0
	return behind && e.Revision <= b.until
}
