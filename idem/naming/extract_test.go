package naming

import (
	"errors"
	"strings"
	"testing"

	"hooklock/idem"
)

func extracting(t *testing.T, missing MissingEventID, e Extractor) (Names, error) {
	t.Helper()
	k, err := NewKeys(KeySpec{Route: "r", Workflow: "w", Extract: e, Missing: missing})
	if err != nil {
		t.Fatal(err)
	}
	return k.Name(&Message{Method: []byte("POST"), Target: []byte("/"), Path: []byte("/"), Body: []byte("b")})
}

func giving(source string, values ...string) Extractor {
	return func(*Message) Extracted { return Extracted{Values: values, Source: source} }
}

func TestAnExtractedIDIsBoundByTheRulesOfTemplates(t *testing.T) {
	for _, c := range []struct {
		name      string
		missing   MissingEventID
		extract   Extractor
		code      string
		byPayload bool
	}{
		{"given twice", MissingPayload, func(*Message) Extracted {
			return Extracted{Ambiguous: true}
		}, CodeEventIDAmbiguous, false},
		{"too long", MissingPayload, giving("s", strings.Repeat("x", MaxValue+1)), CodeKeyTooLong, false},
		{"too long as a whole", MissingPayload, giving("s", slicesOf("x", MaxValue, 5)...), CodeKeyTooLong, false},
		{"none, payload", MissingPayload, giving("s"), "", true},
		{"an empty value, payload", MissingPayload, giving("s", "a", ""), "", true},
		{"none, reject", MissingReject, giving("s"), CodeEventIDMissing, false},
		{"found", MissingReject, giving("s", "a", "b"), "", false},
	} {
		names, err := extracting(t, c.missing, c.extract)
		code := ""
		if bad, ok := errors.AsType[*NameError](err); ok {
			code = bad.Code
		}
		if code != c.code || names.ByPayload != c.byPayload {
			t.Errorf("%s: code %q, by payload %v", c.name, code, names.ByPayload)
		}
	}
	if names, err := extracting(t, MissingPass, giving("s")); err != nil || !names.Missing {
		t.Error("on_missing_event_id: pass does not let it pass")
	}
}

func slicesOf(text string, length, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.Repeat(text, length)
	}
	return all
}

func TestExtractedValuesAreNeverJoined(t *testing.T) {
	key := func(e Extractor) idem.Key {
		names, err := extracting(t, MissingReject, e)
		if err != nil {
			t.Fatal(err)
		}
		return names.Key
	}
	same := key(giving("s", "a", "b"))
	if key(giving("s", "a", "b")) != same {
		t.Error("one ID, two keys")
	}
	for name, other := range map[string]Extractor{
		"other border": giving("s", "ab"), "with the separator": giving("s", "a/b"),
		"other source": giving("t", "a", "b"), "other order": giving("s", "b", "a"),
	} {
		if key(other) == same {
			t.Errorf("%s: two IDs, one key", name)
		}
	}
	names, _ := extracting(t, MissingReject, giving("sns", "a\n", "b"))
	if names.EventID != "a%0A/b" || names.Source != "sns" {
		t.Errorf("printed as %q from %q", names.EventID, names.Source)
	}
}

func TestAnExtractorAndATemplateExcludeEachOther(t *testing.T) {
	if _, err := NewKeys(KeySpec{Workflow: "w", EventID: "{body.id}", Extract: giving("s", "a")}); err == nil {
		t.Error("both were accepted")
	}
}
