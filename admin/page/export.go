package page

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/story"
)

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
