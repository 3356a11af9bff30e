package page

import (
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hooklock/admin/client"
)

// section is a part of a screen. Its empty fields are left out; one without a title is hidden.
type section struct {
	ID, Title string
	Note      string // what the section shows
	Lead      []cell // the most important facts, a paragraph each
	Trouble   string // why it cannot be shown, or is not as it should be
	Empty     string // shown in place of an empty table
	Fold      string // the name under which its content is folded; "" = it is not
	Count     int    // beside the title; 0 = none
	More      bool   // there are more than Count, or may be
	Search    *search
	Facts     []fact
	Table     *table
	Picture   *timeline
	Chart     *chart
	Lines     *lineChart
	Story     []item
	Ticket    string // the event in Markdown, to be copied
	Paste     string // shown as it is, with a button that copies it
	Asks      []ask
	Links     []link // to other screens
	Next      []link // to the other pages of a list
	Open      string // the screen to go to at once; "" = stay
	Pick      bool   // its rows can be selected
}

// fact is a name and its value.
type fact struct {
	Name  string
	Cells []cell
}

// cell is a text, a time, a link, a button, or several of them.
type cell struct {
	Text  string
	Class string // good, bad, warn, id, dim; "" = plain
	Title string // the whole text, if Text is cut
	Href  string // of another screen, such as #story?id=…
	At    time.Time
	Way   string // how At is shown: ago, for (since then), in, or at; "" = ago
	// Done of Of is shown as a bar; Of 0 = there is none.
	Done, Of int
	From     time.Time // with At: the progress of a time span, as a bar
	Trend    *trend
	Asks     []ask
	Pick     string // the execution that a check box selects; Text is its label, Class what can be done
	More     []cell
}

// table is a table with a head.
type table struct {
	Name  string
	Head  []string
	Rows  []row
	Live  bool // its rows change while it is shown
	Lines bool // each row is one line
	More  string
}

// row is a row of a table; its key is unique.
type row struct {
	Key   string
	Cells []cell
}

// column is a column of a table of Ts.
type column[T any] struct {
	head string
	show func(*T) cell
}

// tableOf makes a table of all. It leaves out the columns that are empty in each row.
func tableOf[T any](name string, columns []column[T], all []T, key func(*T) string) *table {
	t := liveTable(name, columns, all, key)
	t.Live = false
	for n := len(t.Head) - 1; n >= 0 && len(all) > 0; n-- {
		if slices.ContainsFunc(t.Rows, func(r row) bool { return !r.Cells[n].isEmpty() }) {
			continue
		}
		t.Head = slices.Delete(t.Head, n, n+1)
		for i := range t.Rows {
			t.Rows[i].Cells = slices.Delete(t.Rows[i].Cells, n, n+1)
		}
	}
	return t
}

// lineTable makes a table of lines that have no name of their own.
func lineTable[T any](name string, columns []column[T], all []T) *table {
	n := 0
	t := tableOf(name, columns, all, func(*T) string { n++; return strconv.Itoa(n) })
	t.Lines = true
	return t
}

// liveTable makes a table whose rows change while it is shown. It has all columns.
func liveTable[T any](name string, columns []column[T], all []T, key func(*T) string) *table {
	t := &table{Name: name, Live: true}
	for _, c := range columns {
		t.Head = append(t.Head, c.head)
	}
	for i := range all {
		r := row{Key: key(&all[i])}
		for _, c := range columns {
			r.Cells = append(r.Cells, c.show(&all[i]))
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}

func (c *cell) isEmpty() bool {
	return c.Text == "" && c.Of == 0 && c.At.IsZero() && c.Trend == nil && len(c.Asks) == 0 &&
		!slices.ContainsFunc(c.More, func(m cell) bool {
			return !m.isEmpty()
		})
}

// link is a link to another screen.
type link struct{ Text, Href string }

// ask is a button that opens a question.
type ask struct {
	Text string
	Href string // below page/
}

func askFor(text, do string, pairs ...string) ask {
	return ask{text, "ask?" + queryOf(append([]string{"do", do}, pairs...)...).Encode()}
}

// screenLink returns a link to a screen.
func screenLink(screen string, pairs ...string) string {
	if q := queryOf(pairs...).Encode(); q != "" {
		return "#" + screen + "?" + q
	}
	return "#" + screen
}

// search is a form that opens its own screen.
type search struct {
	Screen string
	Fields []input
}

// input is a field of a search.
type input struct {
	Name, Label, Value, Hint string
	Main                     bool // the one that is meant as a rule
}

// fillFields fills the fields from the query, and returns the query of the API that they make.
func (v *visit) fillFields(fields []input, limit int) (pairs []string) {
	pairs = []string{"limit", strconv.Itoa(limit), "cursor", v.query.Get("cursor")}
	for i := range fields {
		fields[i].Value = v.query.Get(fields[i].Name)
		pairs = append(pairs, fields[i].Name, fields[i].Value)
	}
	return pairs
}

// templateFunctions returns the functions of the templates.
func templateFunctions() template.FuncMap {
	return template.FuncMap{
		"iso":   func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") },
		"clock": formatTime,
		"timed": func(s string) []cell { return splitAtTimes(s).More },
		"zero":  func(t time.Time) bool { return t.IsZero() },
		"add":   func(a, b int) int { return a + b },
	}
}

// formatTime formats a time in UTC, for readers without the script that converts it to the zone of
// the browser.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

func textCell(s string) cell { return cell{Text: s} }

// markTime returns a time inside a text, which timed finds again.
func markTime(t time.Time) string { return "\x00" + t.UTC().Format(time.RFC3339Nano) + "\x00" }

// splitAtTimes splits a text at its marked times, so that a browser shows these in its reader's
// zone.
func splitAtTimes(s string) cell {
	c := cell{}
	for i, part := range strings.Split(s, "\x00") {
		if at, err := time.Parse(time.RFC3339Nano, part); i%2 == 1 && err == nil {
			c.More = append(c.More, cell{At: at, Way: "at"})
		} else if part != "" {
			c.More = append(c.More, textCell(part))
		}
	}
	return c
}

// titledCell shows a text in a row of one line: where it is cut there, its title has all of it.
func titledCell(s string) cell { return cell{Text: s, Title: s} }

func numberCell(n int64) cell {
	if n == 0 {
		return cell{}
	}
	return textCell(strconv.FormatInt(n, 10))
}

func timeCell(t client.Time, way string) cell {
	if t.IsZero() {
		return cell{}
	}
	return cell{At: t.Time, Way: way}
}

// longest bounds the shown part of a text from a sender; the whole text is in the title.
const longest = 80

func cutCell(s string) cell {
	letters := []rune(s)
	if len(letters) <= longest {
		return textCell(s)
	}
	return cell{Text: string(letters[:longest]) + "…", Title: s}
}

// cutMark is in place of what is cut out of a text.
const cutMark = "…"

// middleCutCell cuts an ID in its middle, since IDs differ at their ends; the whole ID is in the
// title.
func middleCutCell(id string) cell {
	const most, head, tail = 28, 14, 10
	letters := []rune(id)
	if len(letters) <= most {
		return textCell(id)
	}
	return cell{Text: string(letters[:head]) + cutMark + string(letters[len(letters)-tail:]), Title: id}
}

// shortID returns the beginning of an execution ID, which a search takes: the hash of the workflow,
// and enough of that of the event to tell its executions apart.
func shortID(id string) string {
	const enough = len("exec_") + 13 + 7
	if len(id) > enough {
		return id[:enough] + "…"
	}
	return id
}

// ofExecution links to the event of an execution.
func ofExecution(id string) cell {
	if id == "" {
		return cell{}
	}
	return cell{Text: shortID(id), Title: id, Href: screenLink("story", "id", id), Class: "id"}
}

// stateCell shows the status of an execution; nothing of a parked one that waits for a decision,
// which runs only by its status: parkedCell says what it is.
func stateCell(x *client.Execution) cell {
	if x.Parked != nil && x.Parked.Blocked != "" {
		return cell{}
	}
	return statusCell(x.Status)
}

// statusCell shows a status.
func statusCell(s client.Status) cell {
	class := map[client.Status]string{
		client.Success: "good", client.Failed: "bad", client.Aborted: "warn", client.CancelRequested: "warn",
		client.Refused: "warn", client.Released: "warn",
	}[s]
	return cell{Text: string(s), Class: class}
}

func outcomeCell(o client.Outcome) cell {
	c := textCell(strings.ReplaceAll(string(o), "_", " "))
	if o == client.Unknown {
		c.Class = "bad"
	}
	return c
}

func secondsDuration(s float64) time.Duration {
	return time.Duration(max(0, min(s, 1e9)) * float64(time.Second))
}

const notAll = "Not for this token: it is limited to some workflows, and this covers all of them."

// isLimited reports whether an error says that the token is limited to some workflows.
func isLimited(err error) bool {
	return isProblem(err, client.CodeForbidden) && strings.Contains(problemOf(err).Detail, "limited to some")
}

// withoutContent says in the section why it has no content: the token is limited, etcd does not
// answer (away says what is not known then), or a field of its search is mistyped. Any other error
// is returned.
func (s section) withoutContent(err error, away string) (section, error) {
	switch {
	case isLimited(err):
		return section{ID: s.ID, Title: s.Title, Fold: s.Fold, Note: notAll}, nil
	case isProblem(err, client.CodeStoreUnavailable) && away != "":
		s.Trouble, s.Empty = away, ""
	case isProblem(err, client.CodeBadRequest):
		s.Trouble, s.Empty = problemOf(err).Detail, ""
	default:
		return s, err
	}
	return s, nil
}

// aloneWithout is without for the only section of a screen.
func (s section) aloneWithout(err error, away string) ([]section, error) {
	s, err = s.withoutContent(err, away)
	return []section{s}, err
}

// queryWith returns the query of the screen with the given pairs set.
func (v *visit) queryWith(pairs ...string) []string {
	q := url.Values{}
	maps.Copy(q, v.query)
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	var all []string
	for name := range q {
		all = append(all, name, q.Get(name))
	}
	return all
}
