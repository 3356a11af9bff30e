package naming

import (
	"bytes"
	"fmt"
)

// Unread is a source of a route's templates that has no value in a delivery.
type Unread struct {
	Source string // as the template spells it
	Why    string // may quote the delivery: for the person who sent it, not for its sender
}

// Unread returns the sources that the templates of k read in m without finding a value, each once.
// It is for people who try a template: it reads the body again for each source.
func (k *Keys) Unread(m *Message) []Unread {
	m.scratch.beginDelivery(k.route)
	templates := append([]*Template{k.workflow}, k.uses...)
	templates = append(templates, k.event)
	if k.order != nil {
		templates = append(templates, k.order.by, k.order.scope)
	}
	for _, l := range k.labels {
		templates = append(templates, l.template)
	}
	var all []Unread
	listed := map[string]bool{}
	for _, t := range templates {
		if t == nil {
			continue
		}
		for _, a := range t.unreadAlternatives(m) {
			if !listed[a.Text] {
				listed[a.Text] = true
				all = append(all, Unread{a.Text, whyUnread(a, m)})
			}
		}
	}
	return all
}

// unreadAlternatives returns the alternatives that were tried in vain.
func (t *Template) unreadAlternatives(m *Message) []*alternative {
	var all []*alternative
	for i := range t.pieces {
		for j := range t.pieces[i].alternatives {
			a := &t.pieces[i].alternatives[j]
			value, result := a.reader.readValue(m)
			if result == found && len(value) > 0 && len(value) <= MaxValue {
				break
			}
			all = append(all, a)
			if result == ambiguous || result.byteLimit() > 0 || len(value) > MaxValue { // the next one is not tried
				break
			}
		}
	}
	return all
}

// whyUnread says why a has no value in m.
func whyUnread(a *alternative, m *Message) string {
	if x, ok := a.reader.(xmlSource); ok {
		return x.whyUnread(m)
	}
	value, result := a.reader.readValue(m)
	switch {
	case result == ambiguous:
		return "it is given more than once"
	case result == longJSON:
		return fmt.Sprintf("the JSON around it is longer than %d bytes", result.byteLimit())
	case result == tooLong, len(value) > MaxValue:
		return fmt.Sprintf("it is longer than %d bytes", MaxValue)
	case a.Kind == SourceBody && len(m.Body) == 0:
		return "the body is empty"
	case a.Kind == SourceBody && !m.scratch.body.json:
		return "the body is not JSON"
	case a.Kind == SourceBody:
		return "it is absent, empty, or no single text, number or boolean"
	}
	return "it is absent or empty"
}

// whyUnread says why x has no value in m.
func (x xmlSource) whyUnread(m *Message) string {
	w, err := x.walkBody(m)
	switch {
	case err != nil:
		return fmt.Sprintf("the body cannot be read: %v", err)
	case w.twice:
		return "the element is given more than once, or a comment or an instruction splits its text"
	case w.nested:
		return "the element has elements, and no text of its own is read then"
	case len(bytes.TrimSpace(w.text)) > MaxValue:
		return fmt.Sprintf("it is longer than %d bytes", MaxValue)
	}
	return "the document has no such element, or it is empty"
}
