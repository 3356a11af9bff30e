package sender

import (
	"html"
	"regexp"
	"time"

	"hooklock/idem"
)

// WooCommerce returns the preset of WooCommerce.
func (known) WooCommerce() Preset {
	return Preset{
		Name:        "woocommerce",
		EventID:     "{header.X-WC-Webhook-Source}/{header.X-WC-Webhook-ID}/{header.X-WC-Webhook-Delivery-ID}",
		OnMismatch:  idem.MismatchExecute,
		WaitTimeout: 5 * time.Second,
		Facts: Facts{Timeout: time.Minute, Retries: RetriesNever, Limits: []Limit{{InRow: 6}},
			GivesUp: "disabled after more than 5 failures in a row"},
		Rule:   HandshakeRule{When: []string{"form.webhook_id"}, Unsigned: true, Answer: "pong"},
		verify: scheme{new: newWooCommerce, body: true},
		Page: Page{
			Title:    "WooCommerce",
			Workflow: `woocommerce/{header.X-WC-Webhook-Resource ?? "other"}/{body.id ?? "other"}`,
			Secret:   "The secret on the webhook's page, letter for letter.",
			SampleID: "https://shop.example.com//1/one",
		},
		Sources: []string{"https://developer.woocommerce.com/docs/apis/rest-api/webhooks",
			"woocommerce/woocommerce plugins/woocommerce/includes/class-wc-webhook.php"},
		Notes: []string{
			"The delivery ID is a digest of the webhook and the second: two events of one webhook in one second " +
				"share it. With equal bodies they run once.",
			"The handshake is the unsigned form that comes when you save a webhook. Deliveries are JSON.",
		},
		sample: func(s *sample) {
			s.setBody(`{"id":1,"status":"processing","order_key":%s,"total":"403.00"}`, "wc_order_"+s.id)
			s.addField("X-WC-Webhook-Source", "https://shop.example.com/")
			s.addField("X-WC-Webhook-Topic", "order.created")
			s.addField("X-WC-Webhook-Resource", "order")
			s.addField("X-WC-Webhook-Event", "created")
			s.addField("X-WC-Webhook-ID", "1")
			s.addField("X-WC-Webhook-Delivery-ID", s.id)
			s.addSigned(wooCommerceHeader, s.keyedSHA256(wooCommerceKey(s.secret), inBase64, string(s.request.Body)))
		},
	}
}

const wooCommerceHeader = "X-WC-Webhook-Signature"

// specialChars matches the escapes of & < > " ' that WordPress decodes (wp_specialchars_decode with
// ENT_QUOTES). HTML has thousands more, some without a semicolon, which may occur in a secret by
// chance.
var specialChars = regexp.MustCompile(`&(?:amp|lt|gt|quot|#0*(?:34|38|39|60|62)|#[xX]0*(?:22|26|27));`)

// wooCommerceKey returns the key of a secret. class-wc-webhook.php decodes these escapes before it
// signs.
func wooCommerceKey(secret []byte) []byte {
	return specialChars.ReplaceAllFunc(secret, func(escape []byte) []byte {
		return []byte(html.UnescapeString(string(escape)))
	})
}

func newWooCommerce(c Config) (Verifier, error) {
	secrets := make([][]byte, len(c.Secrets))
	for i, s := range c.Secrets {
		secrets[i] = wooCommerceKey(s)
	}
	c.Secrets = secrets
	return newGenericHMAC(Config{Header: wooCommerceHeader, Encoding: "base64"}.withRoute(c))
}
