package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"hooklock/admin/client"
	"hooklock/admin/story"
)

// What the script puts into the commands that it shows: where the API is, why, and whether it is for good; each as its surroundings are spelled.
const (
	markBase       = "⟨base⟩"
	markShell      = "⟨reason:shell⟩"
	markJSON       = "⟨reason:json⟩"
	markURL        = "⟨reason:url⟩"
	markFinalShell = "⟨final:shell⟩"
	markFinalJSON  = "⟨final:json⟩"
)

// question is what a person is asked before something changes: what would follow, and why it should be.
type question struct {
	Title string
	Facts []string
	// Stop says why there is nothing to be done; then there is no button.
	Stop     string
	Reason   bool // it is asked for, and goes into the audit log
	Final    bool // it may be for good
	Requests []request
	Commands []string // the same for hooklock
}

// request is one request of the API.
type request struct {
	Method string            `json:"method"`
	Path   string            `json:"path"` // from where the page is
	Query  map[string]string `json:"query,omitempty"`
	Body   map[string]any    `json:"body"`  // nil = none
	Names  string            `json:"names"` // what it is about, for its result
	// Reason says where it goes: query or body; "" = nowhere.
	Reason string `json:"reason,omitempty"`
	Final  bool   `json:"mayBeFinal,omitempty"`
	Pages  bool   `json:"pages,omitempty"` // it goes on with nextCursor
	Done   string `json:"done,omitempty"`  // what its success is called; "": what Names is called, with the status of the answer
}

// JSON is what the script sends.
func (q *question) JSON() (string, error) {
	text, err := json.Marshal(q.Requests)
	return string(text), err
}

// Curl is the same for curl, of the first few.
func (q *question) Curl() []string {
	const most = 3
	var lines []string
	for i := range q.Requests {
		if i == most {
			return append(lines, fmt.Sprintf("# and %d more", len(q.Requests)-most))
		}
		lines = append(lines, q.Requests[i].curl())
	}
	return lines
}

func (r *request) curl() string {
	target := markBase + r.Path
	names := make([]string, 0, len(r.Query))
	for name := range r.Query {
		names = append(names, name)
	}
	slices.Sort(names)
	var pairs []string
	for _, name := range names {
		pairs = append(pairs, values(name, r.Query[name]).Encode())
	}
	if r.Reason == "query" {
		pairs = append(pairs, "reason="+markURL)
	}
	if len(pairs) > 0 {
		target += "?" + strings.Join(pairs, "&")
	}
	line := "curl -X " + r.Method + ` -H "Authorization: Bearer $TOKEN" ` + "'" + target + "'"
	if r.Body == nil {
		return line
	}
	text, _ := json.Marshal(r.Body) // of texts
	body := string(text)
	if r.Reason == "body" {
		body = strings.TrimSuffix(body, "}")
		if body != "{" {
			body += ","
		}
		body += `"reason":"` + markJSON + `"}`
	}
	if r.Final {
		body = strings.TrimSuffix(body, "}") + markFinalJSON + "}"
	}
	return line + " -d " + "'" + strings.ReplaceAll(body, "'", `'\''`) + "'"
}

// ask answers with a question.
func (p *Page) ask(w http.ResponseWriter, r *http.Request) {
	v, err := p.visit(r)
	if err != nil {
		p.problem(w, err)
		return
	}
	do, known := map[string]func(*visit) (*question, error){
		"cancel": cancel, "release": release, "forget": forget, "run": run, "skip": skip, "rerun": rerun, "reload": reload,
		"all-cancel": allCancel, "all-forget": allForget, "all-run": allOf("run"), "all-skip": allOf("skip"), "all-rerun": allOf("rerun"),
	}[v.query.Get("do")]
	if !known {
		p.refuse(w, http.StatusNotFound, "not_found", "there is no such button")
		return
	}
	q, err := do(v)
	if err != nil {
		p.problem(w, err)
		return
	}
	p.render(w, http.StatusOK, "question", q)
}

// execution is the one that the question is about, as it is now.
func (v *visit) execution() (*client.Execution, error) {
	x := &client.Execution{}
	return x, v.api.get("/v1/executions/"+escape(v.query.Get("id")), nil, x)
}

func executionPath(id, action string) string {
	path := "v1/executions/" + escape(id)
	if action != "" {
		path += "/" + action
	}
	return path
}

// command is hooklock with these arguments, where the page's own address is.
func command(args string) string { return "hooklock " + args + " --admin '" + markBase + "'" }

// quoted is text as one word for a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func named(x *client.Execution) string {
	return fmt.Sprintf("event %s of %s (%s)", eventName(x), x.Workflow, x.ExecutionID)
}

// evidence is what is known of how far an execution went.
func evidence(x *client.Execution) string {
	if x.Error != nil && x.Error.Detail != "" {
		return x.Error.Code + ": " + x.Error.Detail
	}
	if x.Response != nil {
		return fmt.Sprintf("the upstream answered %d with %s", x.Response.Status, story.Count(x.Response.Bytes, "byte", "bytes"))
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
		Method: http.MethodPost, Path: executionPath(x.ExecutionID, "cancel"), Body: map[string]any{"ifStatus": string(x.Status)}, Reason: "body", Final: true,
		Names: shortID(x.ExecutionID),
	}
}

func cancel(v *visit) (*question, error) {
	x, err := v.execution()
	if err != nil {
		return nil, err
	}
	q := &question{Title: "Cancel " + named(x), Reason: true, Final: true}
	switch {
	case x.Status.Terminal():
		q.Stop = "It has ended as " + string(x.Status) + ", and its first end stays."
		return q, nil
	case x.Status == client.Pending && x.Parked == nil:
		q.Facts = []string{"It waits for the lock and has not reached the upstream: it ends now, provably without having run.", "Its sender is told 503 execution_aborted."}
	case x.Parked != nil:
		q.Facts = []string{"Its sender was told that it is accepted, and will not send it again by itself.", fmt.Sprintf("It was tried %s. %s.", story.Count(x.Parked.Tries, "time", "times"), evidence(x))}
	default:
		l := v.lockOf(x)
		if l != nil && l.ExecutionID == x.ExecutionID && l.Held {
			q.Facts = []string{"The upstream has answered and works on: it hears of the cancel at its next guard or heartbeat, and the lock stays its own until then."}
		} else {
			q.Facts = []string{
				fmt.Sprintf("Its call of the upstream has lasted for %s and is closed within 200 ms. What was sent by then stays sent, so the outcome may be unknown.", story.Span(v.now.Sub(x.StartedAt.Time))),
				"Its sender is told 503 execution_aborted.",
			}
		}
		if l != nil && l.Waiting > 0 {
			q.Facts = append(q.Facts, story.Count(l.Waiting, "execution waits", "executions wait")+" behind it: the next one runs then.")
		}
	}
	if x.Status == client.CancelRequested {
		q.Facts = append([]string{"It was asked already by " + x.AbortedBy + ": " + x.AbortReason + ". Only that it is for good can be added."}, q.Facts...)
	}
	q.Facts = append(q.Facts, "The event may run again when its sender sends it again, unless this is for good.",
		"Where it is not "+string(x.Status)+" any more when this arrives, nothing is done.")
	q.Requests = []request{cancelRequest(x)}
	q.Commands = []string{command("executions cancel " + x.ExecutionID + " --if-status " + string(x.Status) + " --reason " + markShell + markFinalShell)}
	return q, nil
}

func release(v *visit) (*question, error) {
	workflow, id := v.query.Get("workflow"), v.query.Get("id")
	l := &client.Lock{}
	q := &question{Title: "Release the lock of " + workflow, Reason: true}
	switch err := v.api.get("/v1/locks/"+escape(workflow), nil, l); {
	case is(err, client.CodeLockNotFound):
		q.Stop = "The lock is free."
		return q, nil
	case err != nil:
		return nil, err
	case l.ExecutionID != id && !slices.Contains(l.Executions, id):
		q.Stop = "Another execution has it by now: " + l.ExecutionID + ". Look again, then decide."
		return q, nil
	}
	x := &client.Execution{}
	if err := v.api.get("/v1/executions/"+escape(id), nil, x); err != nil && !is(err, client.CodeExecutionNotFound) {
		return nil, err
	}
	said := evidence(x)
	if said != "" {
		said = " (" + said + ")"
	}
	switch {
	case l.Cooling:
		q.Facts = []string{"Its execution has ended with an unknown outcome" + said + ", and the lock is closed so that nothing runs beside what the upstream may still do: releasing lets a second one run beside it."}
	case l.IsStale:
		q.Facts = []string{"Its owner is dead. The next one to come would take over by itself; what the owner had sent stays sent" + said + "."}
	case l.Held:
		q.Facts = []string{fmt.Sprintf("Its execution %s has it since %s ago and goes on: releasing lets a second one run beside it. It hears of this at its next guard or heartbeat.", l.ExecutionID, story.Span(v.now.Sub(l.LockedAt.Time)))}
	default:
		q.Facts = []string{fmt.Sprintf("Its call of the upstream has lasted for %s and is closed, its sender is told 503 lock_lost. The upstream may still be busy with it: releasing lets a second one run beside it.", story.Span(v.now.Sub(l.LockedAt.Time)))}
	}
	done := "The lock of " + workflow + " is released"
	if !l.Cooling {
		q.Facts = append(q.Facts, "Its record becomes ABORTED, outcome unknown.")
		done += "; its execution is ABORTED"
	}
	q.Facts = append(q.Facts,
		fmt.Sprintf("Token %d becomes stale: a service that compares fencing tokens refuses what comes late with it, another one does not.", l.Token),
		story.Count(l.Waiting, "execution waits", "executions wait")+" behind it.",
		"Where another execution has the lock when this arrives, nothing is done.")
	q.Requests = []request{{
		Method: http.MethodDelete, Path: "v1/locks/" + escape(workflow), Query: map[string]string{"execution": id}, Reason: "query", Names: workflow,
		Done: done,
	}}
	q.Commands = []string{command("locks release " + quoted(workflow) + " --execution " + id + " --reason " + markShell)}
	return q, nil
}

func forgetRequest(x *client.Execution) request {
	return request{Method: http.MethodDelete, Path: executionPath(x.ExecutionID, ""), Reason: "query", Names: shortID(x.ExecutionID)}
}

func forget(v *visit) (*question, error) {
	x, err := v.execution()
	if err != nil {
		return nil, err
	}
	q := &question{Title: "Forget " + named(x), Reason: true}
	if !x.Status.Terminal() {
		q.Stop = "It is " + string(x.Status) + " and has not ended: cancel it first, or wait for its end."
		return q, nil
	}
	q.Facts = []string{fmt.Sprintf("It ended as %s %s ago.", x.Status, story.Span(v.now.Sub(x.FinishedAt.Time)))}
	switch x.Outcome {
	case client.Unknown:
		q.Facts = append(q.Facts, "Its outcome is unknown ("+evidence(x)+"): it may have taken effect, and then the event takes effect twice.")
	case client.Executed:
		q.Facts = append(q.Facts, "It ran ("+evidence(x)+"): the event takes effect a second time when it comes again.")
	case client.NotExecuted:
		q.Facts = append(q.Facts, "Provably nothing reached the upstream.")
	}
	if x.Response != nil && x.Response.Kept {
		q.Facts = append(q.Facts, fmt.Sprintf("The answer that duplicates get goes; %s got it so far.", story.Count(x.Duplicates, "copy", "copies")))
	}
	if x.RequestKept {
		q.Facts = append(q.Facts, "The kept request goes, too: it cannot be run again from here.")
	}
	q.Facts = append(q.Facts, "Nothing runs now: its sender has to send it again. Every replica lets it run within 2 s.", "Where the event has run again, or runs, when this arrives, nothing is done.")
	q.Requests = []request{forgetRequest(x)}
	q.Commands = []string{command("executions forget " + x.ExecutionID + " --reason " + markShell)}
	return q, nil
}

// parkedQuestion is about an execution whose request is kept.
func parkedQuestion(v *visit, do, title string, facts func(x *client.Execution) []string) (*question, error) {
	x, err := v.execution()
	if err != nil {
		return nil, err
	}
	q := &question{Title: title + " " + named(x), Reason: true}
	switch {
	case do == "rerun" && !x.RequestKept:
		q.Stop = "Its request is not kept, or not any more: its sender can send it again."
		return q, nil
	case do != "rerun" && x.Parked == nil:
		q.Stop = "It is not parked: it is " + string(x.Status) + "."
		return q, nil
	}
	q.Facts = facts(x)
	q.Requests = []request{{Method: http.MethodPost, Path: executionPath(x.ExecutionID, do), Body: map[string]any{}, Reason: "body", Names: shortID(x.ExecutionID)}}
	q.Commands = []string{command("executions " + do + " " + x.ExecutionID + " --reason " + markShell)}
	return q, nil
}

func triedSoFar(x *client.Execution) string {
	said := fmt.Sprintf("It was tried %s, %d failed.", story.Count(x.Parked.Tries, "time", "times"), x.Parked.Failures)
	if e := evidence(x); e != "" {
		said += " " + strings.ToUpper(e[:1]) + e[1:] + "."
	}
	return said
}

func run(v *visit) (*question, error) {
	return parkedQuestion(v, "run", "Run now:", func(x *client.Execution) []string {
		facts := []string{triedSoFar(x)}
		if x.Parked.Blocked != "" {
			facts = append(facts, "It waits for a person, because "+x.Parked.Blocked+": running it may make it take effect twice.")
		}
		return append(facts, "It is tried now, or next in its line, with its whole max_age again.", "Where it has ended when this arrives, nothing is done.")
	})
}

func skip(v *visit) (*question, error) {
	return parkedQuestion(v, "skip", "Skip", func(x *client.Execution) []string {
		return []string{
			triedSoFar(x), "It becomes a dead letter: its request is kept and can be run again later. The next one of its line runs.",
			"Its sender was told that it is accepted, and will not send it again by itself.", "Where it has ended when this arrives, nothing is done.",
		}
	})
}

func rerun(v *visit) (*question, error) {
	return parkedQuestion(v, "rerun", "Run again:", func(x *client.Execution) []string {
		facts := []string{fmt.Sprintf("It ended as %s after %s. %s", x.Status, story.Count(x.Tries, "try", "tries"), story.Sentence(evidence(x)))}
		if x.Outcome != client.NotExecuted {
			facts = append(facts, "Its outcome is "+string(x.Outcome)+": it may have taken effect, and then it takes effect twice.")
		}
		return append(facts, "A new execution of the event is the last of its line.", "Where the event has run again since when this arrives, nothing is done.")
	})
}

func reload(*visit) (*question, error) {
	return &question{
		Title: "Reload the configuration of this replica", Requests: []request{{Method: http.MethodPost, Path: "v1/config/reload", Names: "configuration"}},
		Facts: []string{
			"The file is read again, as SIGHUP does. Where something in it is wrong, all of it is refused and the configuration in force stays.",
			"Deliveries that are on their way keep the rules with which they began. The other replicas are not asked.",
		},
		Commands: []string{command("reload")},
	}, nil
}

// mostAtOnce is how many a question about several is for.
const mostAtOnce = 100

// several is a question about those of a filter that fit.
func several(v *visit, verb string, fits func(*client.Execution) bool, of func(*client.Execution) request, line func(status client.Status, ids []string) string, facts ...string) (*question, error) {
	page, _, err := v.found(mostAtOnce)
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
	q.Title = verb + " " + story.Count(n, "execution", "executions")
	if n == 0 {
		q.Stop = "There is none any more."
		return q, nil
	}
	if page.NextCursor != "" {
		q.Facts = append([]string{fmt.Sprintf("More than these fit: this is about the newest %d; ask again for the next.", n)}, q.Facts...)
	}
	unknown := 0
	for i := range page.Executions {
		if x := &page.Executions[i]; fits(x) && x.Outcome == client.Unknown {
			unknown++
		}
	}
	if unknown > 0 {
		q.Facts = append(q.Facts, fmt.Sprintf("The outcome of %d of them is unknown: they may have taken effect.", unknown))
	}
	for _, s := range client.Statuses {
		if len(ids[s]) > 0 {
			q.Commands = append(q.Commands, line(s, ids[s]))
		}
	}
	return q, nil
}

func allCancel(v *visit) (*question, error) {
	return several(v, "Cancel", func(x *client.Execution) bool { return !x.Status.Terminal() && x.Status != client.CancelRequested }, cancelRequest,
		func(status client.Status, ids []string) string {
			return "for id in " + strings.Join(ids, " ") + "; do " + command(`executions cancel "$id" --if-status `+string(status)+" --reason "+markShell) + "; done"
		},
		"What waits ends now, provably without having run. The call of what runs is closed, and its outcome may be unknown. What is held hears of it at its next guard or heartbeat.",
		"Each one is asked for as it stands here: where it has moved on when its request arrives, nothing is done with it.")
}

func allForget(v *visit) (*question, error) {
	return several(v, "Forget", func(x *client.Execution) bool { return x.Status.Terminal() }, forgetRequest,
		func(_ client.Status, ids []string) string {
			return "for id in " + strings.Join(ids, " ") + "; do " + command(`executions forget "$id" --reason `+markShell) + "; done"
		},
		"Their events run again when their senders send them again; until then nothing runs.",
		"Where an event has run again, or runs, when its request arrives, nothing is done with it.")
}

// stateFlags are what the command line has for a state. For what is parked and not blocked it has none: without a flag both are meant.
var stateFlags = map[client.ParkState]string{client.ParkBlocked: " --blocked", client.ParkDeadLetter: " --dead-letters"}

// bulkFilters are what the API's bulks take besides a state.
var bulkFilters = []string{"workflow", "route"}

// allOf is the question for everything that is parked and fits a filter. Its count is a dry run's.
func allOf(do string) func(*visit) (*question, error) {
	title := map[string]string{"run": "Run now", "skip": "Skip", "rerun": "Run again"}[do]
	facts := map[string]string{
		"run":   "Each is tried now, or next in its line, whatever it waits for, also a person.",
		"skip":  "Each becomes a dead letter, whose request is kept, and the next one of its line runs.",
		"rerun": "A new execution of each event is the last of its line, in the order in which they were in it.",
	}[do]
	return func(v *visit) (*question, error) {
		filter, flags := map[string]any{}, ""
		for _, name := range bulkFilters {
			if value := v.query.Get(name); value != "" {
				filter[name] = value
				flags += " --" + name + " " + quoted(value)
			}
		}
		state := v.query.Get("state")
		if state != "" {
			filter["state"] = state
			flags += stateFlags[client.ParkState(state)]
		}
		result := &client.BulkResult{}
		body := map[string]any{"filter": filter, "dryRun": true, "limit": 1000}
		if err := v.api.do(http.MethodPost, "/v1/executions/"+do, nil, body, result); err != nil {
			return nil, err
		}
		q := &question{Title: title + " " + story.Count(result.Matched, "execution", "executions"), Reason: true}
		if result.Matched == 0 {
			q.Stop = "There is none any more."
			return q, nil
		}
		if result.NextCursor != "" {
			q.Title = fmt.Sprintf("%s more than %d executions", title, len(result.Executions))
		}
		q.Facts = []string{facts, "Ten are done each second. What has moved on when its turn comes is refused, and nothing is done with it."}
		q.Requests = []request{{
			Method: http.MethodPost, Path: "v1/executions/" + do, Body: map[string]any{"filter": filter, "limit": 100}, Reason: "body", Names: "all", Pages: true,
		}}
		if client.ParkState(state) != client.ParkWaiting {
			q.Commands = []string{command("executions " + do + flags + " --reason " + markShell)}
		}
		return q, nil
	}
}
