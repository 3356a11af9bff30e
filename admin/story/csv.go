package story

import (
	"io"
	"strconv"
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

// CSVHead are the columns of CSVRow.
func CSVHead() []string {
	return []string{
		"time", "event", "route", "workflow", "status", "outcome", "what_happened", "told", "duration_seconds",
		"attempt", "duplicates", "labels", "execution", "trace",
	}
}

// CSVRow returns the columns of one event for a spreadsheet. Its time is in UTC: when it ended, or
// else when it came.
func CSVRow(x *client.Execution, now time.Time) []string {
	at, seconds := x.StartedAt, ""
	if took, known := Took(x); known {
		seconds = strconv.FormatFloat(took.Seconds(), 'f', 3, 64)
	}
	if !x.FinishedAt.IsZero() {
		at = x.FinishedAt
	}
	trace := x.TraceID
	if x.Arrivals != nil && len(x.Arrivals.Newest) > 0 && x.Status == client.Refused {
		at, trace = x.Arrivals.Newest[0].At, x.Arrivals.Newest[0].TraceID
	}
	return []string{
		CSVTime(at), Name(x), x.Route, x.Workflow, ShownStatus(x), string(x.Outcome), Short(x, now), statusTold(x),
		seconds,
		strconv.Itoa(x.Attempt),
		strconv.FormatInt(x.Duplicates, 10), Labels(x), x.ExecutionID, trace,
	}
}

// Took returns how long an execution ran, or how long the sender of a refused event waited for its
// newest answer. known is false for one that has not ended, and where that is not kept.
func Took(x *client.Execution) (took time.Duration, known bool) {
	from, to := x.StartedAt, x.FinishedAt
	if x.Status == client.Refused && x.Arrivals != nil && len(x.Arrivals.Newest) > 0 {
		from, to = x.Arrivals.Newest[0].At, x.Arrivals.Newest[0].AnsweredAt
	}
	return to.Sub(from.Time), !from.IsZero() && !to.IsZero()
}

// StatusBlocked is shown for a parked event that waits for a decision.
const StatusBlocked = "BLOCKED"

// ShownStatus returns the status of an execution for people: a parked one that waits for a decision
// is not called RUNNING.
func ShownStatus(x *client.Execution) string {
	if x.Parked != nil && x.Parked.Blocked != "" {
		return StatusBlocked
	}
	return string(x.Status)
}

// CSVTime spells a time for a spreadsheet; "" for none.
func CSVTime(t client.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// statusTold returns the status that the sender of an event got at last, as far as it is known:
// accepted for one that ran after its answer.
func statusTold(x *client.Execution) string {
	switch {
	case x.Status == client.Refused && x.Arrivals != nil && len(x.Arrivals.Newest) > 0:
		return strconv.Itoa(x.Arrivals.Newest[0].Status)
	case x.Parked != nil || x.ParkedOn != "" || x.RequestKept:
		return "accepted"
	case x.Response != nil:
		return strconv.Itoa(x.Response.Status)
	case x.Error != nil:
		if row := idem.Decision(x.Error.Code).Row(); row.Status != 0 {
			return strconv.Itoa(row.Status)
		}
	}
	return ""
}

// WriteCSV writes a line as RFC 4180 has it. Quotes stand also around a semicolon and a tab:
// spreadsheets of some countries part cells there, and what follows would be a cell that was not
// checked for a formula.
func WriteCSV(to io.Writer, row []string) error {
	var line strings.Builder
	for i, field := range row {
		if i > 0 {
			line.WriteByte(',')
		}
		if field = inertCell(field); strings.ContainsAny(field, ",;\t\"\r\n") || strings.HasPrefix(field, " ") {
			field = `"` + strings.ReplaceAll(field, `"`, `""`) + `"`
		}
		line.WriteString(field)
	}
	line.WriteByte('\n')
	_, err := io.WriteString(to, line.String())
	return err
}

// inertCell keeps a spreadsheet from taking a sender's text for a formula.
func inertCell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
