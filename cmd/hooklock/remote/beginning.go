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
	// leastOfID is the least length of a beginning: a shorter one matches too many IDs.
	leastOfID = len(idPrefix) + 4
)

// whole returns the ID of the one execution whose ID begins with text, or whose event has this ID.
// It returns a complete ID unchanged, and a beginning that is too short, too: the server says what
// is wrong with it.
func (d *Desk) whole(ctx context.Context, text string) (string, error) {
	if !strings.HasPrefix(text, idPrefix) {
		return d.runOf(ctx, text)
	}
	if text = strings.TrimSuffix(text, "…"); len(text) >= idLength || len(text) < leastOfID {
		return text, nil
	}
	var found []string
	before := false // an earlier attempt has this beginning
	err := d.beginning(ctx, text, func(x *client.Execution) bool {
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
		return d.earlier(ctx, text)
	case len(found) > 1:
		return "", cli.Misuse(errors.New(cli.Plain(text) + " begins more than one ID; give more of it: " +
			cli.Plain(strings.Join(found, ", "))))
	}
	return found[0], nil
}

// earlier returns the ID of the one attempt that begins with text: a list has the last attempt of
// each event alone.
func (d *Desk) earlier(ctx context.Context, text string) (string, error) {
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

// beginning calls tell for each execution whose ID, or that of an earlier attempt, begins with
// text, until tell returns false.
func (d *Desk) beginning(ctx context.Context, text string, tell func(*client.Execution) (more bool)) error {
	read := 0
	for x, err := range d.Executions(ctx, client.ExecutionQuery{ID: text, Limit: mostOnAPage}) {
		if err != nil || !tell(x) {
			return err
		}
		read++
		d.progress.far("%d read", read)
	}
	return nil
}
