package naming

import (
	"bytes"
	"crypto/rand"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"hooklock/idem"
)

// fields makes header lines of "Name: value" texts.
func fields(lines ...string) []Field {
	var all []Field
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ":")
		all = append(all, Field{Name: []byte(name), Value: []byte(strings.TrimSpace(value))})
	}
	return all
}

func mustKeys(t testing.TB, spec KeySpec) *Keys {
	t.Helper()
	k, err := NewKeys(spec)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func mustName(t testing.TB, k *Keys, m *Message) Names {
	t.Helper()
	n, err := k.Name(m)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

const formType = "Content-Type: application/x-www-form-urlencoded"

// TestReadsAnEventID is the table of what a source says: a value, or the code of the refusal.
func TestReadsAnEventID(t *testing.T) {
	long := strings.Repeat("x", MaxValue)
	tests := []struct {
		sentence string
		template string
		m        Message
		want     string // the event ID
		code     string // or why there is none
	}{
		{"a header", "{header.X-Id}", Message{Fields: fields("X-Id: evt_1")}, "evt_1", ""},
		{"a header in any case", "{header.X-Id}", Message{Fields: fields("x-iD: evt_1")}, "evt_1", ""},
		{"a Kelvin sign is no k", "{header.X-K}", Message{Fields: fields("X-\u212a: 1")}, "", CodeEventIDMissing},
		{"an absent header", "{header.X-Id}", Message{Fields: fields("X-Idx: 1")}, "", CodeEventIDMissing},
		{"an empty header", "{header.X-Id}", Message{Fields: fields("X-Id:")}, "", CodeEventIDMissing},
		{"a header line twice", "{header.X-Id}", Message{Fields: fields("X-Id: 1", "x-id: 2")}, "",
			CodeEventIDAmbiguous},
		{"a header line twice, both equal", "{header.X-Id}", Message{Fields: fields("X-Id: 1", "X-Id: 1")}, "",
			CodeEventIDAmbiguous},
		{"a header line twice, one empty", "{header.X-Id}", Message{Fields: fields("X-Id:", "X-Id: 1")}, "",
			CodeEventIDAmbiguous},
		{"a list in one header line is one value", "{header.X-Id}", Message{Fields: fields("X-Id: 1, 2")}, "1, 2", ""},
		{"a bare Idempotency-Key", "{header.Idempotency-Key}", Message{Fields: fields("Idempotency-Key: k1")}, "k1",
			""},
		{"a quoted Idempotency-Key", "{header.idempotency-key}", Message{Fields: fields(`Idempotency-Key: "k1"`)}, "k1",
			""},
		{"escapes in a quoted Idempotency-Key", "{header.Idempotency-Key}",
			Message{Fields: fields(`Idempotency-Key: "a\"b\\c"`)}, `a"b\c`, ""},
		{"an empty quoted Idempotency-Key", "{header.Idempotency-Key}", Message{Fields: fields(`Idempotency-Key: ""`)},
			"", CodeEventIDMissing},
		{"a half-quoted Idempotency-Key is bare", "{header.Idempotency-Key}",
			Message{Fields: fields(`Idempotency-Key: "k1`)}, `"k1`, ""},
		{"a lone quote is bare", "{header.Idempotency-Key}", Message{Fields: fields(`Idempotency-Key: "`)}, `"`, ""},
		{"two quoted texts are bare", "{header.Idempotency-Key}", Message{Fields: fields(`Idempotency-Key: "a", "b"`)},
			`"a", "b"`, ""},
		{"a broken escape leaves it bare", "{header.Idempotency-Key}",
			Message{Fields: fields(`Idempotency-Key: "a\b"`)}, `"a\b"`, ""},
		{"a closing quote that is escaped", "{header.Idempotency-Key}",
			Message{Fields: fields(`Idempotency-Key: "a\"`)}, `"a\"`, ""},
		{"other headers keep their quotes", "{header.X-Id}", Message{Fields: fields(`X-Id: "k1"`)}, `"k1"`, ""},

		{"a path variable", "{path.id}", Message{Vars: []PathVar{{"id", []byte("a-1")}}}, "a-1", ""},
		{"a path variable is decoded once", "{path.id}", Message{Vars: []PathVar{{"id", []byte("a%2520b")}}}, "a%2520b",
			""},
		{"a plus in the path is a plus", "{path.id}", Message{Vars: []PathVar{{"id", []byte("a+b")}}}, "a+b", ""},
		{"a broken escape in the path", "{path.id}", Message{Vars: []PathVar{{"id", []byte("a%2")}}}, "",
			CodeEventIDMissing},
		{"an empty path variable", "{path.id}", Message{Vars: []PathVar{{"id", nil}}}, "", CodeEventIDMissing},
		{"a path variable that the pattern lacks", "{path.other}", Message{Vars: []PathVar{{"id", []byte("1")}}}, "",
			CodeEventIDMissing},

		{"a query parameter", "{query.id}", Message{Query: []byte("a=1&id=e+v%74&b")}, "e vt", ""},
		{"an encoded parameter name", "{query.id}", Message{Query: []byte("%69d=1")}, "1", ""},
		{"a query parameter twice", "{query.id}", Message{Query: []byte("id=1&id=2")}, "", CodeEventIDAmbiguous},
		{"a query parameter twice, once encoded", "{query.id}", Message{Query: []byte("id=1&%69%64=2")}, "",
			CodeEventIDAmbiguous},
		{"a query parameter without a value", "{query.id}", Message{Query: []byte("id&x=1")}, "", CodeEventIDMissing},
		{"a broken escape in the query", "{query.id}", Message{Query: []byte("id=%zz")}, "", CodeEventIDMissing},
		{"a semicolon separates nothing", "{query.id}", Message{Query: []byte("id=1;id=2")}, "1;id=2", ""},
		{"an equals sign in a value", "{query.id}", Message{Query: []byte("id=a=b")}, "a=b", ""},
		{"a quoted parameter name", `{query["a b"]}`, Message{Query: []byte("a+b=1")}, "1", ""},
		{"names differ in case", "{query.id}", Message{Query: []byte("ID=1")}, "", CodeEventIDMissing},

		{"a form parameter", "{form.id}", Message{Fields: fields(formType), Body: []byte("x=1&id=7")}, "7", ""},
		{"a form whose type is written otherwise", "{form.id}",
			Message{Fields: fields("content-type: Application/X-WWW-Form-Urlencoded ; charset=utf-8"),
				Body: []byte("id=7")}, "7", ""},
		{"a form parameter with brackets", "{form.data[id]}",
			Message{Fields: fields(formType), Body: []byte("data%5Bid%5D=7")}, "7", ""},
		{"a form without a type", "{form.id}", Message{Body: []byte("id=7")}, "", CodeEventIDMissing},
		{"a form with two types", "{form.id}", Message{Fields: fields(formType, formType), Body: []byte("id=7")}, "",
			CodeEventIDMissing},
		{"a multipart form", "{form.id}", Message{Fields: fields("Content-Type: multipart/form-data; boundary=b"),
			Body: []byte("id=7")}, "", CodeEventIDMissing},
		{"a form parameter twice", "{form.id}", Message{Fields: fields(formType), Body: []byte("id=7&id=7")}, "",
			CodeEventIDAmbiguous},

		{"a body hash", "{body_sha256}", Message{Body: []byte("abc")},
			"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", ""},
		{"the hash of no body", "{body_sha256}", Message{}, "", CodeEventIDMissing},
		{"host and header", "{host}/{header.X-Id}",
			Message{Host: []byte("Hooks.Example.COM:8443"), Fields: fields("X-Id: 1")}, "hooks.example.com:8443/1", ""},
		{"method, route and header", "{method} {route} {header.X-Id}",
			Message{Method: []byte("PUT"), Fields: fields("X-Id: 1")}, "PUT r 1", ""},
		{"a host that is absent", "{host}{header.X-Id}", Message{Fields: fields("X-Id: 1")}, "", CodeEventIDMissing},
		{"one missing part makes the whole missing", "{header.A}-{header.B}", Message{Fields: fields("A: 1")}, "",
			CodeEventIDMissing},
		{"braces in text", "{{{header.A}}}", Message{Fields: fields("A: 1")}, "{1}", ""},

		{"the next alternative when one is missing", "{header.A ?? header.B}", Message{Fields: fields("B: 2")}, "2",
			""},
		{"the first alternative that is there", "{header.A??header.B}", Message{Fields: fields("B: 2", "A: 1")}, "1",
			""},
		{"an ambiguous alternative stops the search", "{header.A ?? header.B}",
			Message{Fields: fields("A: 1", "A: 1", "B: 2")}, "", CodeEventIDAmbiguous},
		{"a text as the last resort", `{header.A ?? "no \"id\""}`, Message{}, `no "id"`, ""},

		{"a value of 512 bytes", "{header.A}", Message{Fields: fields("A: " + long)}, long, ""},
		{"a value of 513 bytes", "{header.A}", Message{Fields: fields("A: " + long + "x")}, "", CodeKeyTooLong},
		{"a long alternative stops the search", "{header.A ?? header.B}",
			Message{Fields: fields("A: "+long+"x", "B: 1")}, "", CodeKeyTooLong},
		{"a long value in the query", "{query.a}", Message{Query: []byte("a=" + strings.Repeat("%41", MaxValue+1))}, "",
			CodeKeyTooLong},
		{"a long value that decodes to a short one", "{query.a}",
			Message{Query: []byte("a=" + strings.Repeat("%41", MaxValue))}, strings.Repeat("A", MaxValue), ""},
		{"a long path variable", "{path.a}", Message{Vars: []PathVar{{"a", []byte(strings.Repeat("%41", MaxValue+1))}}},
			"", CodeKeyTooLong},
		{"many values that are long together", strings.Repeat("{header.A}", 5), Message{Fields: fields("A: " + long)},
			"", CodeKeyTooLong},

		{"control characters are shown escaped", "{query.a}", Message{Query: []byte("a=x%0D%0AY:%20z%7f%00")},
			"x%0D%0AY: z%7F%00", ""},
		{"a percent sign is shown escaped", "{query.a}", Message{Query: []byte("a=%250A")}, "%250A", ""},
		{"bytes that are no UTF-8 are shown escaped", "{query.a}", Message{Query: []byte("a=%ff%C3%A9")}, "%FFé", ""},
		{"C1 controls and marks that turn text are shown escaped", "{query.a}",
			Message{Query: []byte("a=\u0085\u061c\u202e\u2028\ufeff日本")}, "%C2%85%D8%9C%E2%80%AE%E2%80%A8%EF%BB%BF日本",
			""},
		{"a replacement character is one", "{query.a}", Message{Query: []byte("a=\ufffd")}, "\ufffd", ""},
	}
	for _, tt := range tests {
		t.Run(tt.sentence, func(t *testing.T) {
			k := mustKeys(t, KeySpec{Route: "r", Workflow: "w", EventID: tt.template, Missing: MissingReject})
			n, err := k.Name(&tt.m)
			if tt.code == "" {
				if err != nil || n.EventID != tt.want {
					t.Fatalf("event ID %q, %v; want %q", n.EventID, err, tt.want)
				}
				return
			}
			var bad *NameError
			if !errors.As(err, &bad) || bad.Code != tt.code || bad.Part != PartEventID || bad.Detail == "" {
				t.Fatalf("%q, %#v; want %s", n.EventID, err, tt.code)
			}
			if n.Key != "" || n.Workflow != "w" || n.Fingerprint == (idem.Fingerprint{}) {
				t.Fatalf("a refused delivery has workflow and fingerprint and no key: %+v", n)
			}
		})
	}
}

func TestSaysWhereTheEventIDCameFrom(t *testing.T) {
	k := mustKeys(t, KeySpec{Route: "r", Workflow: "w", EventID: "{header.X-A ?? header.X-B}-{method}"})
	n := mustName(t, k, &Message{Method: []byte("POST"), Fields: fields("x-b: 1")})
	if n.Source != "header.X-B,method" || n.EventID != "1-POST" || n.ByPayload || n.Missing {
		t.Fatalf("%+v", n)
	}
}

func TestRefusesAMissingWorkflowPart(t *testing.T) {
	k := mustKeys(t, KeySpec{Route: "r", Workflow: "a/{path.account}/{body.kind}", EventID: "{header.Id}"})
	_, err := k.Name(&Message{Fields: fields("Id: 1"), Vars: []PathVar{{"account", []byte("x")}},
		Body: []byte(`{"kind":{}}`)})
	var bad *NameError
	if !errors.As(err, &bad) || bad.Code != CodeWorkflowMissing || bad.Part != PartWorkflow ||
		bad.Source != "body.kind" {
		t.Fatalf("%#v", err)
	}
	if want := "workflow_missing: the workflow needs body.kind: it is absent, empty, or no single text, number or boolean"; bad.Error() != want {
		t.Fatalf("%q", bad.Error())
	}
}

func TestSaysAmbiguousWithOneCodeForBothParts(t *testing.T) {
	k := mustKeys(t, KeySpec{Route: "r", Workflow: "{header.W}", EventID: "{header.Id}"})
	_, err := k.Name(&Message{Fields: fields("W: 1", "W: 2")})
	var bad *NameError
	if !errors.As(err, &bad) || bad.Code != CodeEventIDAmbiguous || bad.Part != PartWorkflow ||
		bad.Source != "header.W" {
		t.Fatalf("%#v", err)
	}
	if strings.Contains(bad.Detail, "2") {
		t.Fatalf("the detail repeats what was sent: %q", bad.Detail)
	}
}

func TestTakesTheFingerprintWhereTheEventIDIsMissing(t *testing.T) {
	k := mustKeys(t, KeySpec{Route: "r", Workflow: "w", EventID: "{header.Id}"})
	m := &Message{Body: []byte("x")}
	n := mustName(t, k, m)
	if !n.ByPayload || n.Source != "fingerprint" || n.EventID != "" || n.Missing || n.Key == "" {
		t.Fatalf("%+v", n)
	}
	if again := mustName(t, k, m); !reflect.DeepEqual(again, n) {
		t.Fatalf("%+v, then %+v", n, again)
	}
	if other := mustName(t, k, &Message{Body: []byte("y")}); other.Key == n.Key {
		t.Fatal("two bodies share a key")
	}
	explicit := mustKeys(t, KeySpec{Route: "r", Workflow: "w", EventID: "{header.Id ?? fingerprint}"})
	if e := mustName(t, explicit, m); e.Key != n.Key || !e.ByPayload || len(e.EventID) != 32 {
		t.Fatalf("%+v, want the key %s", e, n.Key)
	}
	without := mustKeys(t, KeySpec{Route: "r", Workflow: "w"})
	if w := mustName(t, without, m); w.Key != n.Key {
		t.Fatalf("%+v, want the key %s", w, n.Key)
	}
}

func TestLetsADeliveryPassWithoutAKeyWhereTheRouteSaysSo(t *testing.T) {
	k := mustKeys(t, KeySpec{Route: "r", Workflow: "w", EventID: "{header.Id}", Missing: MissingPass})
	n := mustName(t, k, &Message{})
	if !n.Missing || n.Key != "" || n.Workflow != "w" || n.ByPayload {
		t.Fatalf("%+v", n)
	}
	if n := mustName(t, k, &Message{Fields: fields("Id: 1")}); n.Missing || n.Key == "" {
		t.Fatalf("%+v", n)
	}
}

func TestTellsARouteWithoutEventIDsWhatToDo(t *testing.T) {
	k := mustKeys(t, KeySpec{Route: "r", Workflow: "w", Missing: MissingReject})
	_, err := k.Name(&Message{})
	var bad *NameError
	if !errors.As(err, &bad) || bad.Code != CodeEventIDMissing || !strings.Contains(bad.Detail, "event_id") {
		t.Fatalf("%#v", err)
	}
}

func TestMakesKeysOfTheAgreedShape(t *testing.T) {
	shape := regexp.MustCompile(`^[0-9a-f]{16}-[0-9a-f]{32}$`)
	k := mustKeys(t, KeySpec{Route: "r", Workflow: "w", EventID: "{header.Id}"})
	n := mustName(t, k, &Message{Fields: fields("Id: 1")})
	random, err := idem.RandomKey(rand.Reader)
	if err != nil || !shape.MatchString(string(n.Key)) || !shape.MatchString(string(random)) {
		t.Fatalf("%s, %s, %v", n.Key, random, err)
	}
	// Records in etcd outlive a release: a key that changes makes every known event new.
	if want := idem.Key("b7b41276360564d4-f5928d6cfe64f131e244b85ce2b8b4b6"); n.Key != want {
		t.Fatalf("the key of route r, workflow w and header Id: 1 was %s and is %s", want, n.Key)
	}
}

func TestMakesRandomKeysThatDiffer(t *testing.T) {
	a, errA := idem.RandomKey(rand.Reader)
	b, errB := idem.RandomKey(rand.Reader)
	if errA != nil || errB != nil || a == b {
		t.Fatal(a, b, errA, errB)
	}
	if _, err := idem.RandomKey(iotest.ErrReader(errors.New("dry"))); err == nil {
		t.Fatal("no error without random bytes")
	}
}

func TestKeepsApartWhatDiffers(t *testing.T) {
	base := KeySpec{Route: "r", Workflow: "w/{header.A}", EventID: "{header.Id}"}
	m := func() *Message { return &Message{Fields: fields("A: 1", "Id: x", "Other: x", "B: 1")} }
	first := mustName(t, mustKeys(t, base), m()).Key
	for sentence, spec := range map[string]KeySpec{
		"another route":                    {Route: "r2", Workflow: base.Workflow, EventID: base.EventID},
		"another workflow":                 {Route: "r", Workflow: "v/{header.A}", EventID: base.EventID},
		"the same value by another source": {Route: "r", Workflow: base.Workflow, EventID: "{header.Other}"},
		"the same value in more parts":     {Route: "r", Workflow: base.Workflow, EventID: "{header.Id}{header.A}"},
		"the same value as a text":         {Route: "r", Workflow: base.Workflow, EventID: `{header.None ?? "x"}`},
		"a text around it":                 {Route: "r", Workflow: base.Workflow, EventID: "{header.Id}!"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if mustName(t, mustKeys(t, spec), m()).Key == first {
				t.Fatal("shares the key")
			}
		})
	}
	for sentence, spec := range map[string]KeySpec{
		"the header in another case": {Route: "r", Workflow: base.Workflow, EventID: "{header.iD}"},
		"spaces in the braces":       {Route: "r", Workflow: base.Workflow, EventID: "{ header.Id }"},
		"an alternative in front that is missing": {Route: "r", Workflow: base.Workflow,
			EventID: "{header.None ?? header.Id}"},
		"a workflow from another source": {Route: "r", Workflow: "w/{header.B}", EventID: base.EventID},
	} {
		t.Run(sentence+" keeps the key", func(t *testing.T) {
			if mustName(t, mustKeys(t, spec), m()).Key != first {
				t.Fatal("has another key")
			}
		})
	}
}

func TestKeepsApartPartsThatMeetElsewhere(t *testing.T) {
	k := mustKeys(t, KeySpec{Route: "r", Workflow: "{header.A}{header.B}", EventID: "{header.C}{header.D}"})
	names := func(a, b, c, d string) Names {
		return mustName(t, k, &Message{Fields: fields("A: "+a, "B: "+b, "C: "+c, "D: "+d)})
	}
	x, y, z := names("a", "bc", "x", "y"), names("ab", "c", "x", "y"), names("a", "bc", "xy", "y")
	if x.Workflow != y.Workflow || x.Key == y.Key || x.Key == z.Key {
		t.Fatalf("%+v\n%+v\n%+v", x, y, z)
	}
}

func TestNamesAPooledMessageAsANewOne(t *testing.T) {
	k := mustKeys(t, KeySpec{Route: "r", Workflow: "{path.a}", EventID: "{body.id ?? query.id}"})
	pooled := new(Message)
	for _, m := range []Message{
		{Vars: []PathVar{{"a", []byte("x%20y")}}, Body: []byte(`{"id":"\u0061"}`)},
		{Vars: []PathVar{{"a", []byte("x")}}, Query: []byte("id=%41")},
		{Vars: []PathVar{{"a", []byte("x")}}, Body: []byte(`{"id":"` + strings.Repeat(`\n`, 500) + `"}`),
			Target: bytes.Repeat([]byte("/"), maxScratch+1), Path: bytes.Repeat([]byte("/"), maxScratch+1)},
		{Vars: []PathVar{{"a", []byte("z")}}, Body: []byte(`{"ID":1}`)},
	} {
		want := mustName(t, k, &m)
		pooled.Reset()
		pooled.Vars = append(pooled.Vars, m.Vars...)
		pooled.Query, pooled.Path, pooled.Body = m.Query, m.Path, m.Body
		if got := mustName(t, k, pooled); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, a new one %+v", got, want)
		}
	}
	pooled.Reset()
	if len(pooled.Vars) != 0 || cap(pooled.Vars) == 0 || pooled.Body != nil || pooled.scratch.body.scan.text != nil ||
		cap(pooled.scratch.line) > maxScratch {
		t.Fatalf("%+v", pooled)
	}
}

func TestNamesADeliveryWithAtMostFourAllocations(t *testing.T) {
	k := mustKeys(t, KeySpec{Route: "stripe", Workflow: "stripe/{path.account}/{body.data.object.customer}",
		EventID: "{header.Idempotency-Key ?? body.id}"})
	m := deliveryOf(16 << 10)
	if n := testing.AllocsPerRun(100, func() { mustName(t, k, m) }); n > 4 {
		t.Fatalf("%v allocations", n)
	}
}

func TestRefusesKeysWithoutSense(t *testing.T) {
	for sentence, tt := range map[string]struct {
		spec KeySpec
		want string
	}{
		"no workflow":      {KeySpec{EventID: "{body.id}"}, "workflow: column 1: the template is empty"},
		"a wrong event ID": {KeySpec{Workflow: "w", EventID: "{body}"}, "event_id: column 2: body needs a member"},
		"one ID for all": {KeySpec{Workflow: "w", EventID: "{route}-{method}"},
			"event_id: reads nothing of the delivery"},
		"a text for all": {KeySpec{Workflow: "w", EventID: "event"}, "event_id: reads nothing of the delivery"},
		"an unknown policy": {KeySpec{Workflow: "w", EventID: "{body.id}", Missing: "skip"},
			`on_missing_event_id: unknown policy "skip"`},
		"a misspelled section": {KeySpec{Workflow: "{headers.A}"}, `did you mean "header.A"?`},
	} {
		t.Run(sentence, func(t *testing.T) {
			if _, err := NewKeys(tt.spec); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("%v, want %q", err, tt.want)
			}
		})
	}
}

// So a search by what the sender calls an event needs no index: test/e2e does it.
func TestAnEventOfAnyRouteAndWorkflowIsFoundByTheFirstHalfOfItsKey(t *testing.T) {
	seen := map[idem.Key]bool{}
	for _, spec := range []KeySpec{
		{Route: "a", Workflow: "w", EventID: "{header.Id}"}, {Route: "b", Workflow: "w", EventID: "{header.Id}"},
		{Route: "a", Workflow: "v", EventID: "{header.Other ?? header.Id}"},
	} {
		n := mustName(t, mustKeys(t, spec), &Message{Fields: fields("Id: evt_123")})
		if half := idem.MakeKey(idem.HashEventID(n.EventID), [16]byte{}).Short(); n.Key.Short() != half || seen[n.Key] {
			t.Errorf("%s of %q begins with another half than %s, or is not its own", n.Key, n.EventID, half)
		}
		seen[n.Key] = true
	}
}
