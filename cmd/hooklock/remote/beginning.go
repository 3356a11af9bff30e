package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"hooklock/admin/client"
	"hooklock/cmd/hooklock/cli"
)

const (
	idPrefix = "exec_"
	idLength = len(idPrefix) + 32
	// leastOfID is how much of an ID has to be given: its first half is its workflow's, and a few letters mean too many.
	leastOfID = len(idPrefix) + 4
)

// whole returns the ID of the one execution that begins with text, or whose event is called so. A whole ID is returned as it is, and so is a beginning
// that is too short: the server says what is wrong with it.
func (d *Desk) whole(ctx context.Context, text string) (string, error) {
	if !strings.HasPrefix(text, idPrefix) {
		return d.runOf(ctx, text)
	}
	if text = strings.TrimSuffix(text, "…"); len(text) >= idLength || len(text) < leastOfID {
		return text, nil
	}
	var found []string
	before := false // an earlier attempt begins so
	err := d.beginning(ctx, text, func(x *client.Execution) bool {
		if !strings.HasPrefix(x.ExecutionID, text) {
			before = true
			return true
		}
		found = append(found, x.ExecutionID)
		return len(found) <= 3 // which is enough to say that they are several
	})
	switch {
	case err != nil:
		return "", err
	case len(found) == 0, len(found) == 1 && before:
		return d.earlier(ctx, text)
	case len(found) > 1:
		return "", cli.Misuse(errors.New(cli.Plain(text) + " begins more than one ID; give more of it: " + cli.Plain(strings.Join(found, ", "))))
	}
	return found[0], nil
}

// earlier is the ID of the one attempt, the last or an earlier one of its event, that begins with text: a list has the event's last one alone.
func (d *Desk) earlier(ctx context.Context, text string) (string, error) {
	x, err := d.Execution(ctx, text)
	var p *client.Problem
	switch {
	case errors.As(err, &p) && p.Code == client.CodeExecutionNotFound:
		return "", cli.WithCode(fmt.Errorf("no execution is known whose ID begins with %s", cli.Plain(text)), cli.ExitNotFound)
	case err != nil:
		return "", err
	}
	return x.ExecutionID, nil
}

// beginning tells of the executions whose ID, or that of an earlier attempt, begins so, until more is false.
func (d *Desk) beginning(ctx context.Context, text string, tell func(*client.Execution) (more bool)) error {
	cursor := ""
	for read := 0; ; {
		page, err := d.ExecutionPage(ctx, client.ExecutionQuery{ID: text, Limit: mostOnAPage, Cursor: cursor})
		if err != nil {
			return err
		}
		for i := range page.Executions {
			if !tell(&page.Executions[i]) {
				return nil
			}
		}
		read += len(page.Executions)
		d.progress.far("%d read", read)
		if page.NextCursor == "" || page.NextCursor == cursor {
			return nil
		}
		cursor = page.NextCursor
	}
}
