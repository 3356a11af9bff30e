package sender

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"pgregory.net/rapid"
)

// TestStandardWebhooksAgreesWithTheReferenceLibrary checks that each side accepts the other's
// signatures, and that both judge a changed delivery the same.
func TestStandardWebhooksAgreesWithTheReferenceLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 1, 64).Draw(t, "key")
		secret := "whsec_" + base64.StdEncoding.EncodeToString(key)
		id := rapid.StringMatching(`[!-~]{1,40}`).Draw(t, "id")
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		stamp := time.Unix(rapid.Int64Range(0, 1e11).Draw(t, "stamp"), 0)
		theirs, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := New(Config{Scheme: "standard-webhooks", Secrets: [][]byte{[]byte(secret)}})
		if err != nil {
			t.Fatal(err)
		}
		signed, err := theirs.Sign(id, stamp, body)
		if err != nil {
			t.Fatal(err)
		}
		s := sample{secret: []byte(secret), now: stamp, request: Request{Body: body}}
		if s.signStandard(id); s.err != nil {
			t.Fatal(s.err)
		}
		if own, _ := s.request.asDelivery().findHeader("webhook-signature"); string(own) != signed {
			t.Fatalf("ours %s, theirs %s", own, signed)
		}
		d := s.request.asDelivery()
		switch rapid.IntRange(0, 4).Draw(t, "change") {
		case 1:
			d.Body = append(append([]byte{}, body...), '!')
		case 2:
			d = with(d, "webhook-id", id+"x")
		case 3:
			d = with(d, "webhook-timestamp", strconv.FormatInt(stamp.Unix()+1, 10))
		case 4:
			d = with(d, "webhook-signature",
				rapid.SampledFrom([]string{"v1," + signed, "v2" + signed[2:], signed[:len(signed)-1], "v1,x " + signed,
					""}).Draw(t, "signature"))
		}
		header := http.Header{}
		for _, f := range d.Fields {
			header.Set(string(f.Name), string(f.Value))
		}
		our, their := ours.Verify(d, stamp), theirs.VerifyIgnoringTimestamp(d.Body, header)
		if (our == nil) != (their == nil) {
			t.Fatalf("ours %v, theirs %v", our, their)
		}
	})
}
