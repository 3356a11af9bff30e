package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"hooklock/idem"
)

// action is what an operator does with an execution, or a job with many.
type action struct {
	change string // of one execution, in the audit log
	do     func(ctx context.Context, c *call, id idem.ExecutionID, reason string) (*idem.Found, error)
	// states are those of the stored requests that it is for. Without any, a job takes executions
	// and no filter.
	states  []idem.ParkState
	status  int    // the HTTP status of its success, for one
	follows bool   // a job lets executions run with it, and counts how they end
	done    string // what has become of those that a job does not follow
	ended   bool   // by a filter, it is about executions that have ended, whether or not their requests are stored
}

func runNow() *action {
	return &action{change: "execution.run", states: []idem.ParkState{idem.ParkWaiting, idem.ParkBlocked},
		status: http.StatusOK, follows: true,
		do: func(ctx context.Context, c *call, id idem.ExecutionID, _ string) (*idem.Found, error) {
			return c.api.options.Ledger.RunNow(ctx, id, &c.audit.Audit)
		}}
}

func skipAction() *action {
	return &action{change: "execution.skip", states: []idem.ParkState{idem.ParkWaiting, idem.ParkBlocked},
		status: http.StatusOK, done: "skipped",
		do: func(ctx context.Context, c *call, id idem.ExecutionID, reason string) (*idem.Found, error) {
			found, _, err := c.api.options.Ledger.Skip(ctx, id,
				idem.Cancel{By: c.caller.token.Name, Reason: reason, At: c.api.options.Now()}, &c.audit.Audit)
			return found, err
		}}
}

func rerunAction() *action {
	return &action{change: "execution.rerun", states: []idem.ParkState{idem.ParkDeadLetter},
		status: http.StatusCreated, follows: true,
		do: func(ctx context.Context, c *call, id idem.ExecutionID, _ string) (*idem.Found, error) {
			if !c.again {
				found, err := c.api.options.Ledger.Rerun(ctx, id, &c.audit.Audit)
				return found, notKept(err, "with --again it runs all the same if its route keeps requests, else its "+
					"sender can send it again")
			}
			found, err := c.api.options.Ledger.RunAgain(ctx, id, &c.audit.Audit)
			return found, notKept(err, "forget its event, then resend it at its sender; requests.keep of its route "+
				"keeps those that come")
		}}
}

// notKept adds to idem.ErrNoRequest what to do; it leaves other errors as they are.
func notKept(err error, todo string) error {
	if errors.Is(err, idem.ErrNoRequest) {
		return refuse("request_not_kept", "the request of this execution is not stored, or no longer: "+todo)
	}
	return err
}

// forOne returns the endpoint of an action for the execution in the path.
func forOne(a *action) func(*call) error {
	return func(c *call) error {
		var reason string
		members := fields{"reason": &reason}
		if a.change == rerunAction().change {
			members["again"] = &c.again
		}
		if err := c.readBody(members); err != nil {
			return err
		}
		if err := c.checkReason(reason); err != nil {
			return err
		}
		ctx, done := c.changeContext()
		defer done()
		if _, err := c.findExecution(ctx); err != nil {
			return err
		}
		found, err := c.runAction(ctx, a, reason)
		if err != nil {
			return err
		}
		status := a.status
		if found.Status() == idem.CancelRequested {
			status = http.StatusAccepted
		}
		return c.respond(status, viewOfExecution(found))
	}
}

// unreadableProblem returns the problem of a stored request that cannot be read.
func (c *call) unreadableProblem(err error) *problem {
	c.api.options.Log.Warn("admin.request_unavailable", "execution", c.name, "error", err.Error())
	return refuse("request_unavailable", "the request store cannot be read now, or its key is missing; the log of "+
		"this Hooklock says which")
}

// runAction runs the action on the execution that c.name names.
func (c *call) runAction(ctx context.Context, a *action, reason string) (*idem.Found, error) {
	found, err := a.do(ctx, c, idem.ExecutionID(c.name), reason)
	switch {
	case errors.Is(err, idem.ErrCancelled): // elsewhere in the API this error is about a wait for a lock
		err = refuse("cancel_requested", "it was cancelled; see abortedBy and abortReason")
	case errors.Is(err, idem.ErrRequestUnavailable):
		err = c.unreadableProblem(err)
	case errors.Is(err, idem.ErrMoved):
		err = refuse("status_changed", "it has changed since it was chosen: it was run, tried or blocked meanwhile; "+
			"look again, then decide")
	}
	return found, err
}

// listOf returns the list of a query, page after page: of all executions that q selects, or of
// those whose requests are stored.
func (c *call) listOf(q idem.ExecutionQuery) (func(ctx context.Context, cursor string) (idem.ExecutionPage, error),
	error) {
	state, err := parkState(c.query("state"))
	switch parked := c.query("parked"); {
	case err != nil:
		return nil, err
	case parked == "" && state == "":
		return func(ctx context.Context, cursor string) (idem.ExecutionPage, error) {
			q.Cursor = cursor
			return c.api.options.Ledger.Executions(ctx, q)
		}, nil
	case parked != "true":
		return nil, refuse("bad_request", "parked="+quoteText(parked)+
			": give true, alone or with a state; without both all executions are listed")
	case q.Status != "":
		return nil, refuse("bad_request", "status is for the list of all executions; give a state with parked=true")
	case q.Decision != "":
		return nil, refuse("bad_request", "decision is for the list of all executions: leave out parked=true")
	}
	return func(ctx context.Context, cursor string) (idem.ExecutionPage, error) {
		return c.api.options.Ledger.ParkedExecutions(ctx, idem.ParkedQuery{Workflow: q.Workflow, Route: q.Route,
			State: state, Matches: q.Matches, PageSize: q.PageSize, Cursor: cursor})
	}, nil
}

func parkState(text string) (idem.ParkState, error) {
	all := idem.ParkState("").Choices()
	if text == "" || slices.Contains(all, text) {
		return idem.ParkState(text), nil
	}
	return "", refuse("bad_request", fmt.Sprintf("state=%s: give one of %s", quoteText(text), strings.Join(all, ", ")))
}

// keptTime bounds the read of a stored request; a store has a limit of its own, too.
const keptTime = 30 * time.Second

// sendStoredRequest sends the request of an execution as it came.
func (c *call) sendStoredRequest() error {
	reason := c.query("reason")
	c.audit.Why = cutText(reason)
	if err := checkText("reason", reason, maxText); err != nil {
		return err
	}
	ctx, done := c.readContext()
	defer done()
	found, err := c.findExecution(ctx)
	if err != nil {
		return err
	}
	kept, err := c.api.options.Ledger.KeptRequest(ctx, idem.ExecutionID(c.name))
	noLetter := errors.Is(err, idem.ErrNoRequest)
	if err != nil && !noLetter {
		return err
	}
	life, over, err := c.waitContext(keptTime)
	if err != nil {
		return err
	}
	defer over()
	var head, body []byte
	if noLetter {
		head, body, err = c.archivedRequest(life, found)
	} else if head, body, err = c.api.options.Request(life, idem.ExecutionID(c.name), kept); err != nil {
		err = c.unreadableProblem(err)
	}
	if err != nil {
		return err
	}
	c.auditNow(idem.AuditDone)
	c.w.Header().Set("Content-Type", "message/http")
	c.w.Header().Set("Content-Disposition", "attachment")
	c.w.Header().Set("Content-Length", strconv.Itoa(len(head)+len(body)))
	_, err = c.w.Write(head)
	_, bodyErr := c.w.Write(body)
	c.audit.broken = cmp.Or(err, bodyErr) != nil
	return nil
}
