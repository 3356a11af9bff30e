package sender

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"hooklock/idem/naming"
)

// Mandrill sends its events as JSON in one parameter of a form: ten of them are 1.7 KB.
func TestWhatIsSignedOrEchoedMayBeLongerThanAName(t *testing.T) {
	events := strings.Repeat(`{"event":"click","_id":"0123456789"},`, 40)
	d := &Delivery{
		Fields: []naming.Field{
			field("Content-Type", "application/x-www-form-urlencoded"),
			field("X-Signature", signedHex("secret", events)),
		},
		Body: []byte("mandrill_events=" + url.QueryEscape(events)),
	}
	v, err := New(Config{Scheme: "hmac", Secrets: [][]byte{[]byte("secret")}, Header: "X-Signature",
		Content: "{form.mandrill_events}"})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(d, time.Now()); err != nil {
		t.Errorf("its signature: %v", err)
	}
	h := ruled(t, HandshakeRule{When: []string{"form.mandrill_events"}, Answer: "{form.mandrill_events}"},
		Config{Scheme: "hmac", Secrets: [][]byte{[]byte("secret")}, Header: "X-Signature"})
	if !h.Matches(d) {
		t.Error("a handshake with a long value is taken for an event")
	}
	if a, err := h.Answer(d); err != nil || string(a.Body) != events {
		t.Errorf("its answer: %v", err)
	}
}
