package sender

import (
	"errors"
	"testing"

	"hooklock/idem/naming"
)

func TestAnExtractedIDReachesTheKey(t *testing.T) {
	p, _ := Lookup("cloudevents")
	keys, err := naming.NewKeys(naming.KeySpec{Route: "r", Workflow: "w", Extract: p.Extractor(),
		Missing: naming.MissingReject})
	if err != nil {
		t.Fatal(err)
	}
	name := func(body string, fields ...naming.Field) (naming.Names, string) {
		names, err := keys.Name(&naming.Message{Method: []byte("POST"), Target: []byte("/"), Path: []byte("/"),
			Body: []byte(body), Fields: fields})
		if bad, ok := errors.AsType[*naming.NameError](err); ok {
			return names, bad.Code
		}
		return names, ""
	}
	binary, _ := name("{}", field("ce-source", "/a%20b"), field("ce-id", "1"))
	structured, _ := name(`{"source":"/a b","id":"1"}`, field("Content-Type", "Application/CloudEvents+json"))
	if binary.Key == "" || binary.Key != structured.Key || binary.EventID != "/a b/1" ||
		binary.Source != "cloudevents" {
		t.Errorf("binary %+v, structured %+v", binary, structured)
	}
	if other, _ := name("{}", field("ce-source", "/a b/1"), field("ce-id", "1")); other.Key == binary.Key {
		t.Error("two events, one key")
	}
	if _, code := name("{}", field("ce-source", "/a"), field("ce-id", "1"),
		field("ce-id", "2")); code != naming.CodeEventIDAmbiguous {
		t.Errorf("an ID given twice is %q", code)
	}
	if _, code := name("{}", field("ce-source", "/a")); code != naming.CodeEventIDMissing {
		t.Errorf("no ID is %q", code)
	}
	if stripe, _ := Lookup("stripe"); stripe.Extractor() != nil {
		t.Error("a preset with a template has an extractor, too")
	}
}
