package sender

import (
	"time"

	"hooklock/idem"
)

// Shopify returns the preset of Shopify.
func (known) Shopify() Preset {
	return Preset{
		Name:       "shopify",
		EventID:    `{header.X-Shopify-Shop-Domain ?? header.shopify-shop-domain ?? "-"}/{header.X-Shopify-Webhook-Id ?? header.shopify-webhook-id}`,
		OnMismatch: idem.MismatchExecute, Strategy: idem.Wait, WaitTimeout: 2 * time.Second,
		Order:  "{header.X-Shopify-Triggered-At ?? header.shopify-triggered-at}",
		Labels: map[string]string{"order": "{body.order_number}"},
		Facts: Facts{
			Timeout: 5 * time.Second, Retries: RetriesAll, RetriesFor: 4 * time.Hour,
			RetriesOn: "eight times over 4 h", Limits: []Limit{{InRow: 8}},
			GivesUp: "a subscription made through the Admin API is deleted after 8 failures in a row",
		},
		verify: asHMAC(Config{From: []string{"header.X-Shopify-Hmac-Sha256", "header.shopify-hmac-sha256"},
			Encoding: "base64"}),
		Page: Page{
			Title:    "Shopify",
			Workflow: `shopify/{header.X-Shopify-Shop-Domain ?? header.shopify-shop-domain ?? "other"}`,
			Secret: "The client secret of the app. Webhooks of the store's notification settings have another " +
				"key, which is shown there.",
			SampleID: "sample.myshopify.com/one",
		},
		Sources: []string{"shopify.dev/changelog/updates-to-webhook-retry-mechanism",
			"shopify.dev/apps/build/webhooks/ignore-duplicates", "Shopify/shopify-app-js lib/types.ts, CHANGELOG"},
		Notes: []string{
			"Shopify's pages disagree on which ID names the delivery; Hooklock uses the Webhook-Id.",
		},
		sample: func(s *sample) {
			s.setBody(`{"id":1,"order_number":1001,"name":%s,"total_price":"403.00"}`, s.id)
			s.addField("X-Shopify-Topic", "orders/create")
			s.addField("X-Shopify-Shop-Domain", "sample.myshopify.com")
			s.addField("X-Shopify-API-Version", "2026-01")
			s.addField("X-Shopify-Triggered-At", rfc3339(s.happened))
			s.addField("X-Shopify-Webhook-Id", s.id)
			s.signBody("X-Shopify-Hmac-Sha256", "", inBase64)
		},
	}
}
