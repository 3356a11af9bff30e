package sender

import (
	"crypto/sha256"
	"testing"
	"time"
)

// TestAWooCommerceSecretIsDecodedAsByWooCommerce covers generated secrets, which consist of any
// printable characters and may contain an HTML entity by chance.
func TestAWooCommerceSecretIsDecodedAsByWooCommerce(t *testing.T) {
	body := `{"id":1}`
	for secret, key := range map[string]string{
		"plain":                                 "plain",
		"a&copyb":                               "a&copyb",
		"x&lt3":                                 "x&lt3",
		"&copy;&nbsp;&#169;&#x3c;&apos;":        "&copy;&nbsp;&#169;&#x3c;&apos;",
		"&lt;&gt;&amp;&quot;":                   `<>&"`,
		"&#39;&#0039;&#34;&#60;&#062;&#38;":     `''"<>&`,
		"&#x27;&#X0022;&#x26;":                  `'"&`,
		"&amp;lt; once":                         "&lt; once",
		"&LT;&AMP;":                             "&LT;&AMP;",
		"a & b &; &#; &#x; &#39 &amp":           "a & b &; &#; &#x; &#39 &amp",
		"&#0000000000000000000000000000000039;": "'",
	} {
		v, err := New(Config{Scheme: "woocommerce", Secrets: [][]byte{[]byte(secret)}})
		if err != nil {
			t.Fatal(err)
		}
		d := &Delivery{Body: []byte(body)}
		d.Fields = append(d.Fields, field(wooCommerceHeader,
			string(newMAC(sha256.New, []byte(key)).signParts(inBase64, []byte(body)))))
		if err := v.Verify(d, time.Now()); err != nil {
			t.Errorf("%s, which signs as %s: %v", secret, key, err)
		}
		sample, err := Sample("woocommerce", []byte(secret), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Verify(sample.asDelivery(), time.Now()); err != nil {
			t.Errorf("a sample with the secret %s: %v", secret, err)
		}
	}
}
