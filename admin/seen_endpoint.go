package admin

import (
	"context"
	"net/http"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

// seenAhead is how far a mark may be ahead of the clock of the replica that takes it: another
// replica's clock may be.
const seenAhead = 5 * time.Minute

// readAcknowledgements returns what the list leaves out: what of one kind people have looked at, by
// route. From a token that is limited to some workflows nothing is hidden: it cannot mark.
func (c *call) readAcknowledgements(ctx context.Context) (map[string]idem.Acknowledgement, error) {
	kind, err := oneOf(c, "unseen", idem.ConcernKind("").Choices())
	if err != nil || kind == "" || c.caller.isLimited() {
		return nil, err
	}
	all, err := c.api.options.Ledger.Acknowledgements(ctx)
	marks := map[string]idem.Acknowledgement{}
	for _, one := range all {
		if string(one.Kind) == kind {
			marks[one.Route] = one
		}
	}
	return marks, err
}

func (c *call) listSeen() error {
	ctx, done := c.readContext()
	defer done()
	all, err := c.api.options.Ledger.Acknowledgements(ctx)
	if err != nil {
		return err
	}
	list := client.SeenList{Seen: []client.SeenMark{}}
	for i := range all {
		list.Seen = append(list.Seen, viewOfMark(&all[i]))
	}
	return c.respond(http.StatusOK, list)
}

// readConcern reads what a mark is about.
func (c *call) readConcern(text string) (idem.Concern, error) {
	c.audit.Workflow = cutText(text)
	if err := c.refuseLimited("what was looked at"); err != nil {
		return idem.Concern{}, err
	}
	concern, err := idem.ParseConcern(text)
	if err != nil {
		return concern, refuse("bad_request", "concern: "+err.Error())
	}
	return concern, nil
}

func (c *call) markSeen() error {
	var concern, until, reason string
	if err := c.readBody(fields{"concern": &concern, "until": &until, "reason": &reason}); err != nil {
		return err
	}
	if err := c.checkReason(reason); err != nil {
		return err
	}
	now := c.api.options.Now()
	mark := idem.Acknowledgement{By: c.caller.token.Name, Reason: reason, At: now.UTC().Truncate(time.Millisecond),
		Until: now}
	var err error
	if mark.Concern, err = c.readConcern(concern); err != nil {
		return err
	}
	if until != "" {
		if mark.Until, err = c.readTime("until", until); err != nil {
			return err
		}
	}
	if mark.Until = mark.Until.UTC().Truncate(time.Millisecond); mark.Until.After(now.Add(seenAhead)) {
		return refuse("bad_request", "until="+quoteText(
			until)+": what has not happened yet cannot be marked as looked at")
	}
	ctx, done := c.changeContext()
	defer done()
	kept, before, err := c.api.options.Ledger.Acknowledge(ctx, mark, &c.audit.Audit)
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if before != nil {
		status = http.StatusOK
	}
	return c.respond(status, viewOfMark(kept))
}

func (c *call) unmarkSeen() error {
	c.audit.Why = cutText(c.query("reason"))
	if err := checkText("reason", c.query("reason"), maxText); err != nil {
		return err
	}
	concern, err := c.readConcern(c.name)
	if err != nil {
		return err
	}
	ctx, done := c.changeContext()
	defer done()
	mark, err := c.api.options.Ledger.DropAcknowledgement(ctx, concern, &c.audit.Audit)
	if err != nil {
		return err
	}
	return c.respond(http.StatusOK, viewOfMark(mark))
}

func viewOfMark(m *idem.Acknowledgement) client.SeenMark {
	return client.SeenMark{Concern: m.Concern.String(), Until: client.Time{Time: m.Until}, By: m.By, Reason: m.Reason,
		At: client.Time{Time: m.At}}
}
