package naming

import (
	"strings"
	"testing"
)

func TestWhatHasNoValueSaysWhy(t *testing.T) {
	k := mustKeys(t, KeySpec{Route: "r", Workflow: `w/{xml.a.team ?? body.team ?? "other"}`,
		EventID: "{xml.a.id ?? header.Id}"})
	declared := func(encoding, id string) string {
		return "<?xml version='1.0' encoding='" + encoding + "'?><a><team>T</team>" + id + "</a>"
	}
	for _, tt := range []struct{ body, source, want string }{
		{declared("klingon", "<id>1</id>"), "xml.a.id", "declares an encoding that Hooklock does not know"},
		{declared("utf-16", "<id>1</id>"), "xml.a.id", "not in the encoding that it declares"},
		{declared("windows-1252", "<id>\x81</id>"), "xml.a.id", "not in the encoding that it declares"},
		{"<!DOCTYPE a><a><id>1</id></a>", "xml.a.id", "document type"},
		{"<a><id>1</id>", "xml.a.id", "ends too early"},
		{"<a/><b/>", "xml.a.id", "no single root element"},
		{"x<a/>", "xml.a.id", "text outside"},
		{strings.Repeat("<a>", maxDepth+1), "xml.a.id", "nested deeper"},
		{"<a><id>1</id><id>2</id></a>", "xml.a.id", "more than once"},
		{"<a><id>1<!-- --></id></a>", "xml.a.id", "a comment"},
		{"<a><id><b>1</b></id></a>", "xml.a.id", "has elements"},
		{"<a><id>" + strings.Repeat("x", MaxValue+1) + "</id></a>", "xml.a.id", "longer than 512 bytes"},
		{"<a><ID>1</ID></a>", "xml.a.id", "no such element"},
		{`{"team":[]}`, "xml.a.id", "it is not XML"},
		{`{"team":[]}`, "body.team", "no single text"},
		{"<a/>", "body.team", "the body is not JSON"},
		{"", "body.team", "the body is empty"},
		{"<a/>", "header.Id", "absent or empty"},
	} {
		var why string
		for _, u := range k.Unread(&Message{Body: []byte(tt.body)}) {
			if u.Source == tt.source {
				why += u.Why
			}
		}
		if !strings.Contains(why, tt.want) {
			t.Errorf("%s of %.60q: %q", tt.source, tt.body, why)
		}
	}
	if all := k.Unread(&Message{Body: []byte(declared("iso-8859-1", "<id>1</id>"))}); all != nil {
		t.Errorf("each has a value: %v", all)
	}
}
