package naming

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"hooklock/idem"

	"pgregory.net/rapid"
)

// named is what a key is hashed over.
type named struct {
	route           string
	workflow        []string
	sources, values []string
}

func (n named) key() idem.Key {
	s := &scratch{route: n.route}
	for _, v := range n.workflow {
		s.workflow = append(s.workflow, part{value: []byte(v)})
	}
	for i, v := range n.values {
		s.event = append(s.event, part{source: &alternative{hashed: n.sources[i]}, value: []byte(v)})
	}
	return s.hashKey("", false)
}

func (n named) equal(o named) bool {
	return n.route == o.route && slices.Equal(n.workflow, o.workflow) && slices.Equal(n.sources, o.sources) &&
		slices.Equal(n.values, o.values)
}

// cut divides a text into parts at places that rapid chooses.
func cut(t *rapid.T, text string, label string) []string {
	var parts []string
	for len(text) > 0 {
		n := rapid.IntRange(1, len(text)).Draw(t, label)
		parts, text = append(parts, text[:n]), text[n:]
	}
	return parts
}

// TestNoTwoPartListsGiveTheSameKey cuts one text in two ways, because lists whose parts run
// together to the same text are the ones that a careless hash confuses.
func TestNoTwoPartListsGiveTheSameKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("a|\x00\x01")), 3, 12, -1).Draw(t, "text")
		draw := func(label string) named {
			a := rapid.IntRange(0, len(text)).Draw(t, label)
			b := rapid.IntRange(a, len(text)).Draw(t, label)
			n := named{route: text[:a], workflow: cut(t, text[a:b], label)}
			for i, p := range cut(t, text[b:], label) {
				if i%2 == 0 {
					n.sources, n.values = append(n.sources, p), append(n.values, "")
				} else {
					n.values[i/2] = p
				}
			}
			return n
		}
		x, y := draw("x"), draw("y")
		if (x.key() == y.key()) != x.equal(y) {
			t.Fatalf("%+v has %s\n%+v has %s", x, x.key(), y, y.key())
		}
	})
}

func TestNoTwoValuesLookTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.SliceOfN(rapid.SampledFrom([]byte("%0aAF\n\x7f\xff\xc2\x85é")), 0, 6)
		a, b := bytes.Draw(t, "a"), bytes.Draw(t, "b")
		x, y := string(appendPrintable(nil, a)), string(appendPrintable(nil, b))
		if (x == y) != slices.Equal(a, b) {
			t.Fatalf("%q and %q: %q and %q", a, b, x, y)
		}
		if !utf8.ValidString(x) || strings.ContainsFunc(x, func(r rune) bool {
			return r < 0x20 || r >= 0x7f && r < 0xa0
		}) {
			t.Fatalf("%q is not printable", x)
		}
		if back, err := url.PathUnescape(x); err != nil || back != string(a) {
			t.Fatalf("%q says %q, %v", x, back, err)
		}
	})
}

// FuzzNames: naming never panics, a workflow is never empty, and two bodies have one key only if
// they have one ID.
func FuzzNames(f *testing.F) {
	f.Add("evt_1", "evt_2", "a=1&id=2", `"k"`, []byte(`{"id":1}`))
	f.Add("", "\x00", "id=%00", "k\r\n", []byte(`{"id":"\ud800","id":`))
	f.Add("%41", "A", "id=%2541", `"a\"b"`, []byte(``))
	f.Add("\xff", "\ufffd", "id=+&id", `"`, []byte("id=1"))
	byBody, err := NewKeys(KeySpec{Route: "r", Workflow: "w", EventID: "{body.id}", Missing: MissingReject})
	if err != nil {
		f.Fatal(err)
	}
	all, err := NewKeys(KeySpec{Route: "r",
		Workflow: "{path.p ?? query.id ?? header.W ?? body.w}{form.id ?? body_sha256 ?? host ?? \"x\"}",
		EventID:  "{header.Idempotency-Key ?? body.id}/{query.id ?? path.p ?? form.id}"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, a, b, query, header string, body []byte) {
		m := &Message{Query: []byte(query), Body: body, Vars: []PathVar{{"p", []byte(a)}}, Host: []byte(b),
			Fields: []Field{{[]byte("Idempotency-Key"), []byte(header)}, {[]byte("W"), []byte(b)},
				{[]byte("Content-Type"), []byte("application/x-www-form-urlencoded")}}}
		names, err := all.Name(m)
		var bad *NameError
		switch {
		case err == nil && (names.Workflow == "" || len(names.Key) != 49):
			t.Fatalf("%+v", names)
		case err != nil && (!errors.As(err, &bad) || bad.Code == "" || bad.Detail == "" || names.Key != ""):
			t.Fatalf("%+v, %#v", names, err)
		}
		m.Reset()

		idA, keyA := nameOfID(t, byBody, m, a)
		idB, keyB := nameOfID(t, byBody, m, b)
		if keyA != "" && (idA == idB) != (keyA == keyB) {
			t.Fatalf("%q has %s, %q has %s", idA, keyA, idB, keyB)
		}
	})
}

// nameOfID names a delivery whose body has the ID, and returns the ID as JSON can say it.
func nameOfID(t *testing.T, k *Keys, m *Message, id string) (string, idem.Key) {
	id = strings.ToValidUTF8(id, "?")
	text, err := json.Marshal(map[string]string{"id": id, "other": "x"})
	if err != nil {
		t.Fatal(err)
	}
	m.Body = text
	names, err := k.Name(m)
	if (err == nil) != (id != "" && len(id) <= MaxValue) {
		t.Fatalf("%q: %v", id, err)
	}
	return id, names.Key
}

// FuzzForm holds the parameters against net/url where both read them alike.
func FuzzForm(f *testing.F) {
	for _, s := range []string{"id=1", "a=b&id=%41+x&", "id=1&i%64=2", "id", "&&id=&", "id=%", "%69%64=é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		var s scratch
		value, result := s.readParameter([]byte(query), "id")
		all, err := url.ParseQuery(query)
		if err != nil {
			return // net/url refuses the whole for one broken pair, and for any ";"
		}
		switch got := all["id"]; {
		case len(got) > 1 && result != ambiguous, len(got) == 0 && result != missing:
			t.Fatalf("%q: %q, %v; net/url says %q", query, value, result, got)
		case len(got) == 1 && result != tooLong && (result != found || got[0] != string(value)):
			t.Fatalf("%q: %q, %v; net/url says %q", query, value, result, got)
		}
	})
}
