package sender

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/url"
	"slices"
	"strings"
	"testing"

	"hooklock/idem/naming"
)

// eventNamed returns the ID of a delivery. It fails the test if there is none.
func eventNamed(t testing.TB, preset string, d *Delivery) string {
	t.Helper()
	p, _ := Lookup(preset)
	id := p.ExtractID(d)
	if id.Status != IDFound {
		t.Fatalf("%s: %+v", preset, id)
	}
	return id.Source + "/" + strings.Join(id.Parts, "/")
}

func TestAZoomEventIsItselfWithAnotherDownloadToken(t *testing.T) {
	const recording = `{"event":"recording.completed","event_ts":1626230691572,"download_token":"%s","payload":{"account_id":"a","object":{"uuid":"u","recording_files":[{"id":"f","download_url":"https://zoom.us/%s"}]}}}`
	id := func(body string) string { return eventNamed(t, "zoom", &Delivery{Body: []byte(body)}) }
	first := id(fmt.Sprintf(recording, "t1", "1"))
	if again := id(fmt.Sprintf(recording, "t2", "2")); again != first {
		t.Errorf("a retry is %s, the first was %s", again, first)
	}
	for _, change := range [][2]string{{`1572`, `1573`}, {`"id":"f"`, `"id":"g"`},
		{"recording.completed", "recording.started"}, {`"uuid":"u"`, `"uuid":"v"`}} {
		if other := id(strings.Replace(fmt.Sprintf(recording, "t1", "1"), change[0], change[1], 1)); other == first {
			t.Errorf("%s makes no other event", change[1])
		}
	}
	p, _ := Lookup("zoom")
	for body, want := range map[string]IDStatus{`{"event":"a","event":"b"}`: IDAmbiguous, `{}`: IDMissing,
		`[]`: IDMissing, "": IDMissing} {
		if got := p.ExtractID(&Delivery{Body: []byte(body)}).Status; got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}

// mailgunJSON returns an event with its signature.
func mailgunJSON(secret, stamp, token, event string) *Delivery {
	return &Delivery{Body: fmt.Appendf(nil,
		`{"signature":{"timestamp":"%s","token":"%s","signature":"%s"},"event-data":%s}`, stamp, token,
		signedHex(secret, stamp, token), event)}
}

func TestAMailgunEventIsItselfWhenItIsSignedAnew(t *testing.T) {
	const event = `{"id":"G9Bn5sl1TC6nu79C8C0bwg","timestamp":1521233195.375624,"event":"opened"}`
	first, again := mailgunJSON("s", "1767225600", "a", event), mailgunJSON("s", "1767225660", "b", event)
	if a, b := eventNamed(t, "mailgun", first), eventNamed(t, "mailgun", again); a != b {
		t.Errorf("%s, then %s", a, b)
	}
	other := mailgunJSON("s", "1767225600", "a", strings.Replace(event, "opened", "clicked", 1))
	if a, b := eventNamed(t, "mailgun", first), eventNamed(t, "mailgun", other); a == b {
		t.Error("another event has its ID")
	}
	if p, _ := Lookup("mailgun"); p.ExtractID(
		&Delivery{Body: []byte(`{"event-data":{},"event-data":{}}`)}).Status != IDAmbiguous {
		t.Error("event-data twice is not ambiguous")
	}
}

func TestAMailgunEventOfASubaccountIsSignedByThePrimaryAccount(t *testing.T) {
	const stamp, token = "1767225600", "e0b5477167110d68991efc6b9f89f0a11066af27834600e123"
	d := &Delivery{Body: fmt.Appendf(nil,
		`{"signature":{"token":"%s","timestamp":"%s","signature":"%s","parent-signature":"%s"},"event-data":{"id":"1"}}`,
		token, stamp, signedHex("sub", stamp, token), signedHex("primary", stamp, token))}
	for secret, want := range map[string]bool{"primary": true, "sub": true, "other": false} {
		err := mustNew(t, Config{Scheme: "mailgun", Secrets: [][]byte{[]byte(secret)}}).Verify(d, testNow())
		if (err == nil) != want {
			t.Errorf("with the key of %s: %v", secret, err)
		}
	}
}

// inbound returns a message that Mailgun forwards, as either kind of form.
func inbound(t *testing.T, multiparted bool, stamp, token, boundary string) *Delivery {
	t.Helper()
	fields := [][2]string{{"recipient", "a@example.com"}, {"subject", "Grüße & mehr"}, {"body-plain", "hello"},
		{"timestamp", stamp}, {"token", token}, {"signature", signedHex("s", stamp, token)}}
	if !multiparted {
		var pairs []string
		for _, f := range fields {
			pairs = append(pairs, f[0]+"="+url.QueryEscape(f[1]))
		}
		return &Delivery{Body: []byte(strings.Join(pairs, "&")),
			Fields: []naming.Field{field("Content-Type", "application/x-www-form-urlencoded")}}
	}
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	if err := w.SetBoundary(boundary); err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		_ = w.WriteField(f[0], f[1])
	}
	part, err := w.CreateFormFile("attachment-1", "signature") // the name of a file is not a field
	if err != nil {
		t.Fatal(err)
	}
	_, _ = part.Write([]byte("\x00\x01 content"))
	w.Close()
	return &Delivery{Body: body.Bytes(), Fields: []naming.Field{field("Content-Type", w.FormDataContentType())}}
}

func TestAnInboundMessageOfMailgunIsVerifiedAndNamed(t *testing.T) {
	v := mustNew(t, Config{Scheme: "mailgun", Secrets: [][]byte{[]byte("s")}})
	for _, multiparted := range []bool{false, true} {
		first, again := inbound(t, multiparted, "1767225600", "a", "xxx"),
			inbound(t, multiparted, "1767225660", "b", "yyy")
		for _, d := range []*Delivery{first, again} {
			if err := v.Verify(d, testNow()); err != nil {
				t.Fatalf("multipart %v: %v", multiparted, err)
			}
		}
		if a, b := eventNamed(t, "mailgun", first), eventNamed(t, "mailgun", again); a != b {
			t.Errorf("multipart %v: %s, then %s", multiparted, a, b)
		}
		for _, change := range [][2]string{{"hello", "Hello"}, {"recipient", "Recipient"}} {
			other := *first
			other.Body = bytes.Replace(first.Body, []byte(change[0]), []byte(change[1]), 1)
			if eventNamed(t, "mailgun", &other) == eventNamed(t, "mailgun", first) {
				t.Errorf("multipart %v: %s makes no other message", multiparted, change[1])
			}
		}
		forged := *first
		forged.Body = bytes.Replace(first.Body, []byte("1767225600"), []byte("1767225601"), 1)
		if got := reasonOf(t, v.Verify(&forged, testNow())); got != Mismatch {
			t.Errorf("multipart %v: another time is %s", multiparted, got)
		}
	}
	twice := inbound(t, false, "1767225600", "a", "")
	twice.Body = append(twice.Body, "&token=a"...)
	if got := reasonOf(t, v.Verify(twice, testNow())); got != Malformed {
		t.Errorf("a token twice is %s", got)
	}
}

// adyenForm returns a notification of the method HTTP POST.
func adyenForm(key []byte, change ...string) *Delivery {
	form := url.Values{
		"live": {"false"}, "pspReference": {"7914073381342284"}, "merchantAccountCode": {"TestMerchant"},
		"merchantReference": {"TestPayment-1407325143704"}, "value": {"1130"},
		"currency": {"EUR"}, "eventCode": {"AUTHORISATION"}, "success": {"true"},
		"eventDate": {"2026-01-01T00:00:00.00Z"}, "reason": {"1234:7777:12/2012"},
	}
	signed := []string{"7914073381342284", "", "TestMerchant", "TestPayment-1407325143704", "1130", "EUR",
		"AUTHORISATION", "true"}
	form.Set("additionalData.hmacSignature", (&sample{}).keyedSHA256(key, inBase64, strings.Join(signed, ":")))
	for i := 0; i+1 < len(change); i += 2 {
		form.Set(change[i], change[i+1])
	}
	return &Delivery{Body: []byte(form.Encode()),
		Fields: []naming.Field{field("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8")}}
}

func TestAnAdyenNotificationMayBeAForm(t *testing.T) {
	c, secret := credentials(t, "adyen")
	key, err := hexBytes(secret)
	if err != nil {
		t.Fatal(err)
	}
	v := mustNew(t, c)
	d := adyenForm(key)
	if err := v.Verify(d, testNow()); err != nil {
		t.Fatal(err)
	}
	if got := eventNamed(t, "adyen", d); got != "adyen/TestMerchant/AUTHORISATION/7914073381342284/true" {
		t.Error(got)
	}
	if a, b := eventNamed(t, "adyen", d), eventNamed(t, "adyen",
		adyenForm(key, "eventDate", "2026-01-02T00:00:00.00Z")); a != b {
		t.Errorf("with a newer date it is %s", b)
	}
	for _, name := range []string{"pspReference", "originalReference", "merchantAccountCode", "merchantReference",
		"value", "currency", "eventCode", "success"} {
		if got := reasonOf(t, v.Verify(adyenForm(key, name, "x"), testNow())); got != Mismatch {
			t.Errorf("another %s is %s", name, got)
		}
	}
	if got := reasonOf(t, v.Verify(adyenForm(key, "additionalData.hmacSignature", ""), testNow())); got != Missing {
		t.Errorf("unsigned it is %s", got)
	}
	d.Body = append(slices.Clone(d.Body), "&value=9"...)
	if got := reasonOf(t, v.Verify(d, testNow())); got != Malformed {
		t.Errorf("a value twice is %s", got)
	}
}

// FuzzForm checks that no form makes ExtractID panic, and that reading does not change the body.
func FuzzForm(f *testing.F) {
	p, _ := Lookup("mailgun")
	f.Add("application/x-www-form-urlencoded", []byte("a=1&timestamp=2&b=%zz"))
	f.Add("multipart/form-data; boundary=x",
		[]byte("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--\r\n"))
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		d := &Delivery{Body: body, Fields: []naming.Field{field("Content-Type", kind)}}
		before := bytes.Clone(body)
		if id := p.ExtractID(d); (id.Status == IDFound) != (len(id.Parts) > 0) {
			t.Fatalf("%+v", id)
		}
		formFields(d, "a", "b")
		if !bytes.Equal(before, body) {
			t.Fatal("the body was changed")
		}
	})
}
