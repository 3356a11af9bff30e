package sender

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"strconv"
	"testing"
	"time"
)

// BenchmarkVerify compares a verification with the bare MAC over the same body (hmac.New, one
// Write, one Sum), turn by turn, so that a busy machine slows both. The goal is a ratio of at most
// 2.
func BenchmarkVerify(b *testing.B) {
	for _, preset := range []string{"stripe", "github", "shopify", "slack", "square", "hubspot", "standard-webhooks",
		"linear"} {
		for _, size := range []int{256, 4 << 10, 64 << 10} {
			b.Run(preset+"/"+strconv.Itoa(size), func(b *testing.B) {
				c, secret := credentials(b, preset)
				s := mustSample(b, preset, secret)
				// The padding stands before the last brace, so that the body stays JSON.
				pad := []byte(`,"pad":"` + string(bytes.Repeat([]byte("x"), size)) + `"`)
				at := bytes.LastIndexByte(s.Body, '}')
				padded := append(append(append([]byte{}, s.Body[:at]...), pad...), s.Body[at:]...)
				d := resign(b, preset, secret, padded)
				v := mustNew(b, c)
				b.ReportAllocs()
				bare, verified := time.Hour, time.Hour
				for b.Loop() {
					start := time.Now()
					h := hmac.New(sha256.New, secret)
					h.Write(d.Body)
					h.Sum(nil)
					middle := time.Now()
					if err := v.Verify(d, testNow()); err != nil {
						b.Fatal(err)
					}
					bare, verified = min(bare, middle.Sub(start)), min(verified, time.Since(middle))
				}
				b.ReportMetric(float64(verified)/float64(bare), "of-bare-mac")
				b.ReportMetric(testing.AllocsPerRun(100, func() { _ = v.Verify(d, testNow()) }), "allocs/verify")
			})
		}
	}
}

// resign returns the sample of a preset with another body.
func resign(b *testing.B, preset string, secret, body []byte) *Delivery {
	b.Helper()
	s := &sample{secret: secret, now: testNow(), url: "https://hooks.example.com/hooks/" + preset,
		request: Request{Method: "POST", Target: "/hooks/" + preset, Body: body}}
	switch preset {
	case "stripe":
		s.signRequest(secret, signStripe)
	case "github":
		s.signBody("X-Hub-Signature-256", "sha256=", inHex)
	case "shopify":
		s.signBody("X-Shopify-Hmac-Sha256", "", inBase64)
	case "linear":
		s.signBody("Linear-Signature", "", inHex)
	case "slack":
		s.signV0(slackHeader, slackTime)
	case "square":
		s.addField(squareHeader, s.hmac256(inBase64, s.url, string(body)))
	case "hubspot":
		s.signRequest(secret, signHubSpot(preset, &publicURL{base: "https://hooks.example.com"}))
	case "standard-webhooks":
		s.signStandard("msg_1")
	}
	if s.err != nil {
		b.Fatal(s.err)
	}
	return s.request.asDelivery()
}
