package sender

import (
	"runtime"
	"strings"
	"testing"

	"hooklock/idem/naming"
)

// hostileBody is a body that is made to take much memory when it is parsed.
type hostileBody struct{ parser, name, kind, text string }

// hostileBodies returns bodies of 8 MiB, the default of limits.request_body, for each parser.
func hostileBodies() []hostileBody {
	const size = 8 << 20
	var all []hostileBody
	add := func(parser, name, begin, each, end string) {
		kind := map[string]string{"JSON": "application/json", "form": "application/x-www-form-urlencoded",
			"multipart": "multipart/form-data; boundary=b", "XML": "text/xml"}[parser]
		all = append(all, hostileBody{parser, name, kind,
			begin + strings.Repeat(each, (size-len(begin)-len(end))/len(each)) + end})
	}
	const handshakes = `"type":"url_verification","event":"endpoint.url_validation","Type":"SubscriptionConfirmation","payload":{"plainToken":"x"},"words":["app_rate_limited","UnsubscribeConfirmation"],`
	add("JSON", "an array of numbers", `[`, `0,`, `0]`)
	add("JSON", "an array of objects", `[`, `{},`, `{}]`)
	add("JSON", "an object with a long member", `{`+handshakes+`"challenge":"","events":[`, `0,`, `0]}`)
	add("JSON", "a member over and over", `{"event":"x","payload":{`, `"download_token":0,`, `"a":0}}`)
	add("JSON", "a long string", `{"a":"`, `b`, `"}`)
	add("JSON", "a long string of escapes", `{"a":"`, `\u0041`, `"}`)
	add("JSON", "a long handshake", `{`+handshakes+`"challenge":"`, `\u0041`, `"}`)
	add("JSON", "a batch of events", `[`, `{"id":"1","eventId":1},`, `{}]`)
	add("JSON", "a batch of long events", `[`, `{"id":"`+strings.Repeat("b", 1<<20)+`","data":{"validationCode":""}},`,
		`0]`)
	add("form", "many parameters", "", "a&", "")
	add("form", "a long value", "a=", "%41", "")
	add("form", "long JSON", "payload=%7B%22a%22%3A%22", "%41", "%22%7D")
	add("multipart", "many parts", "", "--b\r\n\r\n\r\n", "--b--")
	add("multipart", "a long part", "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n", "x", "\r\n--b--")
	add("multipart", "a part with a long head", "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n", "a:b\r\n",
		"\r\n\r\n\r\n--b--")
	add("XML", "elements that only open", "", "<a>", "")
	add("XML", "many attributes", "<a ", `b="" `, "/>")
	add("XML", "many elements", "<a>", "<b/>", "</a>")
	add("XML", "long text", "<a>", "b", "</a>")
	add("XML", "many organisations", "<Envelope><Body><notifications>", "<OrganizationId>1</OrganizationId>",
		"</notifications></Body></Envelope>")
	add("XML", "many notifications", "<Envelope><Body><notifications><OrganizationId>1</OrganizationId>",
		"<Notification><Id>1</Id></Notification>", "</notifications></Body></Envelope>")
	return all
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// eachReader calls f with each reader of bodies: every preset with its handshake, signature and
// event ID, and every source of a template.
func eachReader(tb testing.TB, f func(reader string, read func(b hostileBody))) {
	for _, p := range Presets() {
		c, secret := credentials(tb, p.Name)
		v, sample := mustNew(tb, c), mustSample(tb, p.Name, secret)
		f("preset "+p.Name, func(b hostileBody) {
			d := *with(sample, "Content-Type", b.kind)
			d.Body = []byte(b.text)
			p.Handshake(&d)
			_ = v.Verify(&d, testNow())
			if p.ExtractID != nil {
				p.ExtractID(&d)
			}
			if p.Facts.UsesAnswer != nil {
				p.Facts.UsesAnswer(&d)
			}
		})
	}
	for _, source := range []string{"body.a", "body.challenge", "form.a", "form.payload.a", "xml.a",
		"xml.Envelope.Body.notifications.Notification[5].Id", "body_sha256"} {
		l, err := naming.CompileLookup(source)
		if err != nil {
			tb.Fatal(err)
		}
		f("template {"+source+"}", func(b hostileBody) {
			l.Read(&naming.Message{Fields: []naming.Field{{Name: []byte("Content-Type"), Value: []byte(b.kind)}},
				Body: []byte(b.text)})
		})
	}
}

// Bodies are parsed before their signature is checked, and limits.memory counts only their text.
func TestNoBodyTakesManyTimesItsSize(t *testing.T) {
	bodies := hostileBodies()
	eachReader(t, func(reader string, read func(hostileBody)) {
		for _, b := range bodies {
			text := uint64(len(b.text)) // which read copies
			if took := allocated(func() { read(b) }) - text; took > 5*text {
				t.Errorf("%s: %s, %s takes %.1f bytes for each of its own", reader, b.parser, b.name,
					float64(took)/float64(text))
			}
		}
	})
}

// BenchmarkMemoryOfABody measures how many bytes the parsing of an 8 MiB body allocates, for each
// byte of the body: the most that any form of body takes in any preset. docs/threat-model.md has
// its figures.
func BenchmarkMemoryOfABody(b *testing.B) {
	bodies := hostileBodies()
	for _, parser := range []string{"JSON", "form", "multipart", "XML"} {
		for _, kind := range []string{"template", "preset"} {
			b.Run(parser+"/"+kind, func(b *testing.B) {
				most, worst := 0.0, ""
				for b.Loop() {
					eachReader(b, func(reader string, read func(hostileBody)) {
						for _, body := range bodies {
							if body.parser != parser || !strings.HasPrefix(reader, kind) {
								continue
							}
							text := uint64(len(body.text))
							if took := float64(allocated(func() { read(body) })-text) / float64(text); took > most {
								most, worst = took, reader+", "+body.name
							}
						}
					})
				}
				b.ReportMetric(most, "B/B")
				b.Log(worst)
			})
		}
	}
}

// A batch is parsed event by event, with a limit for the size of an event and for their number.
func TestABatchHasAnIDUpToAMaximumOfEvents(t *testing.T) {
	event := func(id, data string) string {
		return `{"specversion":"1.0","source":"/a","id":"` + id + `","data":` + data + `}`
	}
	large := "[" + strings.Repeat("0,", maxValues-10) + "0]"
	p, _ := Lookup("cloudevents")
	for name, c := range map[string]struct {
		kind, body string
		want       IDStatus
	}{
		"as many events as there may be": {"-batch", "[" + event("0", "1") + strings.Repeat(","+event("1", `"[{\",]}"`),
			maxElements-1) + "]", IDFound},
		"one more": {"-batch", "[" + event("0", "1") + strings.Repeat(","+event("1", `"[{\",]}"`),
			maxElements) + "]", IDMissing},
		"large events": {"-batch", " [ " + event("1", large) + " , " + event("2", large) + " ]\n",
			IDFound},
		"one that is too large": {"-batch", "[" + event("1", large) + "," +
			event("2", large+`,"more":`+large) + "]", IDMissing},
		"no event":                      {"-batch", "[ ]", IDMissing},
		"a comma too many":              {"-batch", "[" + event("1", "1") + ",]", IDMissing},
		"a bracket too few":             {"-batch", "[" + event("1", "1"), IDMissing},
		"the wrong bracket":             {"-batch", "[" + event("1", "1") + "}", IDMissing},
		"a bracket too many":            {"-batch", "[" + event("1", "1") + "]]", IDMissing},
		"something behind it":           {"-batch", "[" + event("1", "1") + "],1", IDMissing},
		"an event without ID":           {"-batch", "[" + event("1", "1") + ",{}]", IDMissing},
		"a single event, however large": {"", event("1", large+`,"more":`+large), IDFound},
		"a single event with two IDs":   {"", event("1", `1,"id":"1"`), IDAmbiguous},
	} {
		d := with(&Delivery{Body: []byte(c.body)}, "Content-Type", "application/cloudevents"+c.kind+"+json")
		if id := p.ExtractID(d); id.Status != c.want {
			t.Errorf("%s: %+v", name, id)
		}
	}
}

// An ID after too much white space is missing, and never truncated.
func TestASalesforceIDWithTooMuchWhiteSpaceIsMissing(t *testing.T) {
	p, _ := Lookup("salesforce")
	for n, want := range map[int]IDStatus{0: IDFound, 4000: IDFound, 4094: IDMissing, 5000: IDMissing} {
		d := mustSample(t, "salesforce", nil)
		d.Body = []byte(strings.Replace(string(d.Body), "<Notification><Id>",
			"<Notification><Id>"+strings.Repeat(" ", n), 1))
		if id := p.ExtractID(d); id.Status != want {
			t.Errorf("%d: %+v", n, id)
		}
	}
}
