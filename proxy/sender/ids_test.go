package sender

import (
	"strings"
	"testing"
)

func idOfBody(t *testing.T, preset, body string) EventID {
	t.Helper()
	p, ok := Lookup(preset)
	if !ok {
		t.Fatal(preset)
	}
	return p.ExtractID(&Delivery{Method: []byte("POST"), Target: []byte("/"), Body: []byte(body)})
}

// TestAnIDIsMadeOfWhatStaysTheSame compares the ID of the first body with that of each other body:
// it is the same, a different one, or missing.
func TestAnIDIsMadeOfWhatStaysTheSame(t *testing.T) {
	const soap = `<e:Envelope xmlns:e="s"><e:Body><notifications xmlns="o"><OrganizationId>00D</OrganizationId>`
	const end = `</notifications></e:Body></e:Envelope>`
	first := map[string]string{
		"salesforce": soap + `<Notification><Id>04l1</Id><sObject><Name>a</Name><Id>x</Id></sObject></Notification>` +
			end,
		"line": `{"destination":"U1","events":[{"webhookEventId":"1","deliveryContext":{"isRedelivery":false}}]}`,
		"xero": `{"events":[{"resourceId":"1"}],"lastEventSequence":1,"entropy":"a"}`,
	}
	cases := []struct{ what, preset, body, id string }{
		{"newer values", "salesforce",
			soap + `<Notification><Id> 04l1 </Id><sObject><Name>b</Name><Id>y</Id></sObject></Notification>` + end,
			"same"},
		{"one notification more", "salesforce",
			soap + `<Notification><Id>04l1</Id></Notification><Notification><Id>04l2</Id></Notification>` + end,
			"other"},
		{"another organisation", "salesforce", strings.Replace(soap, "00D", "00E", 1) +
			`<Notification><Id>04l1</Id></Notification>` + end, "other"},
		{"two organisations", "salesforce",
			soap + `<OrganizationId>00D</OrganizationId><Notification><Id>04l1</Id></Notification>` + end, "ambiguous"},
		{"no notification", "salesforce", soap + end, "none"},
		{"an ID of another element", "salesforce",
			soap + `<Notification><sObject><Id>04l1</Id></sObject></Notification>` + end, "none"},
		{"no XML", "salesforce", `{"id":"04l1"}`, "none"},
		{"XML that is cut off", "salesforce", soap + `<Notification><Id>04l1</Id>`, "none"},
		{"sent again", "line",
			`{"destination":"U1","events":[{"webhookEventId":"1","deliveryContext":{"isRedelivery":true}}]}`, "same"},
		{"one event more", "line", `{"events":[{"webhookEventId":"1"},{"webhookEventId":"2"}]}`, "other"},
		{"an event without an ID", "line", `{"events":[{"webhookEventId":"1"},{}]}`, "none"},
		{"two lists", "line", `{"events":[{"webhookEventId":"1"}],"events":[]}`, "ambiguous"},
		{"other entropy", "xero", `{"events":[{"resourceId":"1"}],"lastEventSequence":1,"entropy":"b"}`, "same"},
		{"another event", "xero", `{"events":[{"resourceId":"2"}],"lastEventSequence":1,"entropy":"a"}`, "other"},
		{"no events", "xero", `{"events":[]}`, "none"},
	}
	for _, c := range cases {
		want, got := idOfBody(t, c.preset, first[c.preset]), idOfBody(t, c.preset, c.body)
		found := "none"
		switch {
		case got.Status == IDAmbiguous:
			found = "ambiguous"
		case got.Status == IDFound && strings.Join(got.Parts, " ") == strings.Join(want.Parts, " "):
			found = "same"
		case got.Status == IDFound:
			found = "other"
		}
		if found != c.id {
			t.Errorf("%s, %s: the ID is %s, should be %s", c.preset, c.what, found, c.id)
		}
	}
}

func TestASecretOfStandardWebhooksMayBeRaw(t *testing.T) {
	for _, secret := range []string{"polar_whs_tXq7Gk2bN0cVd5", "plain", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"} {
		s := sample{secret: []byte(secret), now: testNow(), request: Request{Body: []byte(`{}`)}}
		s.addField("webhook-id", "m")
		s.addField("webhook-timestamp", s.unixSeconds())
		s.addField("webhook-signature", "v1,"+s.hmac256(inBase64, "m.", s.unixSeconds(), ".{}"))
		for _, name := range []string{"svix", "standard-webhooks"} {
			if err := mustNew(t, Config{Scheme: name, Secrets: [][]byte{[]byte(secret)}}).Verify(s.request.asDelivery(),
				testNow()); err != nil {
				t.Errorf("%s: %s: %v", name, secret, err)
			}
		}
	}
	if _, err := New(Config{Scheme: "svix", Secrets: [][]byte{[]byte("whsec_no base64")}}); err == nil {
		t.Error("what says that it is base64 and is not should be refused")
	}
}
