package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	maxStreams = 64               // screens that are looked at, at a time
	writeTime  = 15 * time.Second // that one event may take
)

// change is what an event says: the rows of a table that are new or not as they were, those that are gone, and the other sections, each as HTML.
type change struct {
	Sections map[string]string `json:"sections,omitempty"`
	Rows     map[string]string `json:"rows,omitempty"`
	Order    []string          `json:"sequence,omitempty"` // of all rows; nil = as before
	Gone     []string          `json:"gone,omitempty"`
	Count    *int              `json:"count,omitempty"` // of the rows
	Trouble  string            `json:"trouble"`         // why the rows are those of before; "" = they are those of now
	At       string            `json:"at"`
}

// live sends the screen "now" and then what changes in it, as server-sent events over a request of the script's own: EventSource cannot send a token.
// The API is asked each time in the visitor's name, so a token that was taken away ends the stream.
func (p *Page) live(w http.ResponseWriter, r *http.Request) {
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		w.Header().Set("Retry-After", "5")
		p.refuse(w, http.StatusServiceUnavailable, "overloaded", "too many screens are looked at; this one is not live")
		return
	}
	s := &stream{page: p, w: w, sections: map[string]string{}, rows: map[string]string{}}
	ticker := time.NewTicker(p.o.Every)
	defer ticker.Stop()
	for first := true; ; first = false {
		v, err := p.visit(r)
		if err == nil {
			v.now = time.Now()
			err = s.send(v)
		}
		if err != nil {
			if first {
				p.problem(w, err)
			} else {
				s.event("problem", problemOf(err))
			}
			return
		}
		if s.broken {
			return
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		case <-p.o.Life.Done():
			return
		}
	}
}

// stream is one screen that is looked at.
type stream struct {
	page     *Page
	w        http.ResponseWriter
	begun    bool
	broken   bool
	sections map[string]string // as they were sent, by ID
	rows     map[string]string // of the live table, by key
	order    []string
}

// send sends what has changed, or a sign of life.
func (s *stream) send(v *visit) error {
	sections, err := now(v)
	if err != nil {
		return err
	}
	c := change{Sections: map[string]string{}, Rows: map[string]string{}, At: functions()["iso"].(func(time.Time) string)(v.now)}
	for i := range sections {
		one := &sections[i]
		if one.Table != nil && one.Table.Live {
			if c.Trouble = one.Trouble; c.Trouble == "" {
				s.compare(one.Table, &c)
			}
			continue
		}
		if html := s.html("section", one); s.sections[one.ID] != html {
			s.sections[one.ID], c.Sections[one.ID] = html, html
		}
	}
	s.event("change", c)
	return nil
}

// compare notes which rows are not as they were sent.
func (s *stream) compare(t *table, c *change) {
	rows, order, same := map[string]string{}, make([]string, 0, len(t.Rows)), len(t.Rows) == len(s.order)
	for i := range t.Rows {
		r := &t.Rows[i]
		html := s.html("row", struct {
			*row
			Head []string
		}{r, t.Head})
		if s.rows[r.Key] != html {
			c.Rows[r.Key] = html
		}
		same = same && s.order[i] == r.Key
		rows[r.Key], order = html, append(order, r.Key)
	}
	for key := range s.rows {
		if _, still := rows[key]; !still {
			c.Gone = append(c.Gone, key)
		}
	}
	if !same {
		c.Order = order
	}
	n := len(order)
	s.rows, s.order, c.Count = rows, order, &n
}

func (s *stream) html(name string, data any) string {
	var text bytes.Buffer
	if err := s.page.templates.ExecuteTemplate(&text, name, data); err != nil {
		panic(err) // whoever serves the page contains it
	}
	return text.String()
}

func (s *stream) event(name string, data any) {
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		s.w.Header().Set("X-Accel-Buffering", "no") // a proxy between hands each event on at once
		s.w.WriteHeader(http.StatusOK)
	}
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // of texts and numbers
	}
	control := http.NewResponseController(s.w)
	_ = control.SetWriteDeadline(time.Now().Add(writeTime)) // where there is none, whoever stopped reading is noticed by the kernel
	_, err = fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", name, text)
	s.broken = err != nil || control.Flush() != nil
}
