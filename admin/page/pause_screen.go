package page

import (
	"fmt"
	"net/http"
	"strings"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/idem"
)

// askPause asks whether a route or a workflow is to be paused.
func askPause(v *visit) (*question, error) {
	scope := v.query.Get("scope")
	q := &question{Title: "Pause " + scope, Verb: "Pause", Reason: true, Period: true}
	if p, err := v.pauseOf(scope); err != nil {
		return nil, err
	} else if p != nil {
		q.Facts = []string{fmt.Sprintf("Already paused by %s: %s. Pausing it again replaces that.", p.By, p.Reason)}
	}
	if workflow, found := strings.CutPrefix(scope, "workflow:"); found {
		switch l, err := v.getLock(workflow); {
		case err == nil:
			q.Facts = append(q.Facts, fmt.Sprintf("%s holds its lock now, %s.", lockEvent(l),
				story.Count(l.Waiting, "event waits", "events wait")))
		case isProblem(err, client.CodeLockNotFound):
			q.Facts = append(q.Facts, "Nothing of it runs now.")
		}
	}
	q.Facts = append(q.Facts, "No event of it starts, on any replica, until it is resumed. What runs continues to "+
		"its end.",
		v.duringPause(scope))
	q.Requests = []request{{Method: http.MethodPost, Path: "v1/pauses", Body: map[string]any{"scope": scope},
		Reason: "body", Names: scope, Period: true, Done: scope + " is paused"}}
	q.Commands = []shellLine{hooklockCommand("pause", argument(scope), "--reason", theReason, until)}
	return q, nil
}

// duringPause says what senders get meanwhile, and what is known of whether they send it again.
func (v *visit) duringPause(scope string) string {
	const park = " A route with park accepts events and keeps them."
	said := "Senders get 503 workflow_paused: an event whose sender does not send it again is lost." + park
	name, isRoute := strings.CutPrefix(scope, "route:")
	rules := v.rulesOf(name)
	if !isRoute || rules == nil {
		return said
	}
	for _, a := range rules.Answers {
		if a.Decision == string(idem.DecisionPaused) {
			said = "Its sender gets " + a.Text + "."
		}
	}
	switch s := rules.Sender; {
	case s == nil:
		said += " Whether it sends the event again is not known here: if not, the event is lost."
	case s.RetriesOn != "":
		said += " " + s.Preset + " sends again " + s.RetriesOn + "."
	default:
		said += " Nothing says that " + s.Preset +
			" sends the event again: it may be lost, until a person resends it there."
	}
	return said + park
}

// askResume asks whether a pause is to end.
func askResume(v *visit) (*question, error) {
	scope := v.query.Get("scope")
	q := &question{Title: "Resume " + scope, Verb: "Resume", Reason: true}
	p, err := v.pauseOf(scope)
	if err != nil {
		return nil, err
	}
	if p == nil {
		q.Stop = "It is not paused."
		return q, nil
	}
	q.Facts = []string{
		fmt.Sprintf("Paused for %s by %s: %s.", story.Span(v.now.Sub(p.Since.Time)), p.By, p.Reason),
		fmt.Sprintf("%d running, %d waiting, %d accepted and waiting: they run in the order in which they came.",
			p.Running, p.Waiting, p.Parked),
	}
	q.Requests = []request{{Method: http.MethodDelete, Path: "v1/pauses/" + pathSegment(scope), Reason: "query",
		Names: scope, Done: scope + " is resumed"}}
	q.Commands = []shellLine{hooklockCommand("resume", argument(scope), "--reason", theReason)}
	return q, nil
}

// pauseOf returns the pause of a scope; nil = it is not paused.
func (v *visit) pauseOf(scope string) (*client.Pause, error) {
	p, err := readObject[client.Pause](v, "/v1/pauses/"+pathSegment(scope))
	if isProblem(err, client.CodePauseNotFound) {
		return nil, nil
	}
	return p, err
}

// bar is what each screen shows above its content: how much needs attention, and what stands still.
type bar struct {
	Count int
	Lines []line
}

// line is one thing that stands still.
type line struct {
	Text string
	Asks []ask
}

// serveBar responds with the bar, for a screen that stays.
func (p *Page) serveBar(w http.ResponseWriter, r *http.Request) {
	v, err := p.newVisit(r)
	if err != nil {
		p.showProblem(w, err)
		return
	}
	list, err := v.attentionList()
	if err != nil {
		p.showProblem(w, err)
		return
	}
	p.renderTemplate(w, http.StatusOK, "bar", bar{len(list.Items), v.standingLines()})
}

// standingLines returns what stands still; nothing for a token that may not see it.
func (v *visit) standingLines() (all []line) {
	s, err := v.getReplica()
	if err != nil {
		return nil
	}
	if s.NotReady != "" {
		all = append(all, line{Text: "NOT READY: replica " + s.Replica + ": " + s.NotReady})
	}
	for i := range s.Etcd.Members {
		if m := &s.Etcd.Members[i]; m.State == client.ContactFails {
			all = append(all, line{Text: "ETCD " + m.Address + " fails: " + m.Failure})
		}
	}
	if s.Config.Stale && s.Config.Refused != nil {
		all = append(all, line{Text: "CONFIGURATION STALE: the changed file was refused: " +
			strings.Join(s.Config.Refused.Problems, "; ")})
	}
	for i := range s.Paused {
		one := &s.Paused[i]
		all = append(all, line{
			fmt.Sprintf(
				"PAUSED %s by %s, %s: %s", one.Scope, one.By, story.Span(v.now.Sub(one.Since.Time)), one.Reason),
			[]ask{askFor("Resume…", "resume", "scope", one.Scope)},
		})
	}
	return all
}
