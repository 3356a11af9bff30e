package naming

import (
	"errors"
	"strings"
	"testing"

	"hooklock/idem"
)

// keyOf is the key of a delivery whose event ID is built by template.
func keyOf(t *testing.T, template string) idem.Key {
	t.Helper()
	m := &Message{
		Method: []byte("POST"), Host: []byte("h"), Query: []byte("id=x&other=x"), Vars: []PathVar{{"id", []byte("x")}},
		Fields: fields("X-Id: x", "Content-Type: application/json"),
		Body:   []byte(`{"id":"x","a":["x",{"id":"x","0":"x"}],"0":"x","a.id":"x","b":{"id":"x"}}`),
	}
	return mustName(t, mustKeys(t, KeySpec{Route: "r", Workflow: "w", EventID: template}), m).Key
}

// A record outlives a change of the configuration that means the same: only what is read counts,
// not how that is spelled.
func TestAKeyIsOfTheSourceAndNotOfItsSpelling(t *testing.T) {
	for _, same := range [][]string{
		{`{body.id}`, `{body["id"]}`, `{ body.id }`, `{header.None ?? body.id}`},
		{`{body.a[1].id}`, `{body["a"][1]["id"]}`, `{body.a[01].id}`},
		{`{query.id}`, `{query["id"]}`},
		{`{path.id}`, `{path["id"]}`},
		{`{header.X-Id}`, `{header["x-id"]}`, `{header.x-ID}`},
	} {
		for _, other := range same[1:] {
			if keyOf(t, other) != keyOf(t, same[0]) {
				t.Errorf("%s has another key than %s", other, same[0])
			}
		}
	}
}

func TestEqualValuesOfOtherPlacesAreOtherEvents(t *testing.T) {
	seen := map[idem.Key]string{}
	for _, template := range []string{
		`{body.id}`, `{body.a[0]}`, `{body.a[1].id}`, `{body.b.id}`, `{body["0"]}`, `{body["a.id"]}`,
		`{body.a[1]["0"]}`, `{query.id}`, `{query.other}`, `{path.id}`, `{header.X-Id}`,
		`{header.None ?? "x"}`,
	} {
		key := keyOf(t, template)
		if other, twice := seen[key]; twice {
			t.Errorf("%s shares the key of %s", template, other)
		}
		seen[key] = template
	}
}

func TestTheKeyStaysAcrossReleases(t *testing.T) {
	// Records in etcd outlive a release: a key that changes makes every duplicate a new event,
	// which runs.
	for template, want := range map[string]idem.Key{
		`{body.id}`:       "5c80c09683041123-5ea679b6903951f3af858a532013f3df",
		`{body.a[1].id}`:  "5c80c09683041123-6cfdb3a613b36330a35cd76df8520531",
		`{query.id}`:      "5c80c09683041123-f124eee7871a0baf49e3a865d6f1f0b8",
		`{path.id}`:       "5c80c09683041123-0d98df63d5ac1b2450c87f2fed5e9526",
		`{header.X-Id}`:   "5c80c09683041123-f27b6703e1360155254e1d524acb02d8",
		`{fingerprint}`:   "4c16b77596cd2eba-875d35ecbd32868e9bda739668f0b77a",
		`{body_sha256}`:   "9b56b17da48ff3a5-178e89e1f90957c9a05dc1af746ca9ec",
		`{header.X-Id}-a`: "4838df24c562e05a-3acdbcd817987eecb1d4ce12e45aa81a",
	} {
		if got := keyOf(t, template); got != want {
			t.Errorf("%s: %s", template, got)
		}
	}
}

func TestKeysKnowWhetherTheyReadAnEventID(t *testing.T) {
	for name, c := range map[string]struct {
		spec KeySpec
		want bool
	}{
		"a template":   {KeySpec{Workflow: "w", EventID: "{body.id}"}, true},
		"an extractor": {KeySpec{Workflow: "w", Extract: giving("s", "a")}, true},
		"neither":      {KeySpec{Workflow: "w"}, false},
	} {
		if got := mustKeys(t, c.spec).ReadsEventID(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAnEventIsByPayloadWhereverTheFingerprintStands(t *testing.T) {
	for template, want := range map[string]bool{
		"{fingerprint}{header.Id}": true, "{header.Id}{fingerprint}": true,
		"{header.Id}-{fingerprint}-{header.Id}": true, "{header.Id}": false,
	} {
		n := mustName(t, mustKeys(t, KeySpec{Workflow: "w", EventID: template}), &Message{Fields: fields("Id: 1")})
		if n.ByPayload != want {
			t.Errorf("%s: by payload %v", template, n.ByPayload)
		}
	}
}

func TestANameIsAtMostMaxNameLong(t *testing.T) {
	// Four values and a text in between, where each value is as long as it may be.
	value := strings.Repeat("x", MaxValue)
	m := &Message{Fields: fields("A: "+value, "Id: 1")}
	four := strings.Repeat("{header.A}", MaxName/MaxValue)
	for part, spec := range map[string]func(string) KeySpec{
		PartWorkflow: func(text string) KeySpec { return KeySpec{Workflow: text, EventID: "{header.Id}"} },
		PartEventID:  func(text string) KeySpec { return KeySpec{Workflow: "w", EventID: text} },
	} {
		if n := mustName(t, mustKeys(t, spec(four)), m); len(n.Workflow) != MaxName && len(n.EventID) != MaxName {
			t.Errorf("%s: %+v", part, n)
		}
		var bad *NameError
		if _, err := mustKeys(t, spec(four+"-")).Name(m); !errors.As(err, &bad) || bad.Code != CodeKeyTooLong ||
			bad.Part != part {
			t.Errorf("%s: one byte more gives %v", part, err)
		}
	}
}

func TestANameEscapesWhatHidesAndNoMore(t *testing.T) {
	k := mustKeys(t, KeySpec{Workflow: "{body.w}", EventID: "{fingerprint}"})
	for _, r := range []rune{0x80, 0x9f, 0x200b, 0x200f, 0x2028, 0x202e, 0x2060, 0x206f, 0xfeff} {
		want := ""
		for _, c := range []byte(string(r)) {
			want += "%" + string(upperHex[c>>4]) + string(upperHex[c&15])
		}
		if got := mustName(t, k, &Message{Body: []byte(`{"w":"a` + string(r) + `b"}`)}).Workflow; got != "a"+want+"b" {
			t.Errorf("%U: %q", r, got)
		}
	}
	for _, r := range []rune{'\u00a0', 0x200a, 0x2010, 0x2027, 0x202f, 0x205f, 0x2070, 0xfefe, 0xfffd, 'é', '😀'} {
		if got := mustName(t, k, &Message{Body: []byte(`{"w":"a` + string(r) + `b"}`)}).Workflow; got != "a"+string(r)+
			"b" {
			t.Errorf("%U: %q", r, got)
		}
	}
}

func TestTheFingerprintOfANameLeavesOutWhatTheSignatureLeavesOpen(t *testing.T) {
	m := &Message{Method: []byte("POST"), Host: []byte("h"), Target: []byte("/a?b"), Path: []byte("/a"),
		Query: []byte("b"), Body: []byte("1"), Fields: fields("Id: 1")}
	for _, open := range []Open{{Method: true}, {Host: true}, {Target: true}} {
		got := mustName(t, mustKeys(t, KeySpec{Workflow: "w", EventID: "{header.Id}", Open: open}), m).Fingerprint
		if got != FingerprintOf(m, open, nil) || got == FingerprintOf(m, Open{}, nil) {
			t.Errorf("%+v makes no difference", open)
		}
	}
}

func TestTheKeyOfAnExtractedIDHasASource(t *testing.T) {
	names, err := extracting(t, MissingReject, giving("", "a"))
	if err != nil || names.Source != "the sender's ID" {
		t.Errorf("%q, %v", names.Source, err)
	}
	if names, err = extracting(t, MissingReject, giving("webhook-id", "a")); err != nil ||
		names.Source != "webhook-id" {
		t.Errorf("%q, %v", names.Source, err)
	}
	if names, err = extracting(t, MissingReject, giving("s", strings.Repeat("x", MaxValue))); err != nil ||
		len(names.EventID) != MaxValue {
		t.Errorf("a value that is just short enough: %v", err)
	}
}

func TestBesideASignatureTheQueryIsNoCredential(t *testing.T) {
	p := &idem.Policy{Verified: true}
	if got := CredentialsDigest("exec_a", &Message{Query: []byte("token=a&code=b")}, p); got != "" {
		t.Errorf("%q", got)
	}
}

// A pooled message outlives its delivery by hours: it may hold on to its own capacity, and to
// nothing that a delivery gave it.
func TestAPooledMessageHoldsOnToNothingOfADelivery(t *testing.T) {
	k := mustKeys(t, KeySpec{Workflow: "{path.a}{header.A}", EventID: "{form.id}{header.B}"})
	m := &Message{
		Vars: []PathVar{{"a", []byte("x%20y")}}, Fields: fields("A: 1", "B: 2", formType), Body: []byte("id=a%20b"),
	}
	mustName(t, k, m)
	s := &m.scratch
	s.values, s.path, s.line = make([]byte, 1, maxScratch+1), make([]byte, 1, maxScratch+1),
		make([]byte, 1, maxScratch+1)
	m.Reset()
	for _, f := range m.Fields[:cap(m.Fields)] {
		if f.Name != nil || f.Value != nil {
			t.Errorf("a header is still there: %s", f.Name)
		}
	}
	for _, v := range m.Vars[:cap(m.Vars)] {
		if v.Raw != nil || v.Name != "" {
			t.Errorf("a path variable is still there: %s", v.Name)
		}
	}
	for _, p := range append(m.scratch.workflow[:cap(m.scratch.workflow)], m.scratch.event[:cap(m.scratch.event)]...) {
		if p.value != nil || p.source != nil {
			t.Errorf("a value is still there: %s", p.value)
		}
	}
	if s = &m.scratch; s.values != nil || s.path != nil || s.line != nil {
		t.Error("what an odd delivery needed is kept")
	}
	s.values, s.path, s.line = make([]byte, 1, maxScratch), make([]byte, 1, maxScratch), make([]byte, 1, maxScratch)
	m.Reset()
	if s = &m.scratch; s.values == nil || s.path == nil || s.line == nil || cap(m.Fields) == 0 || cap(m.Vars) == 0 {
		t.Error("what an ordinary delivery needs is given back")
	}
}
