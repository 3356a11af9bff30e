package naming

import (
	"strings"
	"testing"
)

// Two events are twins if nothing but the event ID, and what a route ignores, tells them apart.
func TestTwinsDifferInTheirEventIDAlone(t *testing.T) {
	t.Parallel()
	form, xml := "application/x-www-form-urlencoded", "application/xml"
	for _, c := range []struct {
		name          string
		spec          KeySpec
		header        string
		a, b          string // header value or query, a space, and the body
		twins, silent bool
	}{
		{name: "the ID is in a header", spec: KeySpec{EventID: "{header.X-Id}"}, a: `1 {"n":1}`, b: `2 {"n":1}`,
			twins: true},
		{name: "and the bodies differ", spec: KeySpec{EventID: "{header.X-Id}"}, a: `1 {"n":1}`, b: `2 {"n":2}`},
		{name: "the ID is in the body", spec: KeySpec{EventID: "{header.Idempotency-Key ?? body.event.id}"},
			a: `- {"event":{"id":"1","n":1}}`, b: `- {"event":{"id":"2","n":1}}`, twins: true},
		{name: "and other members differ", spec: KeySpec{EventID: "{body.id}"}, a: `- {"id":1,"n":1}`,
			b: `- {"id":2,"n":2}`},
		{name: "which are ignored", spec: KeySpec{EventID: "{body.id}", Ignore: []string{"body.n"}},
			a: `- {"id":1,"n":1}`, b: `- {"id":2,"n":2}`, twins: true},
		{name: "the ID is in a form", spec: KeySpec{EventID: "{form.id}"}, header: form, a: `- id=1&n=1`,
			b: `- id=2&n=1`, twins: true},
		{name: "the ID is in XML", spec: KeySpec{EventID: "{xml.e.id}"}, header: xml,
			a: `- <e><id>1</id><n>1</n></e>`, b: `- <e><id>2</id><n>1</n></e>`, twins: true},
		{name: "the ID is in the query", spec: KeySpec{EventID: "{query.id}"}, a: `id=1 {"n":1}`, b: `id=2 {"n":1}`,
			twins: true},
		{name: "there is no ID", spec: KeySpec{EventID: "{header.X-Other}"}, a: `1 {"n":1}`, b: `2 {"n":1}`,
			silent: true},
		{name: "there is no body", spec: KeySpec{EventID: "{header.X-Id}"}, a: `1 `, b: `2 `, silent: true},
		{name: "the whole body is ignored", spec: KeySpec{EventID: "{header.X-Id}", Ignore: []string{"*"},
			Missing: MissingReject},
			a: `1 {"n":1}`, b: `2 {"n":1}`, silent: true},
		{name: "the payload is part of the key", spec: KeySpec{EventID: "{header.X-Id}/{fingerprint}"},
			a: `1 {"n":1}`, b: `2 {"n":1}`, silent: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.spec.Route, c.spec.Workflow = "r", "{route}"
			keys, err := NewKeys(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			spec := c.spec
			spec.SameEvent = true
			same, err := NewKeys(spec)
			if err != nil {
				t.Fatal(err)
			}
			printOf := func(text string) (string, bool) {
				id, body, _ := strings.Cut(text, " ")
				m := &Message{Method: []byte("POST"), Path: []byte("/r"), Host: []byte("a"), Body: []byte(body),
					Fields: []Field{{Name: []byte("X-Id"), Value: []byte(id)}}}
				if strings.Contains(id, "=") {
					m.Query = []byte(id)
				}
				if c.header != "" {
					m.Fields = append(m.Fields, Field{Name: []byte("Content-Type"), Value: []byte(c.header)})
				}
				names, err := keys.Name(m)
				if err != nil {
					t.Fatal(err)
				}
				before := names.Fingerprint
				twin, ok := keys.TwinPrint(m, &names)
				if names.Fingerprint != before {
					t.Error("the fingerprint of the delivery has changed")
				}
				one, err := same.Name(m)
				if err != nil || same.HasTwins(m, &one) != ok || ok && one.Fingerprint != twin {
					t.Errorf("where twins are one event, the fingerprint has more than their print: %v", err)
				}
				return string(twin[:]), ok
			}
			a, known := printOf(c.a)
			b, _ := printOf(c.b)
			if known == c.silent || !c.silent && (a == b) != c.twins {
				t.Errorf("known %v, equal %v", known, a == b)
			}
		})
	}
}
