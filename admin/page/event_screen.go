package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/idem"
)

// item is one thing that happened.
type item struct {
	At    time.Time
	After string // the first one
	Kind  string // arrival, attempt, end, step, cancel, audit, park, now
	Title string
	Why   string // a sentence, with marked times
	Cells []cell
}

// eventScreen shows all that is known of one event.
func eventScreen(v *visit) ([]section, error) {
	x, err := v.getEvent()
	if isProblem(err, client.CodeStoreUnavailable) {
		return []section{{ID: "story", Title: "Event", Trouble: "The event cannot be read now: etcd does not " +
			"answer. The log of the replicas has its lines."}}, nil
	}
	if err != nil {
		return nil, err
	}
	items := itemsOf(x)
	var lock *client.Lock
	if x.ExecutionID != "" && !x.Status.Terminal() {
		lock = v.lockOf(x)
	}
	told := story.Story{Execution: x, Lock: lock, Rules: v.rulesOf(x.Route), Now: v.now, Stamp: markTime}
	facts, details := eventFacts(x)
	head := section{ID: "event", Title: cmp.Or(eventName(x), "Event"),
		Lead: []cell{splitAtTimes(told.Happened()), splitAtTimes(told.Todo())}, Facts: facts, Asks: asksOf(x)}
	items = append(items, lockItems(x, lock, v.now)...)
	if lock != nil && lock.ExecutionID == x.ExecutionID {
		head.Asks = append(head.Asks, askFor("Release…", "release", "workflow", x.Workflow, "id", x.ExecutionID))
	}
	status, _ := v.getReplica()             // without it, a paused workflow can be paused again
	if !strings.Contains(x.Workflow, "*") { // which would be a pattern
		head.Asks = append(head.Asks, pauseAsk("workflow:"+x.Workflow, status))
	}
	told.Stamp = func(t time.Time) string { return "⟨at:" + t.UTC().Format(time.RFC3339Nano) + "⟩" }
	head.Ticket = told.Markdown("⟨page⟩")
	if x.ExecutionID != "" {
		items = append(items, v.auditItems(x)...)
	}
	all := []section{head, {ID: "axis", Title: "Timeline", Picture: newTimeline(x.Workflow, v.spellsOf(x, lock), v.now),
		Story: inOrder(items), Note: leftOut(x)}}
	if x.EventID != "" {
		if unsigned, found := v.claimedSection(x.Route, x.EventID); found {
			all = append(all, unsigned)
		}
	}
	if len(x.FailedAnswers) > 0 {
		all = append(all, section{ID: "tries", Title: "Failed tries",
			Table: tableOf("Failed tries", []column[client.FailedAnswer]{
				{"Time", func(a *client.FailedAnswer) cell { return timeCell(a.At, "at") }},
				{"Answer", func(a *client.FailedAnswer) cell { return numberCell(int64(a.Status)) }},
				{"The service said", func(a *client.FailedAnswer) cell { return textCell(a.Text) }},
			}, x.FailedAnswers, func(a *client.FailedAnswer) string { return a.At.String() })})
	}
	return append(all, section{ID: "details", Title: "Details", Fold: "IDs and numbers", Facts: details},
			elsewhereSection(x)),
		nil
}

// getEvent returns the event that the URL names, by one of its executions, or by its key where none
// ran.
func (v *visit) getEvent() (*client.Execution, error) {
	if id := v.query.Get("id"); id != "" {
		return v.getExecution(id)
	}
	if v.query.Get("key") == "" {
		return nil, &client.Problem{Status: 400, Code: client.CodeBadRequest, Detail: "name an event by id or key"}
	}
	page, err := readObject[client.ExecutionPage](v, "/v1/executions", "key", v.query.Get("key"), "workflow",
		v.query.Get("workflow"), "limit", "1")
	if err != nil {
		return nil, err
	}
	if len(page.Executions) == 0 {
		return nil, &client.Problem{Status: 404, Code: client.CodeExecutionNotFound,
			Detail: "no such event: its record has expired, or it was allowed again"}
	}
	x := &page.Executions[0]
	if x.ExecutionID == "" {
		return x, nil
	}
	return v.getExecution(x.ExecutionID)
}

// rulesOf returns what a route does; nil = nothing is known, or not visible to this token.
func (v *visit) rulesOf(route string) *client.RouteRules {
	list, err := readObject[client.RouteList](v, "/v1/routes")
	if err != nil {
		return nil
	}
	return list.Of(route)
}

func eventName(x *client.Execution) string {
	if x.EventID != "" {
		return cutCell(x.EventID).Text
	}
	return x.IdempotencyKey[:min(16, len(x.IdempotencyKey))]
}

// eventFacts returns the main facts of an event, and its IDs and numbers.
func eventFacts(x *client.Execution) (facts, details []fact) {
	facts = []fact{{"status", []cell{stateCell(x), outcomeCell(x.Outcome), parkedCell(x)}}}
	add := func(to *[]fact, name string, cells ...cell) {
		if len(cells) > 0 && !cells[0].isEmpty() {
			*to = append(*to, fact{name, cells})
		}
	}
	if x.Arrivals != nil && len(x.Arrivals.Newest) > 0 {
		a := &x.Arrivals.Newest[0]
		add(&facts, "sender got", textCell(fmt.Sprintf("%d (%s)", a.Status, story.Words(a.Decision))),
			timeCell(client.Time{Time: a.Answered()}, "at"))
	} else if x.Response != nil && x.ParkedOn == "" {
		add(&facts, "sender got", textCell(fmt.Sprint(x.Response.Status)), timeCell(x.FinishedAt, "at"))
	}
	if r := x.Response; r != nil {
		kept := "not kept"
		if r.Kept {
			kept = "kept for duplicates"
		}
		add(&facts, "answer", textCell(fmt.Sprintf("%d, %d B, %s", r.Status, r.Bytes, kept)))
	}
	add(&facts, "duplicates", numberCell(x.Duplicates))
	for _, name := range slices.Sorted(maps.Keys(x.Labels)) {
		add(&facts, name, cell{Text: x.Labels[name], Href: screenLink("find", "label", name+"="+x.Labels[name])})
	}
	w := textCell(x.Workflow)
	w.Href = screenLink("find", "workflow", x.Workflow)
	add(&facts, "workflow", w)
	route := textCell(x.Route)
	route.Href = screenLink("find", "route", x.Route)
	add(&facts, "route", route)
	if o := x.Order; o != nil && o.Stale != "" {
		add(&facts, "order", textCell(o.Stale+" older than the newest that went through:"), ofExecution(o.Newest))
	}
	if x.Final {
		add(&facts, "final", textCell("never runs again, unless it is allowed again"))
	}
	add(&facts, "replaced by", ofExecution(x.SupersededBy))
	if l := x.Latest; l != nil {
		add(&facts, "latest", textCell("a newer event would replace it; it replaced "+strconv.Itoa(l.Replaced)))
	}
	add(&details, "event ID", textCell(x.EventID))
	add(&details, "execution", cell{Text: x.ExecutionID, Class: "id"})
	add(&details, "key", cell{Text: x.IdempotencyKey, Class: "id"})
	add(&details, "fingerprint", cell{Text: x.Fingerprint, Class: "id"})
	add(&details, "fencing number", numberCell(x.Token))
	add(&details, "request stored", textCell(x.RequestStored))
	add(&details, "replica", textCell(x.Holder))
	if x.Error != nil {
		add(&details, "error", textCell(x.Error.Code), textCell(x.Error.Detail))
	}
	return facts, details
}

// itemsOf returns what the API knows of the event, one item for each thing that happened.
func itemsOf(x *client.Execution) []item {
	var items []item
	if x.Arrivals != nil {
		arrivals, own := arrivalsOf(x), ownAttempts(x)
		for i := range arrivals {
			items = append(items, arrivalItems(&arrivals[i], own)...)
		}
	}
	if r := x.Released; r != nil {
		items = append(items, item{At: r.At.Time, Kind: "audit", Title: "Allowed to run again",
			Why: story.Sentence(r.Text())})
	}
	attempts := attemptsOf(x)
	for i := range attempts {
		items = append(items, attemptItems(i+1, &attempts[i])...)
	}
	for _, s := range x.Steps {
		items = append(items, stepItems(s, x)...)
	}
	return append(items, parkItems(x)...)
}

// attemptsOf returns the attempts of an event. The API leaves out the list if there is one attempt.
func attemptsOf(x *client.Execution) []client.Attempt {
	if len(x.Attempts) > 0 || x.ExecutionID == "" {
		return x.Attempts
	}
	return []client.Attempt{latestAttempt(x)}
}

// latestAttempt returns what an execution in a list says of its latest attempt.
func latestAttempt(x *client.Execution) client.Attempt {
	a := client.Attempt{
		ExecutionID: x.ExecutionID, Status: x.Status, Outcome: x.Outcome, StartedAt: x.StartedAt,
		FinishedAt: x.FinishedAt, Error: x.Error, AbortedAt: x.AbortedAt,
		AbortedBy: x.AbortedBy, AbortReason: x.AbortReason, Tries: x.Tries, TraceID: x.TraceID,
	}
	if x.Response != nil {
		a.Answer = x.Response.Status
	}
	return a
}

// arrivalsOf returns the deliveries that are kept one by one: the newest, and the first.
func arrivalsOf(x *client.Execution) []client.Arrival {
	h := x.Arrivals
	if h == nil {
		return nil
	}
	arrivals := slices.Clone(h.Newest)
	if n := len(arrivals); n == 0 || arrivals[n-1].At.After(h.First.At.Time) {
		arrivals = append(arrivals, h.First)
	}
	return arrivals
}

// ownAttempts returns when each execution of the event started.
func ownAttempts(x *client.Execution) map[string]time.Time {
	own := map[string]time.Time{x.ExecutionID: x.StartedAt.Time}
	for i := range x.Attempts {
		own[x.Attempts[i].ExecutionID] = x.Attempts[i].StartedAt.Time
	}
	return own
}

// longWait is how long a delivery waits for its response before it is told when it came as well.
const longWait = 100 * time.Millisecond

// arrivalItems returns a delivery at the time of its response, and what waited also when it came:
// in between, other things happened.
func arrivalItems(a *client.Arrival, own map[string]time.Time) (items []item) {
	i := item{At: a.Answered(), Kind: "arrival", Title: "Delivery received"}
	if took := i.At.Sub(a.At.Time); took >= longWait {
		items = append(items, item{At: a.At.Time, Kind: "arrival", Title: "Delivery received, waits for its answer"})
		i.Title = "Delivery answered after " + story.Span(took)
	}
	i.Title += fmt.Sprintf(": %s, the sender got %d", story.Words(a.Decision), a.Status)
	i.Why = story.Sentence(story.Why(a, markTime))
	if len(a.Differs) > 0 {
		i.Why += " What differs: " + strings.Join(a.Differs, ", ") + "."
	}
	if a.EventID != "" {
		i.Why += " It came as " + a.EventID + ", with the body of this event (twins: same_event)."
	}
	if a.From != "" {
		i.Cells = append(i.Cells, textCell("from "+a.From))
	}
	if _, itself := own[a.ExecutionID]; !itself && a.ExecutionID != "" {
		i.Cells = append(i.Cells, textCell("running then:"), ofExecution(a.ExecutionID))
	}
	if a.TraceID != "" {
		i.Cells = append(i.Cells, cell{Text: "trace " + a.TraceID, Class: "id"})
	}
	return append(items, i)
}

func attemptItems(n int, a *client.Attempt) []item {
	begin := item{At: a.StartedAt.Time, Kind: "attempt", Title: fmt.Sprintf("Attempt %d started", n),
		Cells: []cell{ofExecution(a.ExecutionID)}}
	if a.Status == client.Pending {
		begin.Title = fmt.Sprintf("Attempt %d waits for the lock", n)
	}
	if len(a.Differs) > 0 {
		begin.Why = "What differs from the attempt before: " + strings.Join(a.Differs, ", ") + "."
	}
	if a.TraceID != "" {
		begin.Cells = append(begin.Cells, cell{Text: "trace " + a.TraceID, Class: "id"})
	}
	items := []item{begin}
	if !a.AbortedAt.IsZero() {
		items = append(items, item{At: a.AbortedAt.Time, Kind: "cancel", Title: "Cancelled by " + a.AbortedBy,
			Why: a.AbortReason})
	}
	if a.FinishedAt.IsZero() {
		return items
	}
	end := item{At: a.FinishedAt.Time, Kind: "end", Title: fmt.Sprintf("Attempt %d ended: %s", n, a.Status),
		Cells: []cell{textCell("after " + story.Span(a.FinishedAt.Sub(a.StartedAt.Time)))}}
	switch a.Outcome {
	case client.Executed:
		end.Why = "The service answered"
		if a.Answer != 0 {
			end.Why += fmt.Sprintf(" %d", a.Answer)
		}
		end.Why += "."
	case client.NotExecuted:
		end.Why = "Nothing was sent to the service."
	case client.Unknown:
		end.Why = "Outcome unknown."
	}
	if a.Error != nil {
		end.Why += " " + a.Error.Code
		if a.Error.Detail != "" {
			end.Why += ": " + a.Error.Detail
		}
	}
	if a.Tries > 0 {
		end.Cells = append(end.Cells, textCell(story.Count(a.Tries, "try", "tries")))
	}
	return append(items, end)
}

func stepItems(s client.Step, x *client.Execution) []item {
	if s.StartedAt.IsZero() {
		at := x.FinishedAt.Time
		if at.IsZero() {
			at = x.StartedAt.Time
		}
		return []item{{At: at, Kind: "step", Title: "Step " + s.Name + " was " + s.Status}}
	}
	i := item{At: s.StartedAt.Time, Kind: "step", Title: "Step " + s.Name + ": " + s.Status}
	if !s.FinishedAt.IsZero() {
		i.Cells = []cell{textCell("after " + story.Span(s.FinishedAt.Sub(s.StartedAt.Time)))}
	}
	return []item{i}
}

func parkItems(x *client.Execution) []item {
	p := x.Parked
	if p == nil {
		return nil
	}
	items := []item{{
		At: p.Since.Time, Kind: "park", Title: "Accepted to run later: " + p.On,
		Cells: []cell{textCell(fmt.Sprintf("%s, %d failed", story.Count(p.Tries, "try", "tries"), p.Failures))},
	}}
	if e := p.LastEvidence; e != nil {
		i := item{At: e.At.Time, Kind: "park", Title: "Latest try: " + strings.ReplaceAll(string(e.Outcome), "_", " "),
			Why: strings.TrimPrefix(e.Code+": "+e.Detail, ": ")}
		if e.Status != 0 {
			i.Cells = []cell{textCell(fmt.Sprintf("the service answered %d", e.Status))}
		}
		items = append(items, i)
	}
	switch {
	case p.Blocked != "":
		items[len(items)-1].Cells = append(items[len(items)-1].Cells,
			cell{Text: "needs a decision: " + p.Blocked, Class: "bad"})
	case !p.NextAttempt.IsZero():
		items = append(items, item{At: p.NextAttempt.Time, Kind: "now", Title: "Next try"})
	}
	return items
}

// lockOf returns the lock of the event's workflow; nil = it is free, or not known.
func (v *visit) lockOf(x *client.Execution) *client.Lock {
	l, _ := v.getLock(x.Workflow)
	return l
}

func (v *visit) getLock(workflow string) (*client.Lock, error) {
	return readObject[client.Lock](v, "/v1/locks/"+pathSegment(workflow))
}

// lockItems says whether the event holds the lock now or waits for it.
func lockItems(x *client.Execution, l *client.Lock, now time.Time) []item {
	if l == nil {
		return nil
	}
	if l.ExecutionID != x.ExecutionID {
		return []item{{
			At: now, Kind: "now", Title: "Waiting: another event of the workflow runs",
			Why:   story.Sentence(idem.DecisionLocked.Row().Happened),
			Cells: []cell{ofExecution(l.ExecutionID), textCell(fmt.Sprint(l.Waiting, " waiting"))},
		}}
	}
	state, behind := lockState(l), textCell(fmt.Sprint(l.Waiting, " waiting"))
	state.Text += ","
	i := item{At: now, Kind: "now", Title: "Has the lock of its workflow", Cells: []cell{state, behind}}
	if !l.ExpiresAt.IsZero() {
		i.Cells[1].Text += ","
		i.Cells = append(i.Cells, textCell("ends by "+l.EndsBy), timeCell(l.ExpiresAt, "in"))
	}
	return []item{i}
}

// auditItems returns the changes by operators.
func (v *visit) auditItems(x *client.Execution) []item {
	page, err := readObject[client.AuditPage](v, "/v1/audit", "execution", x.ExecutionID, "limit", "50")
	if err != nil {
		return nil
	}
	var items []item
	for i := range page.Audits {
		a := &page.Audits[i]
		title := a.Who + " asked for " + a.What + ": " + a.Result
		if a.Code != "" {
			title += ", " + a.Code
		}
		i := item{At: a.At.Time, Kind: "audit", Title: title, Why: a.Why}
		if i.Why == x.AbortReason { // shown with the cancel
			i.Why = ""
		}
		items = append(items, i)
	}
	return items
}

// leftOut counts the deliveries by decision, and says which are not listed.
func leftOut(x *client.Execution) string {
	if x.Arrivals == nil {
		return ""
	}
	var all int64
	var counts []string
	for decision, n := range x.Arrivals.Counts {
		all += n
		counts = append(counts, fmt.Sprintf("%d %s", n, story.Words(decision)))
	}
	slices.Sort(counts)
	said := "Also received: " + strings.Join(counts, ", ") + "."
	if shown := int64(len(x.Arrivals.Newest)) + 1; all > shown {
		said += " Shown are the first and the newest 16."
	}
	return said
}

// elsewhereSection gives the commands that find the event in logs, traces and on the command line.
func elsewhereSection(x *client.Execution) section {
	s := section{ID: "elsewhere", Title: "Logs and commands"}
	add := func(name, said string) { s.Facts = append(s.Facts, fact{name, []cell{{Text: said, Class: "id"}}}) }
	if x.ExecutionID != "" {
		add("log", logQuery("execution", x.ExecutionID))
	} else {
		add("log", logQuery("key", x.IdempotencyKey[:min(16, len(x.IdempotencyKey))]))
	}
	if x.TraceID != "" {
		add("trace", x.TraceID)
		add("log of the trace", logQuery("trace_id", x.TraceID))
	}
	if x.ExecutionID != "" {
		add("command line", story.ShellLine("hooklock", "show", x.ExecutionID))
	}
	return s
}

// logQuery returns a command that finds lines of the log.
func logQuery(name, value string) string {
	return story.ShellLine("jq", "-c", "select(."+name+" == "+strconv.Quote(value)+")")
}

// inOrder sorts items by time.
func inOrder(items []item) []item {
	items = slices.DeleteFunc(items, func(i item) bool { return i.At.IsZero() })
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(a.At.UnixMilli(), b.At.UnixMilli()) })
	for i := range items {
		items[i].After = "+" + story.Span(items[i].At.Sub(items[0].At))
	}
	return items
}
