package sender

import "testing"

// A form that two parsers could read differently is refused, even if the URL has a digest of the
// body.
func TestTwilioRefusesAFormThatCannotBeRead(t *testing.T) {
	v := mustNew(t, Config{Scheme: "twilio", Secrets: [][]byte{[]byte("12345")}, PublicURL: "https://mycompany.com"})
	m := newMAC(sha1New, []byte("12345"))
	url := string(m.signParts(inBase64, []byte("https://mycompany.com/a")))
	d := with(&Delivery{Method: []byte("POST"), Target: []byte("/a")}, "Content-Type",
		"application/x-www-form-urlencoded")
	for _, body := range []string{"a=%zz", "a=1;b=2"} {
		d.Body = []byte(body)
		if got := reasonOf(t, v.Verify(with(d, twilioHeader, url), testNow())); got != Malformed {
			t.Errorf("%q, with a signature of the URL alone: %s", body, got)
		}
	}
	d.Body = []byte("a=1")
	signed := string(m.signParts(inBase64, []byte("https://mycompany.com/aa1")))
	if err := v.Verify(with(d, twilioHeader, signed), testNow()); err != nil {
		t.Error(err)
	}
	if got := reasonOf(t, v.Verify(with(d, twilioHeader, url), testNow())); got != Mismatch {
		t.Errorf("with a signature of the URL alone: %s", got)
	}
}

func TestASignatureOfTheWrongLengthIsMalformed(t *testing.T) {
	config, secret := credentials(t, "github")
	for _, value := range []string{"sha256=", "sha256=00", "sha256=" + string(make([]byte, 65))} {
		d := with(mustSample(t, "github", secret), "X-Hub-Signature-256", value)
		if got := reasonOf(t, mustNew(t, config).Verify(d, testNow())); got != Malformed {
			t.Errorf("%q: %s", value, got)
		}
	}
}
