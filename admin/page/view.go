package page

import (
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"hooklock/admin/client"
	"hooklock/idem"
)

// section is a part of a screen. What it has not is left out.
type section struct {
	ID, Title string
	Note      string // what it is, for who sees it first
	Trouble   string // why it cannot be shown, or is not as it should be
	Well      string // said where there is nothing in it, and that is good
	Count     int    // beside the title; 0 = none
	More      bool   // there are more than Count, or may be
	Search    *search
	Facts     []fact
	Table     *table
	Story     *axis
	Asks      []ask
	Links     []link // to other screens: the older ones
}

// fact is a name and what is known of it.
type fact struct {
	Name  string
	Cells []cell
}

// cell is something to read: a text, a time, a link, or several of them.
type cell struct {
	Text  string
	Class string // good, bad, warn, id, dim; "" = plain
	Title string // all of it, where Text is cut
	Href  string // of another screen, such as #story?id=…
	At    time.Time
	Way   string // how At is shown: ago, for (since then), in, or at; "ago" where it is ""
	Asks  []ask
	More  []cell
}

// table is rows of cells below a head.
type table struct {
	Name string
	Head []string
	Rows []row
	Live bool // its rows change while it is looked at
	More string
}

// row is a row of a table, known by its key.
type row struct {
	Key   string
	Cells []cell
}

// column is what one column of a table shows of a T.
type column[T any] struct {
	head string
	show func(*T) cell
}

// tableOf shows all with these columns.
func tableOf[T any](name string, columns []column[T], all []T, key func(*T) string) *table {
	t := &table{Name: name}
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

// link leads to another screen.
type link struct{ Text, Href string }

// ask is a button for a question: what would follow, and why it should.
type ask struct {
	Text string
	Href string // below page/
}

func asking(text, do string, pairs ...string) ask {
	return ask{text, "ask?" + values(append([]string{"do", do}, pairs...)...).Encode()}
}

// to is a link to a screen.
func to(screen string, pairs ...string) string {
	if q := values(pairs...).Encode(); q != "" {
		return "#" + screen + "?" + q
	}
	return "#" + screen
}

// search is the fields of a form that leads to its own screen again.
type search struct {
	Screen string
	Fields []input
}

// input is a field of a search.
type input struct {
	Name, Label, Value, Hint string
	Options                  []string // nil = any text
	Main                     bool     // the one that is meant as a rule
}

// functions are what templates call.
func functions() template.FuncMap {
	return template.FuncMap{
		"iso":   func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") },
		"clock": stamp,
		"zero":  func(t time.Time) bool { return t.IsZero() },
		"add":   func(a, b int) int { return a + b },
	}
}

// stamp is a time as it is spelled where no browser shows it in its own zone.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

func text(s string) cell { return cell{Text: s} }

func number(n int64) cell {
	if n == 0 {
		return cell{}
	}
	return text(strconv.FormatInt(n, 10))
}

func when(t client.Time, way string) cell {
	if t.IsZero() {
		return cell{}
	}
	return cell{At: t.Time, Way: way}
}

// longest is what is shown of a name that somebody sent; the rest is in its title.
const longest = 80

func cut(s string) cell {
	letters := []rune(s)
	if len(letters) <= longest {
		return text(s)
	}
	return cell{Text: string(letters[:longest]) + "…", Title: s}
}

// shortID is a beginning of an execution's ID, because that is what a search takes: the hash of its workflow, and enough of that of its event to tell it
// from others of the workflow.
func shortID(id string) string {
	const enough = len("exec_") + 13 + 7
	if len(id) > enough {
		return id[:enough] + "…"
	}
	return id
}

// ofExecution leads to the story of an execution.
func ofExecution(id string) cell {
	if id == "" {
		return cell{}
	}
	return cell{Text: shortID(id), Title: id, Href: to("story", "id", id), Class: "id"}
}

// statusCell says where an execution is.
func statusCell(s client.Status) cell {
	class := map[client.Status]string{
		client.Success: "good", client.Failed: "bad", client.Aborted: "warn", client.CancelRequested: "warn", client.Refused: "warn", client.Released: "warn",
	}[s]
	return cell{Text: string(s), Class: class}
}

func outcomeCell(o client.Outcome) cell {
	c := text(strings.ReplaceAll(string(o), "_", " "))
	if o == client.Unknown {
		c.Class = "bad"
	}
	return c
}

// whyDecision says in a sentence why a delivery got what it got: the same that its sender reads.
func whyDecision(decision, execution string) string {
	row := idem.Decision(decision).Row()
	detail := row.Detail
	if detail == "" {
		switch row.Decision {
		case idem.DecisionReplayed:
			detail = "its event is settled: it got the first answer again"
		case idem.DecisionAttached:
			detail = "a copy of it ran: it waited for that one's answer, and got it"
		case idem.DecisionSkipped:
			detail = "the workflow was busy, and the route skips what comes meanwhile"
		case idem.DecisionParked:
			detail = "it was accepted, and runs in its turn"
		case idem.DecisionBypassed:
			detail = "it was forwarded, whatever was decided"
		case idem.DecisionExecuted:
			detail = "it ran"
		}
	}
	if execution != "" {
		detail = strings.ReplaceAll(detail, "EXECUTION", execution)
	}
	return detail
}

// sentence begins with a capital and ends with a full stop.
func sentence(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if s == "" || strings.HasSuffix(s, ".") {
		return s
	}
	return string(unicode.ToUpper(first)) + s[size:] + "."
}

// span is a duration as people say it.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Second:
		return strconv.FormatFloat(float64(d.Milliseconds())/1000, 'f', -1, 64) + " s"
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s"
	case d < time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second), " 0 s")
	case d < 48*time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute), " 0 min")
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

func seconds(s float64) time.Duration {
	return time.Duration(max(0, min(s, 1e9)) * float64(time.Second))
}

// count is so many things, in words.
func count[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(int64(n), 10) + " " + many
}

const notAll = "Not for this token: it is limited to some workflows, and this is over all of them."

// limited says why a token that is for some workflows does not get what is over all of them.
func limited(err error) (note string, is bool) {
	p := problemOf(err)
	if p.Code == client.CodeForbidden && strings.Contains(p.Detail, "limited to some") {
		return notAll, true
	}
	return "", false
}

// keep is the query of a screen without what is set here.
func (v *visit) keep(pairs ...string) []string {
	q := url.Values{}
	for name, given := range v.query {
		q[name] = given
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	var all []string
	for name := range q {
		all = append(all, name, q.Get(name))
	}
	return all
}
