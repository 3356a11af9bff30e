package naming

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func lookedUp(t testing.TB, source string, m *Message) (string, Reading) {
	t.Helper()
	l, err := CompileLookup(source)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	value, r := l.Read(m)
	return string(value), r
}

func TestASourceAloneIsReadAsInATemplate(t *testing.T) {
	m := &Message{
		Method: []byte("POST"), Query: []byte("sig=a%2Bb"),
		Body:   []byte(`{"a":{"b":"` + strings.Repeat("x", 3000) + `"},"n":null}`),
		Fields: []Field{{[]byte("X-One"), []byte("1")}, {[]byte("X-Two"), []byte("1")}, {[]byte("x-two"), []byte("2")}},
	}
	for source, want := range map[string]struct {
		value string
		r     Reading
	}{
		"header.X-One": {"1", ReadFound}, "header.X-Two": {"", ReadAmbiguous}, "header.None": {"", ReadMissing},
		"query.sig": {"a+b", ReadFound},
		"body.a.b":  {strings.Repeat("x", 3000), ReadFound}, "body.n": {"", ReadMissing}, "method": {"POST", ReadFound},
	} {
		if got, r := lookedUp(t, source, m); got != want.value || r != want.r {
			t.Errorf("%s: %.20q %v", source, got, r)
		}
	}
	for _, bad := range []string{"", "{body.id}", "body.id ", "header", "headr.X", `body.id ?? "x"`} {
		if _, err := CompileLookup(bad); err == nil {
			t.Errorf("%q is taken for a source", bad)
		}
	}
}

// What is signed, compared or echoed may be as long as the body: a form of Mandrill has ten events
// in one parameter.
func TestASourceAloneMayBeAsLongAsTheDelivery(t *testing.T) {
	long := strings.Repeat(`"é<&+`, 2000)
	form, text := url.QueryEscape(long), strings.Repeat("é ", 3000)+"x"
	quoted, _ := json.Marshal(long)
	var escaped bytes.Buffer
	_ = xml.EscapeText(&escaped, []byte(text))
	typed := []Field{{[]byte("Content-Type"), []byte("application/x-www-form-urlencoded")}}
	for source, c := range map[string]struct {
		m    *Message
		want string
	}{
		"form.events": {&Message{Fields: typed, Body: []byte("a=1&events=" + form)}, long},
		"form.payload.a": {&Message{Fields: typed,
			Body: []byte("payload=" + url.QueryEscape(`{"a":`+string(quoted)+`}`))}, long},
		"query.events":    {&Message{Query: []byte("events=" + form)}, long},
		"body.events":     {&Message{Body: []byte(`{"events":` + string(quoted) + `}`)}, long},
		"xml.root.events": {&Message{Body: []byte("<root><events>" + escaped.String() + "</events></root>")}, text},
	} {
		if got, r := lookedUp(t, source, c.m); got != c.want || r != ReadFound {
			t.Errorf("%s: %d bytes, %v; want %d bytes", source, len(got), r, len(c.want))
		}
		keys := mustKeys(t, KeySpec{Route: "r", Workflow: "{" + source + "}", EventID: "{header.X}",
			Missing: MissingPayload})
		if _, err := keys.Name(c.m); err == nil || !strings.Contains(err.Error(), "longer than") {
			t.Errorf("{%s} as a name: %v", source, err)
		}
		if got, _ := lookedUp(t, source, c.m); got != c.want {
			t.Errorf("%s, after the delivery was named: %d bytes", source, len(got))
		}
	}
}

func TestAPartOfAHeaderIsReadByItsName(t *testing.T) {
	for _, tt := range []struct {
		header, source, want string
		r                    Reading
	}{
		{"t=1,v1=aa==, v1=b", "header.S[t]", "1", ReadFound},
		{"ts=1;h1=a", "header.S[h1]", "a", ReadFound},
		{`keyId="k", signature="a=b"`, "header.S[signature]", "a=b", ReadFound},
		{"t=1,v1=a,v1=b", "header.S[v1]", "", ReadAmbiguous},
		{"t=1,v1=a", "header.S[v0]", "", ReadMissing},
		{"t=,v1=a", "header.S[t]", "", ReadMissing},
		{"abc", "header.S[]", "abc", ReadFound},
		{"abc, def", "header.S[]", "", ReadAmbiguous},
		{"T=1", "header.S[t]", "", ReadMissing},
	} {
		if got, r := lookedUp(t, tt.source,
			&Message{Fields: []Field{{[]byte("S"), []byte(tt.header)}}}); got != tt.want || r != tt.r {
			t.Errorf("%s of %q: %q %v", tt.source, tt.header, got, r)
		}
	}
	for _, bad := range []string{"header.S[", "header.S[t", "header.S[t]x"} {
		if _, err := CompileLookup(bad); err == nil {
			t.Errorf("%q is taken for a source", bad)
		}
	}
}

func TestJSONInAFormIsRead(t *testing.T) {
	form := func(body string) *Message {
		return &Message{Fields: []Field{{[]byte("Content-Type"), []byte("application/x-www-form-urlencoded")}},
			Body: []byte(body)}
	}
	const team = "payload=%7B%22team%22%3A%7B%22id%22%3A%22T1%22%7D%2C%22a%22%3A%5B%7B%22b%22%3A2%7D%5D%7D"
	for _, tt := range []struct {
		body, source, want string
		r                  Reading
	}{
		{team, "form.payload.team.id", "T1", ReadFound},
		{"\ufeff" + team, "form.payload.team.id", "T1", ReadFound},
		{"\ufeffid=1", "form.id", "1", ReadFound},
		{team, `form["payload"].team.id`, "T1", ReadFound},
		{team, "form.payload.a[0].b", "2", ReadFound},
		{team + "&x=1", "form.payload.team.none", "", ReadMissing},
		// what the name meant before there was JSON
		{team + "&payload.team.id=T2", "form.payload.team.id", "T2", ReadFound},
		{team + "&payload.team.id=T2", `form["payload"].team.id`, "T1", ReadFound},
		{team + "&" + team, "form.payload.team.id", "", ReadAmbiguous},
		{"payload=%7B%22team%22%3A%7B%22id%22%3A1%2C%22id%22%3A2%7D%7D", "form.payload.team.id", "", ReadAmbiguous},
		{"payload=nojson", "form.payload.team.id", "", ReadMissing},
		{"payload=%zz", "form.payload.team.id", "", ReadMissing},
		{"items[0]=a", "form.items[0]", "a", ReadFound},
		{"a..b=a", "form.a..b", "a", ReadFound},
		{"payload=" + strings.Repeat("1", maxFormJSON+1), "form.payload.x", "", ReadTooLong},
	} {
		if got, r := lookedUp(t, tt.source, form(tt.body)); got != tt.want || r != tt.r {
			t.Errorf("%s of %.80q: %q %v", tt.source, tt.body, got, r)
		}
	}
}

func TestAnElementOfXMLIsRead(t *testing.T) {
	const soap = `<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body>` +
		`<notifications xmlns="http://soap.sforce.com/2005/09/outbound"><OrganizationId>00D</OrganizationId><Notification><Id>04l1</Id></Notification>` +
		`<Notification><Id>04l2</Id></Notification></notifications></soapenv:Body></soapenv:Envelope>` + "\n"
	for _, tt := range []struct {
		body, source, want string
		r                  Reading
	}{
		{soap, "xml.Envelope.Body.notifications.OrganizationId", "00D", ReadFound},
		{soap, "xml.Envelope.Body.notifications.Notification[0].Id", "04l1", ReadFound},
		{soap, "xml.Envelope.Body.notifications.Notification[1].Id", "04l2", ReadFound},
		{soap, "xml.Envelope.Body.notifications.Notification.Id", "", ReadAmbiguous},
		{soap, "xml.Envelope.Body.notifications.Notification[2].Id", "", ReadMissing},
		{soap, "xml.Envelope.Body.notifications", "", ReadMissing},
		{soap, "xml.Envelope.notifications", "", ReadMissing},
		{soap + "x", "xml.Envelope.Body.notifications.OrganizationId", "", ReadMissing},
		{"<a><id> x&amp;<![CDATA[y]]> </id></a>", "xml.a.id", "x&y", ReadFound},
		{"\ufeff<a><id>x</id></a>", "xml.a.id", "x", ReadFound},
		{"<a><b/><id>x</id><c><id>y</id></c></a>", "xml.a.id", "x", ReadFound},
		{"<a><id>x</id><id>y</id></a>", "xml.a.id", "", ReadAmbiguous},
		{"<a><id>x<!-- y --></id></a>", "xml.a.id", "", ReadAmbiguous},
		{"<a><id>x<?y z?></id></a>", "xml.a.id", "", ReadAmbiguous},
		{"<a><id><b>x</b></id></a>", "xml.a.id", "", ReadMissing},
		{"<a><id></id></a>", "xml.a.id", "", ReadMissing},
		{`<!DOCTYPE a [<!ENTITY e "x">]><a><id>y</id></a>`, "xml.a.id", "", ReadMissing},
		{"<a><id>&e;</id></a>", "xml.a.id", "", ReadMissing},
		{"<a><id>x</id></a><a></a>", "xml.a.id", "", ReadMissing},
		{"<a><id>x</id>", "xml.a.id", "", ReadMissing},
		{`{"a":{"id":"x"}}`, "xml.a.id", "", ReadMissing},
		{`<?xml version="1.0" encoding="utf-16"?><a><id>x</id></a>`, "xml.a.id", "", ReadMissing},
		{"<a><id>" + strings.Repeat("x", 9*MaxValue) + "</id></a>", "xml.a.id", strings.Repeat("x", 9*MaxValue),
			ReadFound},
		{strings.Repeat("<a>", 301) + strings.Repeat("</a>", 301), "xml.a.id", "", ReadMissing},
		{"", "xml.a.id", "", ReadMissing},
	} {
		if got, r := lookedUp(t, tt.source, &Message{Body: []byte(tt.body)}); got != tt.want || r != tt.r {
			t.Errorf("%s of %.80q: %q %v", tt.source, tt.body, got, r)
		}
	}
	for _, bad := range []string{"xml", "xml[0]", "xml.s:a", "xml.a[0][1]", "xml.a[x]"} {
		if _, err := CompileLookup(bad); err == nil {
			t.Errorf("%q is taken for a source", bad)
		}
	}
}

func TestNewSourcesNameEvents(t *testing.T) {
	k := mustKeys(t, KeySpec{Route: "r", Workflow: `w/{form.payload.team.id ?? xml.a.team ?? "other"}`,
		EventID: "{xml.a.id}", Missing: MissingReject})
	n, err := k.Name(&Message{Body: []byte("<a><id>1</id><team>T</team></a>")})
	if err != nil || n.EventID != "1" || n.Workflow != "w/T" {
		t.Fatalf("%+v %v", n, err)
	}
}

// FuzzXMLBody holds the walk against encoding/xml's own reading of a document into a struct.
func FuzzXMLBody(f *testing.F) {
	for _, s := range []string{"<a><id>x</id></a>", "<a><b><id>1</id></b><id> 2 </id></a>",
		"<s:a xmlns:s='u'><s:id>x</s:id></s:a>", "<a><id/><id/></a>", "<!DOCTYPE a><a/>", "<a>&lt;</a>"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		got, r := lookedUp(t, "xml.a.id", &Message{Body: body})
		if !bytes.Equal(before, body) {
			t.Fatal("the body was changed")
		}
		if r != ReadFound {
			return
		}
		var doc struct {
			XMLName xml.Name
			IDs     []string `xml:"id"`
		}
		begin, rest := xmlInput(&Message{Body: body})
		d := xml.NewDecoder(begin)
		d.CharsetReader = rest
		if err := d.Decode(&doc); err != nil || doc.XMLName.Local != "a" || len(doc.IDs) != 1 ||
			strings.TrimSpace(doc.IDs[0]) != got {
			t.Fatalf("%q: %q, encoding/xml says %q %v", body, got, doc.IDs, err)
		}
	})
}

// FuzzHeaderParts: no header makes the parts panic, and what one part has was in the header.
func FuzzHeaderParts(f *testing.F) {
	f.Add([]byte("t=1, v1=aa==;v1=b"), "v1")
	f.Add([]byte(`a="b" c`), "")
	f.Fuzz(func(t *testing.T, header []byte, name string) {
		values := slices.Collect(HeaderParts(header, name))
		if v, r := onePart(header, name); (r == found) != (len(values) == 1) ||
			r == found && !bytes.Equal(v, values[0]) {
			t.Fatalf("%q: %q %v, all are %q", header, v, r, values)
		}
		for _, v := range values {
			if !bytes.Contains(header, v) {
				t.Fatalf("%q is not in %q", v, header)
			}
		}
	})
}
