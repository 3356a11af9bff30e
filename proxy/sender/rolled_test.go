package sender

import (
	"strings"
	"testing"
)

// While a secret is rolled, or with several keys, a sender signs with each: one match is enough.
func TestOneOfSeveralSignaturesIsEnough(t *testing.T) {
	cases := []struct{ preset, header, separator string }{
		{"paddle", "Paddle-Signature", ";"},
		{"workos", "WorkOS-Signature", ", "},
		{"pagerduty", "X-PagerDuty-Signature", ","},
		{"mollie", "X-Mollie-Signature", ","},
	}
	for _, c := range cases {
		config, secret := credentials(t, c.preset)
		d := mustSample(t, c.preset, secret)
		own, _ := d.findHeader(c.header)
		other, _ := mustSample(t, c.preset, []byte("the older secret")).findHeader(c.header)
		_, signature, timed := strings.Cut(string(other), c.separator) // behind the time, which is the same in both
		if !timed {
			signature = string(other)
		}
		both := string(own) + c.separator + signature
		if err := mustNew(t, config).Verify(with(d, c.header, both), testNow()); err != nil {
			t.Errorf("%s: %s: %v", c.preset, both, err)
		}
		if mustNew(t, config).Verify(with(d, c.header, string(other)), testNow()) == nil {
			t.Errorf("%s: the older secret alone is accepted", c.preset)
		}
	}
}
