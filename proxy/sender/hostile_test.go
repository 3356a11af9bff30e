package sender

import (
	"runtime"
	"strings"
	"testing"
)

// A body is read in part before anybody knows who sent it, and limits.memory counts its text alone.
func TestNoBodyTakesManyTimesItsSize(t *testing.T) {
	const size = 8 << 20 // limits.request_body
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
	const most = 6 * size // the text is copied, some presets read it twice, and the verifier once more
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
				t.Errorf("%s: %s of %d MiB takes %d MiB", p.Name, name, size>>20, took>>20)
			}
		}
	}
}

// What is larger than anybody's batch has no ID, rather than one that is costly to find.
func TestABatchHasAnIDUpToSoManyValues(t *testing.T) {
	const event, values = `{"specversion":"1.0","source":"/a","id":"1","data":"a,b,[c]{d}\"e,"},`, 5 // the object and its members
	p, _ := Lookup("cloudevents")
	for n, want := range map[int]IDStatus{1: IDFound, maxBatch/values - 1: IDFound, maxBatch/values + 1: IDMissing} {
		d := with(&Delivery{Body: []byte("[" + strings.TrimSuffix(strings.Repeat(event, n), ",") + "]")}, "Content-Type", "application/cloudevents-batch+json")
		if id := p.ExtractID(d); id.Status != want {
			t.Errorf("%d events: %+v", n, id)
		}
	}
}
