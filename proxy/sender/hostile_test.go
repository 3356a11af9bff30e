package sender

import (
	"runtime"
	"strings"
	"testing"
)

// Bodies are parsed before their signature is checked, and limits.memory counts only their text.
func TestNoBodyTakesManyTimesItsSize(t *testing.T) {
	const size = 1 << 20
	filled := func(begin, each, end string) string {
		return begin + strings.Repeat(each, (size-len(begin)-len(end))/len(each)) + end
	}
	const handshakes = `"type":"url_verification","event":"endpoint.url_validation","challenge":"","Type":"SubscriptionConfirmation","words":["app_rate_limited","UnsubscribeConfirmation"]`
	bodies := map[string]string{
		"an array of numbers":          filled(`[`, `0,`, `0]`),
		"an array of objects":          filled(`[`, `{},`, `{}]`),
		"an object with a long member": filled(`{`+handshakes+`,"events":[`, `0,`, `0]}`),
		"a member over and over":       filled(`{"event":"x","payload":{`, `"download_token":0,`, `"a":0}}`),
		"a form":                       filled("", "a&", ""),
		"a form of many parts":         filled("", "--b\r\n\r\n\r\n", "--b--"),
		"XML that only opens":          filled("", "<a>", ""),
		"XML with many organisations": filled("<Envelope><Body><notifications>", "<OrganizationId>1</OrganizationId>",
			"</notifications></Body></Envelope>"),
	}
	const most = 64 << 20 // as 10,000 parts of a form take, each with its head
	types := map[string]string{"a form": "application/x-www-form-urlencoded", "a form of many parts": "multipart/form-data; boundary=b"}
	for _, p := range Presets() {
		c, secret := credentials(t, p.Name)
		v, sample := mustNew(t, c), mustSample(t, p.Name, secret)
		for name, body := range bodies {
			d := *sample
			if kind := types[name]; kind != "" {
				d = *with(sample, "Content-Type", kind)
			}
			d.Body = []byte(body)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p.Handshake(&d)
			_ = v.Verify(&d, testNow())
			if p.ExtractID != nil {
				p.ExtractID(&d)
			}
			if p.Facts.UsesAnswer != nil {
				p.Facts.UsesAnswer(&d)
			}
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > most {
				t.Errorf("%s: %s takes %d MiB", p.Name, name, took>>20)
			}
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
		"as many events as there may be": {"-batch", "[" + event("0", "1") + strings.Repeat(","+event("1", `"[{\",]}"`), maxElements-1) + "]", IDFound},
		"one more":                       {"-batch", "[" + event("0", "1") + strings.Repeat(","+event("1", `"[{\",]}"`), maxElements) + "]", IDMissing},
		"large events":                   {"-batch", " [ " + event("1", large) + " , " + event("2", large) + " ]\n", IDFound},
		"one that is too large":          {"-batch", "[" + event("1", large) + "," + event("2", large+`,"more":`+large) + "]", IDMissing},
		"no event":                       {"-batch", "[ ]", IDMissing},
		"a comma too many":               {"-batch", "[" + event("1", "1") + ",]", IDMissing},
		"a bracket too few":              {"-batch", "[" + event("1", "1"), IDMissing},
		"the wrong bracket":              {"-batch", "[" + event("1", "1") + "}", IDMissing},
		"a bracket too many":             {"-batch", "[" + event("1", "1") + "]]", IDMissing},
		"something behind it":            {"-batch", "[" + event("1", "1") + "],1", IDMissing},
		"an event without ID":            {"-batch", "[" + event("1", "1") + ",{}]", IDMissing},
		"a single event, however large":  {"", event("1", large+`,"more":`+large), IDFound},
		"a single event with two IDs":    {"", event("1", `1,"id":"1"`), IDAmbiguous},
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
		d.Body = []byte(strings.Replace(string(d.Body), "<Notification><Id>", "<Notification><Id>"+strings.Repeat(" ", n), 1))
		if id := p.ExtractID(d); id.Status != want {
			t.Errorf("%d: %+v", n, id)
		}
	}
}
