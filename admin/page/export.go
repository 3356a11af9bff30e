package page

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/story"
)

// exportPage is how many events one request of an export reads, and mostExported bounds an export.
const (
	exportPage   = 100
	mostExported = 5000
)

// export responds with the events that were selected or match the search, as JSON or CSV. The header X-Hooklock-More says that there are more.
func (p *Page) export(w http.ResponseWriter, r *http.Request) {
	v, err := p.visit(r)
	if err != nil {
		p.problem(w, err)
		return
	}
	var all []client.Execution
	var page *client.ExecutionPage
	if v.query.Has("pick") {
		if page, err = v.chosen(); err == nil {
			all = page.Executions
		}
	} else {
		v.readSearch()
		for {
			if page, _, err = v.found(exportPage); err != nil {
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
		p.problem(w, err)
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
	writeCSV(&text, []string{"time", "event", "route", "workflow", "status", "outcome", "what_happened", "duration_seconds", "execution"})
	for i := range all {
		x := &all[i]
		at, took := ended(x).At, ""
		if !x.FinishedAt.IsZero() && !x.StartedAt.IsZero() {
			took = strconv.FormatFloat(x.FinishedAt.Sub(x.StartedAt.Time).Seconds(), 'f', 3, 64)
		}
		row := []string{at.UTC().Format(time.RFC3339), story.Name(x), x.Route, x.Workflow, string(x.Status), string(x.Outcome), story.Short(x, now), took, x.ExecutionID}
		for n := range row {
			row[n] = inert(row[n])
		}
		writeCSV(&text, row)
	}
	return text.Bytes()
}

// writeCSV writes a line as RFC 4180 has it. Quotes stand also around a semicolon and a tab: spreadsheets of some countries part cells there, and
// what follows would be a cell that inert has not seen.
func writeCSV(text *bytes.Buffer, row []string) {
	for i, field := range row {
		if i > 0 {
			text.WriteByte(',')
		}
		if strings.ContainsAny(field, ",;\t\"\r\n") || strings.HasPrefix(field, " ") {
			field = `"` + strings.ReplaceAll(field, `"`, `""`) + `"`
		}
		text.WriteString(field)
	}
	text.WriteByte('\n')
}

// inert keeps a spreadsheet from taking a sender's text for a formula.
func inert(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
