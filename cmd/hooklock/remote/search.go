package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
)

// Bounds of a search for the last letters of an ID, for which the server has no index.
const (
	leastOfEnd = 4
	mostEnds   = 2000 // events that are looked at, the newest first
)

// hits are the events that a text matches: the first page of all, if complete is false.
type hits struct {
	events   []client.Execution
	all      client.ExecutionQuery
	complete bool
}

// searchEvents returns the events that a text matches: as client.Guesses does, by an ID that a list
// has cut in the middle (evt_1…d9Xk), or by the last letters of an ID. It returns a *client.Problem
// if there are none.
func (d *Desk) searchEvents(ctx context.Context, text string) (*hits, error) {
	begin, end, _ := strings.Cut(strings.TrimSuffix(text, "…"), "…")
	if begin != "" && begin != idPrefix {
		for _, q := range client.Guesses(begin) {
			found, err := d.firstHits(ctx, q, end)
			if err != nil || found != nil {
				return found, err
			}
		}
	}
	end = cmp.Or(end, begin)
	if len(end) < leastOfEnd {
		return nil, notFound(text, tried+unstored)
	}
	found, err := d.endHits(ctx, end)
	if err != nil {
		return nil, err
	}
	if len(found.events) == 0 {
		return nil, notFound(text, fmt.Sprintf("%s, and the last letters of the newest %d IDs%s", tried, mostEnds,
			unstored))
	}
	return found, nil
}

// endHits returns those of the newest mostEnds events that end with end.
func (d *Desk) endHits(ctx context.Context, end string) (*hits, error) {
	found := &hits{complete: true}
	q := client.ExecutionQuery{Limit: mostOnAPage}
	for read := mostOnAPage; ; read += mostOnAPage {
		page, err := d.ExecutionPage(ctx, q)
		if err != nil {
			return nil, err
		}
		found.events = append(found.events, slices.DeleteFunc(page.Executions, func(x client.Execution) bool {
			return !endsSo(&x, end)
		})...)
		if q.Cursor = page.NextCursor; q.Cursor == "" || read >= mostEnds {
			return found, nil
		}
		d.progress.setNote("%d read", read)
	}
}

// firstHits returns the first page of q on which an event ends with end, or nil. The server may
// return empty pages before it.
func (d *Desk) firstHits(ctx context.Context, q client.ExecutionQuery, end string) (*hits, error) {
	q.Limit = mostOnAPage
	for {
		page, err := d.ExecutionPage(ctx, q)
		if err != nil {
			return nil, err
		}
		page.Executions = slices.DeleteFunc(page.Executions, func(x client.Execution) bool { return !endsSo(&x, end) })
		switch {
		case len(page.Executions) > 0:
			return &hits{page.Executions, q, page.NextCursor == "" || end != ""}, nil
		case page.NextCursor == "" || page.NextCursor == q.Cursor:
			return nil, nil //nolint:nilnil // no hits
		}
		q.Cursor = page.NextCursor
	}
}

// endsSo reports whether the ID of an event or of its execution ends with end.
func endsSo(x *client.Execution, end string) bool {
	return strings.HasSuffix(x.EventID, end) || strings.HasSuffix(x.ExecutionID, end)
}

// tried is what a search has looked for.
const tried = "tried event IDs and their parts, execution IDs, keys, traces, workflows and labels"

// unstored says where else to look: such deliveries are stored under no event.
const unstored = "; for deliveries with a wrong signature: hooklock signatures"

// notFound returns the answer of a search that has found nothing.
func notFound(text, tried string) error {
	return &client.Problem{Status: 404, Code: client.CodeExecutionNotFound, Title: "No such execution",
		Detail: "no event found for " + cli.Plain(text) + ": " + tried}
}

// runOf returns the ID of the execution of the one event with this ID, or with this part of an ID.
func (d *Desk) runOf(ctx context.Context, event string) (string, error) {
	var ids []string
	refused := false
	for _, q := range []client.ExecutionQuery{{EventID: event}, {Text: event}} {
		for x, err := range d.Executions(ctx, q) {
			if err != nil {
				return "", err
			}
			switch {
			case q.Text != "" && !isCalled(x.EventID, event):
			case x.ExecutionID == "":
				refused = true
			case !slices.Contains(ids, x.ExecutionID):
				ids = append(ids, x.ExecutionID)
			}
			if len(ids) > 3 { // enough to say that they are several
				break
			}
		}
		if len(ids) > 0 || refused {
			break
		}
	}
	switch {
	case len(ids) == 1:
		return ids[0], nil
	case len(ids) > 1:
		return "", cli.Misuse(errors.New("several events are called " + cli.Plain(event) + "; give one of their " +
			"executions: " + cli.Plain(strings.Join(ids, ", "))))
	case refused:
		return "", cli.WithCode(fmt.Errorf("%s has no execution; hooklock show %s says why", cli.Plain(event),
			cli.Plain(story.ShellWord(event))), cli.ExitNotFound)
	}
	return "", notFound(event, "no event has this ID, or this part of an ID between slashes")
}

// isCalled reports whether an event ID, or a part of it between slashes, is name, in any case.
func isCalled(eventID, name string) bool {
	return strings.EqualFold(eventID, name) || slices.ContainsFunc(strings.Split(eventID, "/"), func(part string) bool {
		return strings.EqualFold(part, name)
	})
}

// hasLabel reports whether text is a label of x, as NAME:VALUE or NAME=VALUE, or the value of one.
func hasLabel(x *client.Execution, text string) bool {
	for name, value := range x.Labels {
		if text == value || text == name+":"+value || text == name+"="+value {
			return true
		}
	}
	return false
}

const (
	idPrefix = "exec_"
	idLength = len(idPrefix) + 32
	// leastOfID is the least length of a beginning: a shorter one matches too many IDs.
	leastOfID = len(idPrefix) + 4
)

// completeID returns the ID of the one execution whose ID begins with text, or whose event has this
// ID. It returns a complete ID unchanged, and a beginning that is too short, too: the server says
// what is wrong with it.
func (d *Desk) completeID(ctx context.Context, text string) (string, error) {
	if !strings.HasPrefix(text, idPrefix) {
		return d.runOf(ctx, text)
	}
	if text = strings.TrimSuffix(text, "…"); len(text) >= idLength || len(text) < leastOfID {
		return text, nil
	}
	var found []string
	before := false // an earlier attempt has this beginning
	err := d.eachWithBeginning(ctx, text, func(x *client.Execution) bool {
		if !strings.HasPrefix(x.ExecutionID, text) {
			before = true
			return true
		}
		found = append(found, x.ExecutionID)
		return len(found) <= 3 // enough for the message
	})
	switch {
	case err != nil:
		return "", err
	case len(found) == 0, len(found) == 1 && before:
		return d.completeAttemptID(ctx, text)
	case len(found) > 1:
		return "", cli.Misuse(errors.New(cli.Plain(text) + " begins more than one ID; give more of it: " +
			cli.Plain(strings.Join(found, ", "))))
	}
	return found[0], nil
}

// completeAttemptID returns the ID of the one attempt that begins with text: a list has the last
// attempt of each event alone.
func (d *Desk) completeAttemptID(ctx context.Context, text string) (string, error) {
	x, err := d.Execution(ctx, text)
	switch {
	case client.IsCode(err, client.CodeExecutionNotFound):
		return "", cli.WithCode(fmt.Errorf("no execution is known whose ID begins with %s", cli.Plain(text)),
			cli.ExitNotFound)
	case err != nil:
		return "", err
	}
	return x.ExecutionID, nil
}

// eachWithBeginning calls tell for each execution whose ID, or that of an earlier attempt, begins
// with text, until tell returns false.
func (d *Desk) eachWithBeginning(ctx context.Context, text string, tell func(*client.Execution) (more bool)) error {
	read := 0
	for x, err := range d.Executions(ctx, client.ExecutionQuery{ID: text, Limit: mostOnAPage}) {
		if err != nil || !tell(x) {
			return err
		}
		read++
		d.progress.setNote("%d read", read)
	}
	return nil
}
