package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/idem"
)

// axis is what happened to an event, in the order of time.
type axis struct {
	Items []item
	From  time.Time
	// Marks and Bars are the same as a picture, in thousandths of the whole.
	Marks, Bars []mark
}

// mark is a moment or a stretch of the picture.
type mark struct {
	X, Width int
	Class    string
	Title    string
}

// item is one thing that happened.
type item struct {
	At    time.Time
	After string // the first one
	Kind  string // arrival, attempt, end, step, cancel, audit, park, now
	Title string
	Why   string // in a sentence
	Cells []cell
}

// story is all that is known of one event.
func event(v *visit) ([]section, error) {
	x, err := v.event()
	if is(err, client.CodeStoreUnavailable) {
		return []section{{ID: "story", Title: "Event", Trouble: "The event cannot be read now: etcd does not answer. The log of the replicas has its lines."}}, nil
	}
	if err != nil {
		return nil, err
	}
	items := itemsOf(x)
	var lock *client.Lock
	if x.ExecutionID != "" && !x.Status.Terminal() {
		lock = v.lockOf(x)
	}
	told := story.Story{Execution: x, Lock: lock, Sender: v.sender(x.Route), Now: v.now, Stamp: marked}
	head := section{ID: "event", Title: "Event " + eventName(x), Lead: []cell{timed(told.Happened()), timed(told.Todo())}, Facts: eventFacts(x), Asks: asksOf(x)}
	items = append(items, lockItems(x, lock, v.now)...)
	if lock != nil && lock.ExecutionID == x.ExecutionID {
		head.Asks = append(head.Asks, asking("Release…", "release", "workflow", x.Workflow, "id", x.ExecutionID))
	}
	if x.ExecutionID != "" {
		items = append(items, v.auditItems(x)...)
	}
	line := section{ID: "axis", Title: "Timeline", Story: newAxis(items), Note: leftOut(x)}
	if head.Title == "Event " {
		head.Title = "Event"
	}
	return []section{head, line, elsewhere(x)}, nil
}

// event is the event that the URL names, by one of its executions, or by its key where none ran.
func (v *visit) event() (*client.Execution, error) {
	if id := v.query.Get("id"); id != "" {
		x := &client.Execution{}
		return x, v.api.get("/v1/executions/"+escape(id), nil, x)
	}
	page := &client.ExecutionPage{}
	if v.query.Get("key") == "" {
		return nil, &client.Problem{Status: 400, Code: client.CodeBadRequest, Detail: "name an event by id or key"}
	}
	if err := v.api.get("/v1/executions", values("key", v.query.Get("key"), "workflow", v.query.Get("workflow"), "limit", "1"), page); err != nil {
		return nil, err
	}
	if len(page.Executions) == 0 {
		return nil, &client.Problem{Status: 404, Code: client.CodeExecutionNotFound, Detail: "no such event: its record has expired, or it was allowed again"}
	}
	x := &page.Executions[0]
	if x.ExecutionID == "" {
		return x, nil
	}
	whole := &client.Execution{}
	return whole, v.api.get("/v1/executions/"+escape(x.ExecutionID), nil, whole)
}

// sender is what is known of the sender of a route; nil = nothing, or not for this token.
func (v *visit) sender(route string) *client.RouteSender {
	list := &client.RouteList{}
	if v.api.get("/v1/routes", nil, list) != nil {
		return nil
	}
	for i := range list.Routes {
		if list.Routes[i].Route == route {
			return list.Routes[i].Sender
		}
	}
	return nil
}

func eventName(x *client.Execution) string {
	if x.EventID != "" {
		return cut(x.EventID).Text
	}
	return x.IdempotencyKey[:min(16, len(x.IdempotencyKey))]
}

// eventFacts are what is known beside what happened.
func eventFacts(x *client.Execution) []fact {
	facts := []fact{{"status", []cell{statusCell(x.Status), outcomeCell(x.Outcome), parkedCell(x)}}}
	add := func(name string, c cell) {
		if c.Text != "" {
			facts = append(facts, fact{name, []cell{c}})
		}
	}
	add("why", text(why(x)))
	w := text(x.Workflow)
	w.Href = to("find", "workflow", x.Workflow)
	add("workflow", w)
	add("route", text(x.Route))
	add("execution", cell{Text: x.ExecutionID, Class: "id"})
	add("event ID", text(x.EventID))
	add("key", cell{Text: x.IdempotencyKey, Class: "id"})
	add("fencing number", number(x.Token))
	add("replica", text(x.Holder))
	if o := x.Order; o != nil && o.Stale != "" {
		facts = append(facts, fact{"order", []cell{text(o.Stale + " older than the newest that went through:"), ofExecution(o.Newest)}})
	}
	if x.Final {
		add("final", text("never runs again, unless it is allowed again"))
	}
	if x.SupersededBy != "" {
		facts = append(facts, fact{"superseded by", []cell{ofExecution(x.SupersededBy)}})
	}
	if l := x.Latest; l != nil {
		add("latest", text("a newer event would replace it; it replaced "+strconv.Itoa(l.Replaced)))
	}
	if r := x.Response; r != nil {
		said := fmt.Sprintf("%d, %d B, ", r.Status, r.Bytes)
		if r.Kept {
			said += "kept for duplicates"
		} else {
			said += "not kept"
		}
		add("answer", text(said))
	}
	if x.Duplicates > 0 {
		add("duplicates", text(fmt.Sprint(x.Duplicates)))
	}
	return facts
}

// itemsOf are what the API tells of the event.
func itemsOf(x *client.Execution) []item {
	var items []item
	if h := x.Arrivals; h != nil {
		arrivals := slices.Clone(h.Newest)
		if n := len(arrivals); n == 0 || arrivals[n-1].At.After(h.First.At.Time) {
			arrivals = append(arrivals, h.First)
		}
		own := ownAttempts(x)
		for i := range arrivals {
			items = append(items, arrivalItem(&arrivals[i], own))
		}
	}
	if r := x.Released; r != nil {
		items = append(items, item{At: r.At.Time, Kind: "audit", Title: "Allowed to run again", Why: story.Sentence(r.Text())})
	}
	attempts := x.Attempts
	if len(attempts) == 0 && x.ExecutionID != "" {
		a := client.Attempt{
			ExecutionID: x.ExecutionID, Status: x.Status, Outcome: x.Outcome, StartedAt: x.StartedAt, FinishedAt: x.FinishedAt, Error: x.Error, AbortedAt: x.AbortedAt,
			AbortedBy: x.AbortedBy, AbortReason: x.AbortReason, Tries: x.Tries, TraceID: x.TraceID,
		}
		if x.Response != nil {
			a.Answer = x.Response.Status
		}
		attempts = []client.Attempt{a}
	}
	for i := range attempts {
		items = append(items, attemptItems(i+1, &attempts[i])...)
	}
	for _, s := range x.Steps {
		items = append(items, stepItems(s, x)...)
	}
	for _, a := range x.FailedAnswers {
		items = append(items, item{At: a.At.Time, Kind: "end", Title: fmt.Sprintf("Try failed: the service answered %d", a.Status), Why: a.Text})
	}
	return append(items, parkItems(x)...)
}

// ownAttempts are when the executions of the event began.
func ownAttempts(x *client.Execution) map[string]time.Time {
	own := map[string]time.Time{x.ExecutionID: x.StartedAt.Time}
	for i := range x.Attempts {
		own[x.Attempts[i].ExecutionID] = x.Attempts[i].StartedAt.Time
	}
	return own
}

func arrivalItem(a *client.Arrival, own map[string]time.Time) item {
	i := item{At: a.At.Time, Kind: "arrival", Title: fmt.Sprintf("Delivery received: %s, the sender got %d", story.Words(a.Decision), a.Status), Why: story.Sentence(story.Why(a, stamp))}
	if len(a.Differs) > 0 {
		i.Why += " What differs: " + strings.Join(a.Differs, ", ") + "."
	}
	if a.From != "" {
		i.Cells = append(i.Cells, text("from "+a.From))
	}
	began, itself := own[a.ExecutionID]
	switch {
	case itself && began.Before(i.At) && !began.IsZero(): // what is kept is when it was answered, and it came before its attempt began
		i.At = began
	case !itself && a.ExecutionID != "":
		i.Cells = append(i.Cells, text("running then:"), ofExecution(a.ExecutionID))
	}
	if a.TraceID != "" {
		i.Cells = append(i.Cells, cell{Text: "trace " + a.TraceID, Class: "id"})
	}
	return i
}

func attemptItems(n int, a *client.Attempt) []item {
	begin := item{At: a.StartedAt.Time, Kind: "attempt", Title: fmt.Sprintf("Attempt %d started", n), Cells: []cell{ofExecution(a.ExecutionID)}}
	if a.Status == client.Pending {
		begin.Title = fmt.Sprintf("Attempt %d waits for the lock", n)
	}
	if a.TraceID != "" {
		begin.Cells = append(begin.Cells, cell{Text: "trace " + a.TraceID, Class: "id"})
	}
	items := []item{begin}
	if !a.AbortedAt.IsZero() {
		items = append(items, item{At: a.AbortedAt.Time, Kind: "cancel", Title: "Cancelled by " + a.AbortedBy, Why: a.AbortReason})
	}
	if a.FinishedAt.IsZero() {
		return items
	}
	end := item{At: a.FinishedAt.Time, Kind: "end", Title: fmt.Sprintf("Attempt %d ended: %s", n, a.Status), Cells: []cell{text("after " + story.Span(a.FinishedAt.Sub(a.StartedAt.Time)))}}
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
		end.Why = "Outcome unknown: the request was sent, and no whole answer came."
	}
	if a.Error != nil {
		end.Why += " " + a.Error.Code
		if a.Error.Detail != "" {
			end.Why += ": " + a.Error.Detail
		}
	}
	if a.Tries > 0 {
		end.Cells = append(end.Cells, text(story.Count(a.Tries, "try", "tries")))
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
		i.Cells = []cell{text("after " + story.Span(s.FinishedAt.Sub(s.StartedAt.Time)))}
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
		Cells: []cell{text(fmt.Sprintf("%s, %d failed", story.Count(p.Tries, "try", "tries"), p.Failures))},
	}}
	if e := p.LastEvidence; e != nil {
		i := item{At: e.At.Time, Kind: "park", Title: "Latest try: " + strings.ReplaceAll(string(e.Outcome), "_", " "), Why: strings.TrimPrefix(e.Code+": "+e.Detail, ": ")}
		if e.Status != 0 {
			i.Cells = []cell{text(fmt.Sprintf("the service answered %d", e.Status))}
		}
		items = append(items, i)
	}
	switch {
	case p.Blocked != "":
		items[len(items)-1].Cells = append(items[len(items)-1].Cells, cell{Text: "needs a decision: " + p.Blocked, Class: "bad"})
	case !p.NextAttempt.IsZero():
		items = append(items, item{At: p.NextAttempt.Time, Kind: "now", Title: "Next try"})
	}
	return items
}

// lockOf is the lock of the event's workflow; nil where it is free, or not known.
func (v *visit) lockOf(x *client.Execution) *client.Lock {
	l := &client.Lock{}
	if v.api.get("/v1/locks/"+escape(x.Workflow), nil, l) != nil {
		return nil
	}
	return l
}

// lockItems are where the event stands now.
func lockItems(x *client.Execution, l *client.Lock, now time.Time) []item {
	if l == nil {
		return nil
	}
	if l.ExecutionID != x.ExecutionID {
		return []item{{
			At: now, Kind: "now", Title: "Waiting: another event of the workflow runs", Why: story.Sentence(idem.DecisionLocked.Row().Happened),
			Cells: []cell{ofExecution(l.ExecutionID), text(fmt.Sprint(l.Waiting, " waiting"))},
		}}
	}
	state, behind := lockState(l), text(fmt.Sprint(l.Waiting, " waiting"))
	state.Text += ","
	i := item{At: now, Kind: "now", Title: "Has the lock of its workflow", Cells: []cell{state, behind}}
	if !l.ExpiresAt.IsZero() {
		i.Cells[1].Text += ","
		i.Cells = append(i.Cells, text("ends by "+l.EndsBy), when(l.ExpiresAt, "in"))
	}
	return []item{i}
}

// auditItems are what people did with it.
func (v *visit) auditItems(x *client.Execution) []item {
	page := &client.AuditPage{}
	if v.api.get("/v1/audit", values("execution", x.ExecutionID, "limit", "50"), page) != nil {
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
		if i.Why == x.AbortReason { // its own line has it
			i.Why = ""
		}
		items = append(items, i)
	}
	return items
}

// leftOut says what of the arrivals is not shown one by one.
func leftOut(x *client.Execution) string {
	if x.Arrivals == nil {
		return ""
	}
	var all int64
	var counts []string
	for decision, n := range x.Arrivals.Counts {
		all += n
		counts = append(counts, fmt.Sprintf("%d %s", n, decision))
	}
	slices.Sort(counts)
	said := "Also received: " + strings.Join(counts, ", ") + "."
	if shown := int64(len(x.Arrivals.Newest)) + 1; all > shown {
		said += " Shown are the first and the newest 16."
	}
	return said
}

// elsewhere are where more is to be read: the log, a trace, the command line.
func elsewhere(x *client.Execution) section {
	s := section{ID: "elsewhere", Title: "Logs and commands"}
	add := func(name, said string) { s.Facts = append(s.Facts, fact{name, []cell{{Text: said, Class: "id"}}}) }
	if x.ExecutionID != "" {
		add("log", "jq -c 'select(.execution == "+strconv.Quote(x.ExecutionID)+")'")
	} else {
		add("log", "jq -c 'select(.key == "+strconv.Quote(x.IdempotencyKey[:min(16, len(x.IdempotencyKey))])+")'")
	}
	if x.TraceID != "" {
		add("trace", x.TraceID)
		add("log of the trace", "jq -c 'select(.trace_id == "+strconv.Quote(x.TraceID)+")'")
	}
	if x.ExecutionID != "" {
		add("command line", "hooklock executions get "+x.ExecutionID)
	}
	return s
}

// newAxis puts items into the order of time, and draws them.
func newAxis(items []item) *axis {
	items = slices.DeleteFunc(items, func(i item) bool { return i.At.IsZero() })
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(a.At.UnixMilli(), b.At.UnixMilli()) })
	a := &axis{Items: items}
	if len(items) == 0 {
		return a
	}
	a.From = items[0].At
	whole := max(items[len(items)-1].At.Sub(a.From), time.Millisecond)
	x := func(at time.Time) int { return int(at.Sub(a.From) * 1000 / whole) }
	var began []time.Time
	for i := range items {
		it := &items[i]
		it.After = "+" + story.Span(it.At.Sub(a.From))
		switch it.Kind {
		case "attempt":
			began = append(began, it.At)
		case "end":
			if len(began) > 0 {
				from := x(began[0])
				a.Bars = append(a.Bars, mark{from, max(x(it.At)-from, 4), "attempt", it.Title})
				began = began[1:]
			}
		default:
			a.Marks = append(a.Marks, mark{x(it.At), 4, it.Kind, it.Title})
		}
	}
	for _, at := range began {
		a.Bars = append(a.Bars, mark{x(at), max(1000-x(at), 4), "open", "not ended"})
	}
	return a
}
