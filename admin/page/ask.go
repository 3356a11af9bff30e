package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"hooklock/admin/client"
	"hooklock/admin/story"
)

// question is the dialog before a change: what would follow, and the reason.
type question struct {
	Title string
	Verb  string // on the button
	Facts []string
	// Stop says why nothing can be done; the dialog then has no button.
	Stop     string
	Reason   bool // a reason is required
	Final    bool // it can be made final
	Period   bool // it can end by itself
	Requests []request
	Commands []shellLine // hooklock commands that do the same
}

// request is one request to the API.
type request struct {
	Method string            `json:"method"`
	Path   string            `json:"path"` // relative to the page
	Query  map[string]string `json:"query,omitempty"`
	Body   map[string]any    `json:"body"`  // nil = none
	Names  string            `json:"names"` // its subject, shown with the result
	// Reason says where the reason goes: query or body; "" = nowhere.
	Reason string `json:"reason,omitempty"`
	Final  bool   `json:"mayBeFinal,omitempty"`
	Period bool   `json:"mayEnd,omitempty"`
	Done   string `json:"done,omitempty"` // shown on success; "" = Names and the status of the execution
}

// JSON returns the requests for the script.
func (q *question) JSON() (string, error) {
	text, err := json.Marshal(q.Requests)
	return string(text), err
}

// Curl returns curl commands for the first requests.
func (q *question) Curl() []shellLine {
	const most = 3
	var lines []shellLine
	for i := range q.Requests {
		if i == most {
			return append(lines, shellLine{shellSyntax(fmt.Sprintf("# and %d more", len(q.Requests)-most))})
		}
		lines = append(lines, q.Requests[i].curlLine())
	}
	return lines
}

func (r *request) curlLine() shellLine {
	target := shellWord{theBase, {Text: r.Path}}
	separator := "?"
	if len(r.Query) > 0 {
		query := url.Values{}
		for name, value := range r.Query {
			query.Set(name, value)
		}
		target = append(target, piece{Text: "?" + query.Encode()})
		separator = "&"
	}
	if r.Reason == "query" {
		target = append(target, piece{Text: separator + "reason="}, piece{Value: "reason", As: "url"})
	}
	line := shellWords("curl", "-X", r.Method, "-H", shellSyntax(`"Authorization: Bearer $TOKEN"`), target)
	if r.Body == nil {
		return line
	}
	return append(line, shellWords("-d", r.bodyWord())...)
}

// bodyWord returns the body of the request, with what the dialog adds to it.
func (r *request) bodyWord() shellWord {
	text, _ := json.Marshal(r.Body) // of texts
	begin := strings.TrimSuffix(string(text), "}")
	word := shellWord{{Text: begin}}
	if r.Reason == "body" {
		name := `,"reason":`
		if begin == "{" {
			name = name[1:]
		}
		word = append(word, piece{Text: name}, piece{Value: "reason", As: "json"})
	}
	if r.Final {
		word = append(word, piece{Text: `,"final":true`, If: "final"})
	}
	if r.Period {
		word = append(word, piece{Text: `,"for":`, If: "period"}, piece{Value: "period", As: "json", If: "period"})
	}
	return append(word, piece{Text: "}"})
}

// showQuestion responds with a question.
func (p *Page) showQuestion(w http.ResponseWriter, r *http.Request) {
	v, err := p.newVisit(r)
	if err != nil {
		p.showProblem(w, err)
		return
	}
	do, known := map[string]func(*visit) (*question, error){
		"cancel": askCancel, "release": askRelease, "forget": askForget, "run": askRun, "skip": askSkip,
		"rerun": askRerun,
		"again": runAgain, "reload": askReload, "pause": askPause, "resume": askResume, "seen": askSeen,
		"unseen":     askUnseen,
		"all-cancel": allCancel, "all-forget": allForget, "all-run": allOf("run"), "all-skip": allOf("skip"),
		"all-rerun": allOf("rerun"),
		"job-stop":  changeJob("stop"), "job-resume": changeJob("resume"),
		"picked-cancel": allCancel, "picked-forget": allForget,
		"picked-run": pickedParked("run", "Run now",
			"Each is tried now, or next in its queue, also where it needs a decision."),
		"picked-skip": pickedParked("skip", "Skip", "Each becomes a dead letter, whose request is kept, and the "+
			"next event of its queue runs."),
		"picked-rerun": pickedParked("rerun", "Rerun", "Each event joins the end of its queue."),
	}[v.query.Get("do")]
	if !known {
		p.refuseWith(w, http.StatusNotFound, "not_found", "no such action")
		return
	}
	q, err := do(v)
	if err != nil {
		p.showProblem(w, err)
		return
	}
	p.renderTemplate(w, http.StatusOK, "question", q)
}

// getExecution returns an execution.
func (v *visit) getExecution(id string) (*client.Execution, error) {
	return readObject[client.Execution](v, "/v1/executions/"+pathSegment(id))
}

// getSubject returns the execution that the question is about.
func (v *visit) getSubject() (*client.Execution, error) { return v.getExecution(v.query.Get("id")) }

func executionPath(id, action string) string {
	path := "v1/executions/" + pathSegment(id)
	if action != "" {
		path += "/" + action
	}
	return path
}

func namedExecution(x *client.Execution) string {
	return fmt.Sprintf("event %s of %s (%s)", eventName(x), x.Workflow, x.ExecutionID)
}

// evidenceOf says how far an execution went.
func evidenceOf(x *client.Execution) string {
	if x.Error != nil && x.Error.Detail != "" {
		return x.Error.Code + ": " + x.Error.Detail
	}
	if x.Response != nil {
		return fmt.Sprintf("the service answered %d", x.Response.Status)
	}
	if x.Parked != nil && x.Parked.LastEvidence != nil {
		e := x.Parked.LastEvidence
		said := "the latest try: " + strings.ReplaceAll(string(e.Outcome), "_", " ")
		if e.Detail != "" {
			said += ", " + e.Detail
		}
		return said
	}
	if x.Error != nil {
		return x.Error.Code
	}
	return ""
}

func cancelRequest(x *client.Execution) request {
	return request{
		Method: http.MethodPost, Path: executionPath(x.ExecutionID, "cancel"),
		Body: map[string]any{"ifStatus": string(x.Status)}, Reason: "body", Final: true,
		Names: shortID(x.ExecutionID),
	}
}

func askCancel(v *visit) (*question, error) {
	x, err := v.getSubject()
	if err != nil {
		return nil, err
	}
	q := &question{Title: "Cancel " + namedExecution(x), Verb: "Cancel this run", Reason: true, Final: true}
	switch {
	case x.Status.Terminal():
		q.Stop = "It has ended: " + string(x.Status) + "."
		return q, nil
	case x.Status == client.Pending && x.Parked == nil:
		q.Facts = []string{"It waits for the lock; nothing was sent to the service. It ends without having run.",
			"Its sender gets 503 execution_aborted."}
	case x.Parked != nil:
		q.Facts = []string{"Its sender was told that it is accepted and will not send it again by itself.",
			triedSoFar(x)}
	default:
		l := v.lockOf(x)
		if l != nil && l.ExecutionID == x.ExecutionID && l.Held {
			q.Facts = []string{"The service has answered and works on. It learns of the cancel at its next guard or " +
				"heartbeat and keeps the lock until then."}
		} else {
			q.Facts = []string{
				fmt.Sprintf("Its request to the service is closed within 200 ms, after %s so far. The service may "+
					"have acted on it: the outcome may be unknown.", story.Span(v.now.Sub(x.StartedAt.Time))),
				"Its sender gets 503 execution_aborted.",
			}
		}
		if l != nil && l.Waiting > 0 {
			q.Facts = append(q.Facts, story.Count(l.Waiting, "event waits", "events wait")+
				" for the lock: the next one runs then.")
		}
	}
	if x.Status == client.CancelRequested {
		q.Facts = append([]string{"Already requested by " + x.AbortedBy + ": " + x.AbortReason +
			". Only \"never again\" can be added."}, q.Facts...)
	}
	q.Facts = append(q.Facts, "The event may run again when its sender sends it again.",
		"Does nothing if it is no longer "+string(x.Status)+" by then.")
	q.Requests = []request{cancelRequest(x)}
	q.Commands = []shellLine{hooklockCommand("cancel", x.ExecutionID, "--if-status", string(x.Status), "--reason",
		theReason, asFinal)}
	return q, nil
}

func askRelease(v *visit) (*question, error) {
	workflow, id := v.query.Get("workflow"), v.query.Get("id")
	q := &question{Title: "Release the lock of " + workflow, Verb: "Release this lock", Reason: true}
	l, err := v.getLock(workflow)
	switch {
	case isProblem(err, client.CodeLockNotFound):
		q.Stop = "The lock is free."
		return q, nil
	case err != nil:
		return nil, err
	case l.ExecutionID != id && !slices.Contains(l.Executions, id):
		q.Stop = "Another execution has the lock now: " + l.ExecutionID + "."
		return q, nil
	}
	said := ""
	if x, err := v.getExecution(id); err != nil && !isProblem(err, client.CodeExecutionNotFound) {
		return nil, err
	} else if err == nil && evidenceOf(x) != "" {
		said = " (" + evidenceOf(x) + ")"
	}
	switch {
	case l.Cooling:
		q.Facts = []string{"The run has ended with an unknown outcome" + said +
			". The service may still be working: a second event can then run at the same time."}
	case l.IsStale:
		q.Facts = []string{"Its owner is gone" + said + ". The next event takes over by itself."}
	case l.Held:
		q.Facts = []string{fmt.Sprintf("%s has held the lock for %s and may still be working. A second event can "+
			"then run at the same time.", lockEvent(l), story.Span(v.now.Sub(l.LockedAt.Time)))}
	default:
		q.Facts = []string{fmt.Sprintf("%s has held the lock for %s. Its request to the service is closed and its "+
			"sender gets 503 lock_lost.", lockEvent(l), story.Span(v.now.Sub(l.LockedAt.Time))),
			"The service may still be working on it. A second event can then run at the same time."}
	}
	done := "The lock of " + workflow + " is released"
	if !l.Cooling {
		q.Facts = append(q.Facts, "Its execution becomes ABORTED, outcome unknown.")
		done += "; its execution is ABORTED"
	}
	q.Facts = append(q.Facts,
		fmt.Sprintf("Fencing number %d becomes stale: a service that compares it refuses late writes.", l.Token),
		story.Count(l.Waiting, "event waits", "events wait")+" for the lock.",
		"Does nothing if another execution has the lock by then.")
	q.Requests = []request{{
		Method: http.MethodDelete, Path: "v1/locks/" + pathSegment(workflow), Query: map[string]string{"execution": id},
		Reason: "query", Names: workflow,
		Done: done,
	}}
	q.Commands = []shellLine{hooklockCommand("locks", "release", argument(workflow), "--execution", id, "--reason",
		theReason)}
	return q, nil
}

func forgetRequest(x *client.Execution) request {
	return request{Method: http.MethodDelete, Path: executionPath(x.ExecutionID, ""), Reason: "query",
		Names: shortID(x.ExecutionID)}
}

func askForget(v *visit) (*question, error) {
	x, err := v.getSubject()
	if err != nil {
		return nil, err
	}
	q := &question{Title: "Allow again: " + namedExecution(x), Verb: "Allow again", Reason: true}
	if !x.Status.Terminal() {
		q.Stop = "It is " + string(x.Status) + ": cancel it first, or wait until it ends."
		return q, nil
	}
	q.Facts = []string{fmt.Sprintf("It ended %s ago: %s.", story.Span(v.now.Sub(x.FinishedAt.Time)), x.Status)}
	switch x.Outcome {
	case client.Unknown:
		q.Facts = append(q.Facts, "Its outcome is unknown ("+evidenceOf(x)+
			"): if it took effect, the event takes effect twice.")
	case client.Executed:
		q.Facts = append(q.Facts, "It ran ("+evidenceOf(
			x)+"): the event takes effect a second time when it comes again.")
	case client.NotExecuted:
		q.Facts = append(q.Facts, "Nothing was sent to the service.")
	}
	if x.Response != nil && x.Response.Kept {
		q.Facts = append(q.Facts, fmt.Sprintf("The answer kept for duplicates is removed; %s got it so far.",
			story.Count(x.Duplicates, "duplicate", "duplicates")))
	}
	if x.RequestKept {
		q.Facts = append(q.Facts, "The kept request is removed, too: it cannot be retried from here.")
	}
	q.Facts = append(q.Facts, "Nothing runs now: the sender has to send it again. Every replica allows it within 2 s.",
		"Does nothing if the event runs, or has run again, by then.")
	q.Requests = []request{forgetRequest(x)}
	q.Commands = []shellLine{hooklockCommand("forget", x.ExecutionID, "--reason", theReason)}
	return q, nil
}

// parkedQuestion asks about an execution whose request is kept.
func parkedQuestion(v *visit, do, verb string, facts func(x *client.Execution) []string) (*question, error) {
	x, err := v.getSubject()
	if err != nil {
		return nil, err
	}
	q := &question{Title: verb + ": " + namedExecution(x), Verb: verb, Reason: true}
	switch {
	case do == "rerun" && !x.RequestKept:
		q.Stop = "Its request is not kept: its sender can send it again."
		return q, nil
	case do != "rerun" && x.Parked == nil:
		q.Stop = "It does not wait any more: it is " + string(x.Status) + "."
		return q, nil
	}
	q.Facts = facts(x)
	q.Requests = []request{{Method: http.MethodPost, Path: executionPath(x.ExecutionID, do), Body: map[string]any{},
		Reason: "body", Names: shortID(x.ExecutionID)}}
	q.Commands = []shellLine{hooklockCommand(do, x.ExecutionID, "--reason", theReason)}
	return q, nil
}

func triedSoFar(x *client.Execution) string {
	said := fmt.Sprintf("It was tried %s, %d failed.", story.Count(x.Parked.Tries, "time", "times"), x.Parked.Failures)
	if e := evidenceOf(x); e != "" {
		said += " " + story.Sentence(e)
	}
	return said
}

// lockEvent names what holds a lock.
func lockEvent(l *client.Lock) string {
	if l.EventID != "" {
		return cutCell(l.EventID).Text
	}
	return l.Holder
}

func askRun(v *visit) (*question, error) {
	return parkedQuestion(v, "run", "Run now", func(x *client.Execution) []string {
		facts := []string{triedSoFar(x)}
		if x.Parked.Blocked != "" {
			facts = append(facts, "It needs a decision ("+x.Parked.Blocked+"): a try may make it take effect twice.")
		}
		return append(facts, "It is tried now, or next in its queue, with its whole max_age again.",
			"Does nothing if it has ended by then.")
	})
}

func askSkip(v *visit) (*question, error) {
	return parkedQuestion(v, "skip", "Skip", func(x *client.Execution) []string {
		return []string{
			triedSoFar(x), "It becomes a dead letter: its request is kept and can be retried later. The next event " +
				"of its queue runs.",
			"Its sender was told that it is accepted and will not send it again by itself.",
			"Does nothing if it has ended by then.",
		}
	})
}

func askRerun(v *visit) (*question, error) {
	return parkedQuestion(v, "rerun", "Rerun", func(x *client.Execution) []string {
		facts := []string{fmt.Sprintf("It ended after %s: %s. %s", story.Count(x.Tries, "try", "tries"), x.Status,
			story.Sentence(evidenceOf(x)))}
		if x.Outcome != client.NotExecuted {
			facts = append(facts, "Its outcome is "+string(x.Outcome)+": if it took effect, it takes effect twice.")
		}
		return append(facts, "It joins the end of its queue.", "Does nothing if the event has run again by then.")
	})
}

func askReload(*visit) (*question, error) {
	return &question{
		Title: "Reload the configuration of this replica", Verb: "Reload",
		Requests: []request{{Method: http.MethodPost, Path: "v1/config/reload", Names: "configuration"}},
		Facts: []string{
			"The file is read again, as on SIGHUP. If it has an error, the configuration in force stays.",
			"Running deliveries keep the rules they started with. Other replicas are not reloaded.",
		},
		Commands: []shellLine{hooklockCommand("reload")},
	}, nil
}

// mostAtOnce bounds one question about several executions.
const mostAtOnce = 100

// askAboutSeveral asks about the executions that match the filter of the screen.
func askAboutSeveral(v *visit, verb string, kind client.JobKind, fits func(*client.Execution) bool,
	of func(*client.Execution) request, line func(status client.Status, ids []string) shellLine,
	facts ...string) (*question, error) {
	page, err := v.chosenExecutions()
	if err != nil {
		return nil, err
	}
	q := &question{Reason: true, Facts: facts}
	ids := map[client.Status][]string{}
	for i := range page.Executions {
		if x := &page.Executions[i]; x.ExecutionID != "" && fits(x) {
			q.Requests = append(q.Requests, of(x))
			ids[x.Status] = append(ids[x.Status], x.ExecutionID)
		}
	}
	n := len(q.Requests)
	q.Title = verb + " " + story.Count(n, "event", "events")
	q.Verb = q.Title
	if n == 0 {
		q.Stop = "None matches any more."
		return q, nil
	}
	if page.NextCursor != "" {
		q.Facts = append([]string{fmt.Sprintf("More match: this is about the newest %d. Repeat it for the next ones.",
			n)}, q.Facts...)
	}
	unknown := 0
	for i := range page.Executions {
		if x := &page.Executions[i]; fits(x) && x.Outcome == client.Unknown {
			unknown++
		}
	}
	if unknown > 0 {
		q.Facts = append(q.Facts, fmt.Sprintf("%d of them have an unknown outcome: they may have taken effect.",
			unknown))
	}
	for _, s := range client.Statuses {
		if len(ids[s]) > 0 {
			q.Commands = append(q.Commands, line(s, ids[s]))
		}
	}
	if n > 1 {
		q.Requests = severalJobs(kind, ids)
	}
	return q, nil
}

// severalJobs starts a job for all of them. A cancel is one for each status, because it names what
// was seen.
func severalJobs(kind client.JobKind, ids map[client.Status][]string) (requests []request) {
	var all []string
	for _, s := range client.Statuses {
		if len(ids[s]) > 0 && kind == client.JobCancel {
			r := jobRequest(kind, "executions", ids[s])
			r.Body["ifStatus"] = string(s)
			requests = append(requests, r)
		}
		all = append(all, ids[s]...)
	}
	if kind == client.JobCancel {
		return requests
	}
	return []request{jobRequest(kind, "executions", all)}
}

// chosenExecutions returns the executions that a bulk question is about: those that were selected,
// or else those that match the search.
func (v *visit) chosenExecutions() (*client.ExecutionPage, error) {
	picked := v.query["pick"]
	if len(picked) == 0 {
		v.readSearch()
		page, _, err := v.findMatches(mostAtOnce)
		return page, err
	}
	page := &client.ExecutionPage{}
	for _, id := range picked[:min(len(picked), mostAtOnce)] {
		switch x, err := v.getExecution(id); {
		case err == nil:
			page.Executions = append(page.Executions, *x)
		case !isProblem(err, client.CodeExecutionNotFound):
			return nil, err
		}
	}
	return page, nil
}

// pickedParked asks about selected executions whose requests are stored.
func pickedParked(do, verb, fact string) func(v *visit) (*question, error) {
	return func(v *visit) (*question, error) {
		return askAboutSeveral(v, verb, client.JobKind(do), func(x *client.Execution) bool {
			return slices.Contains(canDo(x), do)
		},
			func(x *client.Execution) request {
				return request{Method: http.MethodPost, Path: executionPath(x.ExecutionID, do), Body: map[string]any{},
					Reason: "body", Names: shortID(x.ExecutionID)}
			},
			func(_ client.Status, ids []string) shellLine {
				return forEach(ids, hooklockCommand(do, theID, "--reason", theReason))
			}, fact, "Events that changed meanwhile are left alone.")
	}
}

func allCancel(v *visit) (*question, error) {
	return askAboutSeveral(v, "Cancel", client.JobCancel, func(x *client.Execution) bool {
		return !x.Status.Terminal() && x.Status != client.CancelRequested
	}, cancelRequest,
		func(status client.Status, ids []string) shellLine {
			return forEach(ids, hooklockCommand("cancel", theID, "--if-status", string(status), "--reason",
				theReason))
		},
		"Waiting events end without having run. Running requests are closed; their outcome may be unknown. Held "+
			"ones learn of it at their next guard or heartbeat.",
		"Events that changed meanwhile are left alone.")
}

func allForget(v *visit) (*question, error) {
	return askAboutSeveral(v, "Allow again", client.JobForget, func(x *client.Execution) bool {
		return x.Status.Terminal()
	}, forgetRequest,
		func(_ client.Status, ids []string) shellLine {
			return forEach(ids, hooklockCommand("forget", theID, "--reason", theReason))
		},
		"They run when their senders send them again; nothing runs now.",
		"Events that run, or have run again, meanwhile are left alone.")
}

// stateFlags are the flags of the command line for a state. There is none for "parked and not
// blocked".
var stateFlags = map[client.ParkState]shellLine{client.ParkBlocked: shellWords("--blocked"),
	client.ParkDeadLetter: shellWords("--dead-letters")}

// bulkFilters are the filters that bulk requests take besides a state.
var bulkFilters = []string{"workflow", "route", "label"}

// allOf asks about everything that is parked and matches a filter. Its count comes from a dry run.
func allOf(do string) func(*visit) (*question, error) {
	title := map[string]string{"run": "Run now", "skip": "Skip", "rerun": "Rerun"}[do]
	facts := map[string]string{
		"run":   "Each is tried now, or next in its queue, also where it needs a decision.",
		"skip":  "Each becomes a dead letter, whose request is kept, and the next event of its queue runs.",
		"rerun": "Each event joins the end of its queue, in the original order.",
	}[do]
	return func(v *visit) (*question, error) {
		filter, flags := map[string]any{}, shellLine{}
		for _, name := range bulkFilters {
			if value := v.query.Get(name); value != "" {
				filter[name] = value
				flags = append(flags, shellWords("--"+name, value)...)
			}
		}
		state := v.query.Get("state")
		if state != "" {
			filter["state"] = state
			flags = append(flags, stateFlags[client.ParkState(state)]...)
		}
		result := &client.Job{}
		body := map[string]any{"kind": do, "filter": filter, "dryRun": true}
		if err := v.api.do(http.MethodPost, "/v1/jobs", nil, body, result); err != nil {
			return nil, err
		}
		q := &question{Title: title + " " + story.Count(result.Matched, "event", "events"), Verb: title, Reason: true}
		if result.Matched == 0 {
			q.Stop = "None matches any more."
			return q, nil
		}
		q.Facts = []string{facts, "10 per second. Events that changed meanwhile are left alone.",
			"It goes on when this page is closed, and can be stopped."}
		q.Requests = []request{jobRequest(client.JobKind(do), "filter", filter)}
		if client.ParkState(state) != client.ParkWaiting {
			q.Commands = []shellLine{hooklockCommand(do, flags, "--reason", theReason)}
		}
		return q, nil
	}
}
