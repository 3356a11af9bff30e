package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	maxStreams     = 64               // open at a time
	maxStreamsEach = maxStreams / 4   // of them, those of one token
	writeTime      = 15 * time.Second // for one event, and for the end of a stream
)

// change is one event of a stream: new and changed rows of the table, removed rows, and changed
// sections, as HTML.
type change struct {
	Sections map[string]string `json:"sections,omitempty"`
	Rows     map[string]string `json:"rows,omitempty"`
	Order    []string          `json:"sequence,omitempty"` // of all rows; nil = unchanged
	Gone     []string          `json:"gone,omitempty"`
	Count    *int              `json:"count,omitempty"` // of the rows
	Trouble  string            `json:"trouble"`         // why the rows are old; "" = they are current
	At       string            `json:"at"`
}

// serveLive sends the overview and then its changes as server-sent events. The script reads them
// with fetch, because EventSource cannot send a token. Each read of the API uses the visitor's
// token, so revoking it ends the stream.
func (p *Page) serveLive(w http.ResponseWriter, r *http.Request) {
	if visitor := r.Header.Get("Authorization"); p.openStream(visitor) {
		defer p.closeStream(visitor)
	} else {
		w.Header().Set("Retry-After", "5")
		p.refuseWith(w, http.StatusServiceUnavailable, "overloaded", "too many screens are open; this one is not live")
		return
	}
	s := &stream{page: p, w: w, sections: map[string]string{}, rows: map[string]string{}}
	defer s.extendDeadline()
	ticker := time.NewTicker(p.o.Every)
	defer ticker.Stop()
	for first := true; ; first = false {
		v, err := p.newVisit(r)
		if err == nil {
			v.kept = &s.attention
			err = s.send(v)
		}
		if err != nil {
			if first {
				p.showProblem(w, err)
			} else {
				s.sendEvent("problem", problemOf(err))
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

// openStream takes a place for a live screen. One token may have a quarter of them.
func (p *Page) openStream(visitor string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == maxStreams || visitor != "" && p.streams[visitor] == maxStreamsEach {
		return false
	}
	p.open++
	p.streams[visitor]++
	return true
}

func (p *Page) closeStream(visitor string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	if p.streams[visitor]--; p.streams[visitor] == 0 {
		delete(p.streams, visitor)
	}
}

// stream is one open screen.
type stream struct {
	attention kept
	page      *Page
	w         http.ResponseWriter
	begun     bool
	broken    bool
	sections  map[string]string // as sent, by ID
	rows      map[string]string // of the live table, by key
	order     []string
}

// send sends the changes, or an empty event that keeps the stream alive.
func (s *stream) send(v *visit) error {
	sections, err := nowScreen(v)
	if err != nil {
		return err
	}
	c := change{Sections: map[string]string{}, Rows: map[string]string{},
		At: templateFunctions()["iso"].(func(time.Time) string)(v.now)}
	for i := range sections {
		one := &sections[i]
		if one.Table != nil && one.Table.Live {
			if c.Trouble = one.Trouble; c.Trouble == "" {
				s.compareRows(one.Table, &c)
			}
			continue
		}
		if html := s.renderHTML("section", one); s.sections[one.ID] != html {
			s.sections[one.ID], c.Sections[one.ID] = html, html
		}
	}
	s.sendEvent("change", c)
	return nil
}

// compareRows adds the rows that differ from those sent before.
func (s *stream) compareRows(t *table, c *change) {
	rows, order, same := map[string]string{}, make([]string, 0, len(t.Rows)), len(t.Rows) == len(s.order)
	for i := range t.Rows {
		r := &t.Rows[i]
		html := s.renderHTML("row", struct {
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

func (s *stream) renderHTML(name string, data any) string {
	var text bytes.Buffer
	if err := s.page.templates.ExecuteTemplate(&text, name, data); err != nil {
		panic(err) // recovered by the server
	}
	return text.String()
}

func (s *stream) sendEvent(name string, data any) {
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		s.w.Header().Set("X-Accel-Buffering", "no") // keeps proxies from buffering
		s.w.WriteHeader(http.StatusOK)
	}
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // of texts and numbers
	}
	s.extendDeadline()
	_, err = fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", name, text)
	s.broken = err != nil || http.NewResponseController(s.w).Flush() != nil
}

// extendDeadline sets the deadline of the next write. Without one, the kernel notices a client that
// stopped reading.
func (s *stream) extendDeadline() {
	_ = http.NewResponseController(s.w).SetWriteDeadline(time.Now().Add(writeTime))
}
