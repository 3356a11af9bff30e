package page

import (
	"fmt"
	"net/http"

	"hooklock/admin/client"
	"hooklock/admin/story"
)

// runAgain asks about an event that has ended, settled or not, and whose request is kept.
func runAgain(v *visit) (*question, error) {
	x, err := v.getSubject()
	if err != nil {
		return nil, err
	}
	q := &question{Title: "Rerun: " + namedExecution(x), Verb: "Rerun", Reason: true}
	switch {
	case !x.Status.Terminal():
		q.Stop = "It is " + string(x.Status) + ": it runs, or runs again."
		return q, nil
	case x.RequestStored != client.StoredYes:
		q.Stop = "Its request is not kept: its sender can send it again."
		return q, nil
	}
	q.Facts = []string{fmt.Sprintf("It ended %s ago: %s. %s", story.Span(v.now.Sub(x.FinishedAt.Time)), x.Status,
		story.Sentence(evidenceOf(x)))}
	if x.Outcome != client.NotExecuted {
		q.Facts = append(q.Facts, "The service gets the same request once more: what it did the first time, it may "+
			"do twice.")
	}
	q.Facts = append(q.Facts, "It joins the end of its queue as the next attempt, under its workflow's lock. Until "+
		"it has ended, duplicates meet it; then they get its answer, or the status that they get now if it fails.")
	routes, err := readObject[client.RouteList](v, "/v1/routes")
	if err != nil {
		return nil, err
	}
	if r := routes.Of(x.Route); r != nil && r.SignatureAge > 0 {
		q.Facts = append(q.Facts, "The service sees the signature as it came, and refuses it if it checks that and "+
			"the event is older than "+story.Span(secondsDuration(r.SignatureAge))+".")
	}
	q.Facts = append(q.Facts, "Does nothing if the event has run again by then.")
	q.Requests = []request{{Method: http.MethodPost, Path: executionPath(x.ExecutionID, "rerun"),
		Body: map[string]any{"again": true}, Reason: "body", Names: shortID(x.ExecutionID)}}
	q.Commands = []shellLine{hooklockCommand("executions", "rerun", x.ExecutionID, "--again", "--reason", theReason)}
	return q, nil
}
