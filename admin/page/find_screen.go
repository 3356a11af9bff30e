package page

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/story"
)

// findPage is the number of events on a screen.
const findPage = 50

// filterQuery returns the filters of the query for the API.
func (v *visit) filterQuery() url.Values {
	q := url.Values{}
	for _, name := range qualifiers {
		if value := v.query.Get(apiParameter(name)); value != "" {
			q.Set(apiParameter(name), value)
		}
	}
	return q
}

// readSearch replaces the text of the search field in the query with the filters that it names.
func (v *visit) readSearch() {
	parsed := parseSearch(v.query.Get("text"))
	v.query.Del("text")
	for name := range parsed {
		v.query.Set(name, parsed.Get(name))
	}
}

// findScreen lists the events that match.
func findScreen(v *visit) ([]section, error) {
	v.readSearch()
	s := section{ID: "found", Title: "Events", Search: &search{"find", []input{{
		Name: "text", Label: "Event, delivery or trace ID; narrow with route: workflow: status: since: until: got: " +
			"label:", Hint: "status:failed since:02:13", Value: searchText(v.query), Main: true,
	}}}, Links: v.tabLinks(nil)}
	page, q, err := v.findMatches(findPage)
	if isProblem(err, client.CodeStoreUnavailable) {
		s.Trouble = "etcd does not answer, so nothing can be searched now. Refresh in a moment."
		return []section{s}, nil
	}
	if err != nil {
		if p := problemOf(err); p.Code == client.CodeBadRequest { // a mistyped filter: the field stays
			s.Trouble = p.Detail
			return []section{s}, nil
		}
		return nil, err
	}
	s.Count, s.More = len(page.Executions), page.NextCursor != ""
	numbers, note := v.tabNumbers()
	s.Links, s.Note = v.tabLinks(numbers), note
	switch {
	case s.Count == 0 && s.More:
		s.Trouble = "No match among the newest records; there are older ones."
	case s.Count == 0 && v.query.Get("cursor") != "":
		s.Empty = "No match among the older records."
	case s.Count == 0 && len(q) == 0 && v.query.Get("text") == "":
		s.Empty = "No event has arrived yet. Send one: hooklock sample --help"
	default:
		s.Empty = "No event matches. IDs are found whole, by their beginning, or by a part between slashes; labels " +
			"whole."
	}
	if s.Count == 1 && !s.More && v.query.Get("text") != "" && v.query.Get("cursor") == "" {
		s.Open = storyOf(&page.Executions[0])
	}
	if v.query.Get("cursor") == "" && wholeQueue(q, page) {
		s.Title = "Queue of " + q.Get("workflow") + ", the next event first"
		slices.Reverse(page.Executions) // a list has the newest first
	}
	s.Table = tableOf("Matching events", eventColumns(v.now), page.Executions, func(x *client.Execution) string {
		return x.ExecutionID + x.IdempotencyKey
	})
	s.Table.Lines = true
	s.Pick = s.Count > 0
	if page.NextCursor != "" {
		older := "Older"
		if s.Count == 0 {
			older = "Search further"
		}
		s.Next = append(s.Next, link{older, screenLink("find", v.queryWith("cursor", page.NextCursor)...)})
	}
	if v.query.Get("cursor") != "" {
		s.Next = append(s.Next, link{"Newest", screenLink("find", v.queryWith("cursor", "")...)})
	}
	s.Asks = bulkAsks(q, page.Executions)
	if id := cmp.Or(v.query.Get("text"), v.query.Get("event")); s.Count == 0 && id != "" {
		if bad, found := v.claimedSection("", id); found {
			return []section{s, bad}, nil
		}
	}
	return []section{s}, nil
}

// wholeQueue reports whether a filter and its first page are all that waits in one workflow.
func wholeQueue(q url.Values, page *client.ExecutionPage) bool {
	workflow := q.Get("workflow")
	return len(q) == 2 && q.Get("status") == string(client.Pending) && workflow != "" &&
		!strings.Contains(workflow, "*") && page.NextCursor == "" && len(page.Executions) > 0
}

// findMatches returns a page of matches, and the filter that found it.
func (v *visit) findMatches(limit int) (*client.ExecutionPage, url.Values, error) {
	ask := func(q url.Values) (*client.ExecutionPage, error) {
		page := &client.ExecutionPage{}
		q = maps.Clone(q)
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
	q := v.filterQuery()
	given := v.query.Get("text")
	if given == "" {
		page, err := ask(q)
		return page, q, err
	}
	begin, end, _ := strings.Cut(given, cutMark)
	if begin == "" {
		begin, end = given, ""
	}
	page := &client.ExecutionPage{}
	for _, guess := range client.Guesses(begin) {
		with := maps.Clone(q)
		for name, value := range map[string]string{"event": guess.EventID, "text": guess.Text, "id": guess.ID,
			"key": guess.Key} {
			if value != "" {
				with.Set(name, value)
			}
		}
		var err error
		page, err = ask(with)
		page.Executions = slices.DeleteFunc(page.Executions, func(x client.Execution) bool { return !endsSo(&x, end) })
		if err != nil || len(page.Executions) > 0 {
			return page, with, err
		}
	}
	return page, q, nil
}

// endsSo reports whether one of the texts that a list cuts in the middle ends with end.
func endsSo(x *client.Execution, end string) bool {
	texts := append([]string{x.EventID, x.ExecutionID, x.Workflow}, slices.Collect(maps.Values(x.Labels))...)
	return slices.ContainsFunc(texts, func(text string) bool { return strings.HasSuffix(text, end) })
}

// eventColumns show an event on one line.
func eventColumns(now time.Time) []column[client.Execution] {
	return []column[client.Execution]{
		{"Select", func(x *client.Execution) cell {
			if x.ExecutionID == "" {
				return cell{}
			}
			return cell{Pick: x.ExecutionID, Text: "Select " + story.Name(x), Class: strings.Join(canDo(x), " ")}
		}},
		{"Time", endedCell},
		{"Event", func(x *client.Execution) cell {
			c := middleCutCell(story.Name(x))
			c.Href = storyOf(x)
			if labels := story.Labels(x); labels != "" {
				return cell{More: []cell{c, {Text: middleCutCell(labels).Text, Title: labels, Class: "dim"}}}
			}
			return c
		}},
		{"Route · workflow", func(x *client.Execution) cell {
			return cell{Text: x.Route + " · " + middleCutCell(x.Workflow).Text, Title: x.Workflow}
		}},
		{"What happened", func(x *client.Execution) cell {
			said := story.Short(x, now)
			c := statusCell(x.Status)
			if c.Text = story.ShownStatus(x); c.Text == story.StatusBlocked {
				c.Class = "bad"
			}
			return cell{More: []cell{c, {Text: said, Title: said}}}
		}},
		{"Duration", func(x *client.Execution) cell {
			took, known := story.Took(x)
			if !known {
				return cell{}
			}
			return textCell(story.Span(took))
		}},
	}
}

// canDo lists the actions that are possible in the state of an execution.
func canDo(x *client.Execution) []string {
	switch {
	case x.Parked != nil:
		return []string{"run", "skip", "cancel"}
	case x.RequestKept:
		return []string{"rerun", "forget"}
	case x.Status.Terminal() && x.RequestStored == client.StoredYes:
		return []string{"again", "forget"}
	case x.Status.Terminal():
		return []string{"forget"}
	}
	return []string{"cancel"}
}

// endedCell returns when an execution ended; when it started if it has not; or when a refused event
// last arrived.
func endedCell(x *client.Execution) cell {
	switch {
	case !x.FinishedAt.IsZero():
		return timeCell(x.FinishedAt, "ago")
	case x.StartedAt.IsZero() && x.Arrivals != nil && len(x.Arrivals.Newest) > 0:
		return timeCell(x.Arrivals.Newest[0].At, "ago")
	}
	return timeCell(x.StartedAt, "ago")
}

func parkedCell(x *client.Execution) cell {
	switch {
	case x.Parked != nil && x.Parked.Blocked != "":
		return cell{Text: "blocked", Class: "bad", Title: x.Parked.Blocked}
	case x.Parked != nil:
		return textCell("accepted, waiting")
	case x.RequestKept:
		return cell{Text: "dead letter", Class: "bad"}
	}
	return cell{}
}

// storyOf links to the screen of an event.
func storyOf(x *client.Execution) string {
	if x.ExecutionID == "" {
		return screenLink("story", "key", x.IdempotencyKey, "workflow", x.Workflow)
	}
	return screenLink("story", "id", x.ExecutionID)
}

// actions are the names of the buttons.
var actions = map[string]string{
	"run": "Run now…", "skip": "Skip…", "cancel": "Cancel…", "rerun": "Rerun…", "again": "Rerun…",
	"forget": "Allow again…"}

// asksOf returns the buttons for the actions of canDo.
func asksOf(x *client.Execution) (asks []ask) {
	if x.ExecutionID == "" {
		return nil
	}
	for _, do := range canDo(x) {
		asks = append(asks, askFor(actions[do], do, "id", x.ExecutionID))
	}
	return asks
}

// bulkAsks returns the buttons for all executions that match a filter.
func bulkAsks(q url.Values, some []client.Execution) []ask {
	if len(some) == 0 || len(q) == 0 { // no bulk action without a filter
		return nil
	}
	var pairs []string
	narrower := false // than a bulk request can say: it would act on more than is shown
	for name := range q {
		pairs = append(pairs, name, q.Get(name))
		narrower = narrower || !slices.Contains(bulkFilters, name) && name != "state"
	}
	all := func(name, do string) ask { return askFor(name, "all-"+do, pairs...) }
	if q.Get("state") != "" && narrower {
		return nil
	}
	switch client.ParkState(q.Get("state")) {
	case client.ParkWaiting, client.ParkBlocked:
		return []ask{all("Try all now…", "run"), all("Skip all…", "skip")}
	case client.ParkDeadLetter:
		return []ask{all("Rerun all…", "rerun")}
	}
	ended := slices.ContainsFunc(some, func(x client.Execution) bool { return x.Status.Terminal() })
	active := slices.ContainsFunc(some, func(x client.Execution) bool {
		return x.ExecutionID != "" && !x.Status.Terminal()
	})
	var asks []ask
	if active {
		asks = append(asks, all("Cancel all…", "cancel"))
	}
	if ended {
		asks = append(asks, all("Allow all again…", "forget"))
	}
	return asks
}

// qualifiers are the filters of the API that the search field takes as NAME:VALUE, in the order in
// which it shows them.
var qualifiers = []string{"route", "workflow", "prefix", "status", "outcome", "got", "state", "lost", "since", "until",
	"event", "key", "id", "trace", "label"}

// apiParameter returns the name of a qualifier in the API.
func apiParameter(qualifier string) string {
	if qualifier == "got" { // what the sender got
		return "decision"
	}
	return qualifier
}

// states are words for status: that are another filter of the API.
var states = map[string][2]string{
	"unknown": {"outcome", string(client.Unknown)}, "waiting": {"state", string(client.ParkWaiting)},
	"blocked": {"state", string(client.ParkBlocked)},
	"lost":    {"lost", "true"}, "dead": {"state", string(client.ParkDeadLetter)},
	"succeeded": {"status", string(client.Success)}, "cancelled": {"status", string(client.Aborted)},
}

// parseSearch splits the text of the search field into filters; text is what remains, which may be
// any ID.
func parseSearch(field string) url.Values {
	q := url.Values{}
	var rest []string
	for _, word := range splitWords(field) {
		name, value, qualified := strings.Cut(word, ":")
		if !qualified || value == "" || !slices.Contains(qualifiers, name) {
			rest = append(rest, word)
			continue
		}
		if name == "status" {
			if other, is := states[strings.ToLower(value)]; is {
				q.Set(other[0], other[1])
				continue
			}
			value = strings.ToUpper(value)
		}
		q.Set(apiParameter(name), value)
	}
	if text := strings.Join(rest, " "); text != "" {
		q.Set("text", text)
	}
	return q
}

// splitWords splits at spaces; a part in double quotes keeps them.
func splitWords(text string) []string {
	quoted := false
	words := strings.FieldsFunc(text, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], `"`, "")
	}
	return words
}

// searchText returns the text of the search field for a query.
func searchText(q url.Values) string {
	words := []string{}
	add := func(word string) {
		if strings.Contains(word, " ") {
			word = `"` + word + `"`
		}
		words = append(words, word)
	}
	if text := q.Get("text"); text != "" {
		words = append(words, text)
	}
	for _, name := range qualifiers {
		if value := q.Get(apiParameter(name)); value != "" {
			add(name + ":" + value)
		}
	}
	return strings.Join(words, " ")
}

// The tabs of the list of events that can have a number.
const (
	tabSucceeded = "Succeeded"
	tabWaiting   = "Accepted, waiting"
	tabBlocked   = "Blocked"
	tabDead      = "Dead letters"
)

// tabLinks returns links to the same search by the state of an event. A tab that is in numbers has
// its number in its text.
func (v *visit) tabLinks(numbers map[string]int64) []link {
	keep := func(tab, name, value string) link {
		pairs := v.queryWith("cursor", "", "status", "", "outcome", "", "state", "")
		if name != "" {
			pairs = append(pairs, name, value)
		}
		if n, known := numbers[tab]; known {
			tab += " " + strconv.FormatInt(n, 10)
		}
		return link{tab, screenLink("find", pairs...)}
	}
	return []link{
		keep("All", "", ""), keep(tabSucceeded, "status", string(client.Success)),
		keep("Failed", "status", string(client.Failed)), keep("Unknown", "outcome", string(client.Unknown)),
		keep("Refused", "status", string(client.Refused)), keep("Running", "status", string(client.Running)),
		keep(tabWaiting, "state", string(client.ParkWaiting)),
		keep(tabBlocked, "state", string(client.ParkBlocked)), keep(tabDead, "state", string(client.ParkDeadLetter)),
		keep("Cancelled", "status", string(client.Aborted)),
	}
}

// otherRoutes is the name under which routes beyond the first hundred are counted together.
const otherRoutes = "(others)"

// tabNumbers returns the numbers of the tabs, and what they count. They come from counts, which
// cost no search: there are none for a filter by anything but route and since, and for a token that
// is limited to some workflows.
func (v *visit) tabNumbers() (numbers map[string]int64, note string) {
	for _, name := range append([]string{"text"}, qualifiers...) {
		if v.query.Get(apiParameter(name)) != "" &&
			!slices.Contains([]string{"route", "since", "status", "outcome", "state"}, name) {
			return nil, ""
		}
	}
	route, since := v.query.Get("route"), v.query.Get("since")
	list, err := v.getCounts(cmp.Or(since, "24h"), "")
	if err != nil {
		return nil, ""
	}
	// of failed tries several may be of one event, which may have succeeded since: they are not the
	// number of a tab
	succeeded := int64(0)
	for i := range list.Routes {
		r := &list.Routes[i]
		if route != "" && r.Route == otherRoutes { // the route may be one of these
			return nil, ""
		}
		if route == "" || r.Route == route {
			succeeded += r.Total.Succeeded
		}
	}
	numbers = map[string]int64{tabSucceeded: succeeded}
	if since != "" {
		return numbers, "Succeeded counts that time."
	}
	note = "Succeeded counts the last 24 hours."
	status, err := v.getReplica()
	if route != "" || err != nil {
		return numbers, note
	}
	numbers[tabWaiting], numbers[tabBlocked], numbers[tabDead] = int64(status.Parked.Count-status.Parked.Blocked),
		int64(status.Parked.Blocked), int64(status.Parked.DeadLetters)
	return numbers, note
}

// exportPage is how many events one request of an export reads, and mostExported bounds an export.
const (
	exportPage   = 100
	mostExported = 5000
)

// serveExport responds with the events that were selected or match the search, as JSON or CSV. The
// header X-Hooklock-More says that there are more.
func (p *Page) serveExport(w http.ResponseWriter, r *http.Request) {
	v, err := p.newVisit(r)
	if err != nil {
		p.showProblem(w, err)
		return
	}
	var all []client.Execution
	var page *client.ExecutionPage
	if v.query.Has("pick") {
		if page, err = v.chosenExecutions(); err == nil {
			all = page.Executions
		}
	} else {
		v.readSearch()
		for {
			if page, _, err = v.findMatches(exportPage); err != nil {
				break
			}
			all = append(all, page.Executions...)
			if page.NextCursor == "" || len(all) >= mostExported {
				break
			}
			v.query.Set("cursor", page.NextCursor)
		}
	}
	if err != nil {
		p.showProblem(w, err)
		return
	}
	if page.NextCursor != "" {
		w.Header().Set("X-Hooklock-More", "true")
	}
	text, media := asJSON(all), "application/json"
	if v.query.Get("format") == "csv" {
		text, media = asCSV(all, v.now), "text/csv; charset=utf-8"
	}
	w.Header().Set("Content-Type", media)
	_, _ = w.Write(text) // the client may have disconnected
}

// asJSON returns an array of the objects of the API.
func asJSON(all []client.Execution) []byte {
	raw := []json.RawMessage{}
	for i := range all {
		raw = append(raw, all[i].RawJSON())
	}
	text, _ := json.MarshalIndent(raw, "", "  ") // of valid JSON
	return text
}

// asCSV returns a line for each event, with times in UTC.
func asCSV(all []client.Execution, now time.Time) []byte {
	var text bytes.Buffer
	_ = story.WriteCSV(&text, story.CSVHead()) // a buffer takes all
	for i := range all {
		_ = story.WriteCSV(&text, story.CSVRow(&all[i], now))
	}
	return text.Bytes()
}
