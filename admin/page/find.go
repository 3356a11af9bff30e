package page

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/idem"
)

// findPage is how many executions a screen shows.
const findPage = 50

// filters are the fields of the search for executions beside the one for anything in hand, in the words of the API.
func (v *visit) filters() []input {
	var decisions []string
	for _, row := range idem.Decisions() {
		decisions = append(decisions, string(row.Decision))
	}
	var statuses []string
	for _, s := range client.Statuses {
		statuses = append(statuses, string(s))
	}
	all := []input{
		{Name: "workflow", Label: "Workflow", Hint: "orders/acme, or orders/*"},
		{Name: "route", Label: "Route"},
		{Name: "status", Label: "Status", Options: statuses},
		{Name: "outcome", Label: "Outcome", Options: []string{string(client.Executed), string(client.NotExecuted), string(client.Unknown)}},
		{Name: "decision", Label: "Sender got", Options: decisions},
		{Name: "state", Label: "Parked", Options: []string{string(client.ParkWaiting), string(client.ParkBlocked), string(client.ParkDeadLetter)}},
		{Name: "since", Label: "Since", Hint: "10m, or 2026-01-31T12:00:00Z"},
		{Name: "until", Label: "Until", Hint: "5m, or a time"},
	}
	for i := range all {
		all[i].Value = v.query.Get(all[i].Name)
	}
	return all
}

// filter is what of the query the API is asked for.
func (v *visit) filter() url.Values {
	q := url.Values{}
	for _, f := range v.filters() {
		if f.Value != "" {
			q.Set(f.Name, f.Value)
		}
	}
	for _, name := range []string{"event", "key", "id", "trace", "prefix"} {
		if value := v.query.Get(name); value != "" {
			q.Set(name, value)
		}
	}
	return q
}

// find shows the executions that fit.
func find(v *visit) ([]section, error) {
	s := section{ID: "found", Title: "Events", Search: &search{"find", append([]input{{
		Name: "text", Label: "Event, delivery or trace ID, execution, key or workflow", Value: v.query.Get("text"), Main: true,
	}}, v.filters()...)}}
	page, q, err := v.found(findPage)
	if is(err, client.CodeStoreUnavailable) {
		s.Trouble = "etcd does not answer, so nothing can be searched now. Refresh in a moment."
		return []section{s}, nil
	}
	if err != nil {
		if p := problemOf(err); p.Code == client.CodeBadRequest { // somebody has mistyped a filter: the form stays
			s.Trouble = p.Detail
			return []section{s}, nil
		}
		return nil, err
	}
	s.Count, s.More = len(page.Executions), page.NextCursor != ""
	switch {
	case s.Count == 0 && s.More:
		s.Trouble = "No match among the newest records; there are older ones."
	case s.Count == 0 && v.query.Get("cursor") != "":
		s.Empty = "No match among the older records."
	default:
		s.Empty = "No event matches. IDs are found whole, by their beginning, or by a part between slashes."
	}
	s.Table = tableOf("Matching events", executionColumns(), page.Executions, func(x *client.Execution) string { return x.ExecutionID + x.IdempotencyKey })
	if page.NextCursor != "" {
		older := "Older"
		if s.Count == 0 {
			older = "Search further"
		}
		s.Links = append(s.Links, link{older, to("find", v.keep("cursor", page.NextCursor)...)})
	}
	if v.query.Get("cursor") != "" {
		s.Links = append(s.Links, link{"Newest", to("find", v.keep("cursor", "")...)})
	}
	s.Asks = bulkAsks(q, page.Executions)
	return []section{s}, nil
}

// found is a page of what is searched, and the filter that found it.
func (v *visit) found(limit int) (*client.ExecutionPage, url.Values, error) {
	ask := func(q url.Values) (*client.ExecutionPage, error) {
		page := &client.ExecutionPage{}
		q = url.Values(mapsClone(q))
		q.Set("limit", strconv.Itoa(limit))
		if c := v.query.Get("cursor"); c != "" {
			q.Set("cursor", c)
		}
		if q.Get("state") == "" {
			return page, v.api.get("/v1/executions", q, page)
		}
		q.Set("parked", "true")
		return page, v.api.get("/v1/executions", q, page)
	}
	q := v.filter()
	given := v.query.Get("text")
	if given == "" {
		page, err := ask(q)
		return page, q, err
	}
	page := &client.ExecutionPage{}
	for _, guess := range client.Guesses(given) {
		with := url.Values(mapsClone(q))
		for name, value := range map[string]string{"event": guess.EventID, "text": guess.Text, "id": guess.ID, "key": guess.Key, "trace": guess.TraceID} {
			if value != "" {
				with.Set(name, value)
			}
		}
		var err error
		if page, err = ask(with); err != nil || len(page.Executions) > 0 {
			return page, with, err
		}
	}
	return page, q, nil
}

func mapsClone(q url.Values) map[string][]string {
	all := make(map[string][]string, len(q))
	for name, given := range q {
		all[name] = slices.Clone(given)
	}
	return all
}

// executionColumns are what is shown of an execution in a list.
func executionColumns() []column[client.Execution] {
	return []column[client.Execution]{
		{"Event", func(x *client.Execution) cell {
			c := cut(x.EventID)
			if x.EventID == "" {
				c = cell{Text: x.IdempotencyKey[:min(16, len(x.IdempotencyKey))], Class: "id"}
			}
			c.Href = storyOf(x)
			return c
		}},
		{"Status", func(x *client.Execution) cell {
			return cell{More: []cell{statusCell(x.Status), outcomeCell(x.Outcome), parkedCell(x)}}
		}},
		{"Time", ended},
		{"Duration", func(x *client.Execution) cell {
			if x.FinishedAt.IsZero() || x.StartedAt.IsZero() {
				return cell{}
			}
			return text(story.Span(x.FinishedAt.Sub(x.StartedAt.Time)))
		}},
		{"Workflow", func(x *client.Execution) cell { return cut(x.Workflow) }},
		{"Attempt", func(x *client.Execution) cell { return number(int64(x.Attempt)) }},
		{"Duplicates", func(x *client.Execution) cell { return number(x.Duplicates) }},
		{"Why", func(x *client.Execution) cell { return cut(why(x)) }},
		{"Execution", func(x *client.Execution) cell { return ofExecution(x.ExecutionID) }},
		{"Actions", func(x *client.Execution) cell { return cell{Asks: asksOf(x)} }},
	}
}

// ended is when an execution ended, or started where it has not ended, or when a refused event last arrived.
func ended(x *client.Execution) cell {
	switch {
	case !x.FinishedAt.IsZero():
		return when(x.FinishedAt, "ago")
	case x.StartedAt.IsZero() && x.Arrivals != nil && len(x.Arrivals.Newest) > 0:
		return when(x.Arrivals.Newest[0].At, "ago")
	}
	return when(x.StartedAt, "ago")
}

func parkedCell(x *client.Execution) cell {
	switch {
	case x.Parked != nil && x.Parked.Blocked != "":
		return cell{Text: "blocked", Class: "bad", Title: x.Parked.Blocked}
	case x.Parked != nil:
		return text("accepted, waiting")
	case x.RequestKept:
		return cell{Text: "dead letter", Class: "bad"}
	}
	return cell{}
}

// storyOf leads to the story of an event.
func storyOf(x *client.Execution) string {
	if x.ExecutionID == "" {
		return to("story", "key", x.IdempotencyKey, "workflow", x.Workflow)
	}
	return to("story", "id", x.ExecutionID)
}

// why is the reason of an end that is no success, or of one that is asked for.
func why(x *client.Execution) string {
	switch {
	case x.Error != nil && x.Error.Detail != "":
		return x.Error.Code + ": " + x.Error.Detail + x.LastFailed()
	case x.Error != nil:
		return x.Error.Code
	case x.AbortedBy != "":
		return x.AbortedBy + ": " + x.AbortReason
	case x.Parked != nil && x.Parked.Blocked != "":
		return x.Parked.Blocked + x.LastFailed()
	case x.Status == client.Released:
		return x.Released.Text()
	case x.Status == client.Refused && x.Arrivals != nil && len(x.Arrivals.Newest) > 0:
		last := &x.Arrivals.Newest[0]
		return fmt.Sprintf("refused with %d: %s", last.Status, story.Why(last, stamp))
	}
	return ""
}

// asksOf are what can be done with an execution as it is.
func asksOf(x *client.Execution) []ask {
	id := x.ExecutionID
	switch {
	case id == "":
		return nil
	case x.Parked != nil:
		return []ask{asking("Try now…", "run", "id", id), asking("Skip…", "skip", "id", id), asking("Cancel…", "cancel", "id", id)}
	case x.RequestKept:
		return []ask{asking("Retry…", "rerun", "id", id), asking("Allow again…", "forget", "id", id)}
	case x.Status.Terminal():
		return []ask{asking("Allow again…", "forget", "id", id)}
	}
	return []ask{asking("Cancel…", "cancel", "id", id)}
}

// bulkAsks are what can be done with all that fit a filter.
func bulkAsks(q url.Values, some []client.Execution) []ask {
	if len(some) == 0 || len(q) == 0 { // without a filter nobody means all of them
		return nil
	}
	var pairs []string
	narrower := false // than a bulk can be told: it would do it to more than is shown
	for name := range q {
		pairs = append(pairs, name, q.Get(name))
		narrower = narrower || !slices.Contains(bulkFilters, name) && name != "state"
	}
	all := func(name, do string) ask { return asking(name, "all-"+do, pairs...) }
	if q.Get("state") != "" && narrower {
		return nil
	}
	switch client.ParkState(q.Get("state")) {
	case client.ParkWaiting, client.ParkBlocked:
		return []ask{all("Try all now…", "run"), all("Skip all…", "skip")}
	case client.ParkDeadLetter:
		return []ask{all("Retry all…", "rerun")}
	}
	ended := slices.ContainsFunc(some, func(x client.Execution) bool { return x.Status.Terminal() })
	active := slices.ContainsFunc(some, func(x client.Execution) bool { return x.ExecutionID != "" && !x.Status.Terminal() })
	var asks []ask
	if active {
		asks = append(asks, all("Cancel all…", "cancel"))
	}
	if ended {
		asks = append(asks, all("Allow all again…", "forget"))
	}
	return asks
}
