package sender

import "time"

// Senders of payments and shops.

func stripe() Preset {
	return Preset{
		Name: "stripe", EventID: "{body.id}", OnMismatch: mismatchReplay, Retention: 30 * day, RetryHorizon: 3 * day,
		Sources: []string{"docs.stripe.com/webhooks", "stripe/stripe-go webhook/client.go"},
		Notes: []string{
			"The event ID is in the signed body. Stripe retries any answer that is not 2xx for 3 days, so a refused event comes again; retention covers manual resends, too (15 days in the Dashboard, 30 with the CLI).",
			"Stripe may make two events for one change: two IDs, both run.",
			"Several endpoints on one URL get the same event ID: give each its own route.",
			"Stripe does not publish how long it waits.",
		},
	}
}

func shopify() Preset {
	return Preset{
		Name: "shopify", EventID: `{header.X-Shopify-Shop-Domain ?? header.shopify-shop-domain ?? "-"}/{header.X-Shopify-Webhook-Id ?? header.shopify-webhook-id}`,
		OnMismatch: mismatchExecute, Strategy: strategyWait, WaitTimeout: 2 * time.Second, SenderTimeout: 5 * time.Second, RetryHorizon: 4 * time.Hour,
		Sources: []string{"shopify.dev/changelog/updates-to-webhook-retry-mechanism", "shopify.dev/apps/build/webhooks/ignore-duplicates", "Shopify/shopify-app-js lib/types.ts, CHANGELOG"},
		Notes: []string{
			"Waits its turn: after 8 failures in a row Shopify deletes a subscription that was made through the Admin API.",
			"Shopify's own pages disagree on which ID is the delivery's; the Webhook-Id is used, and a delivery with a known ID and another body runs.",
			"The ID's header is not signed: who captured a delivery can send it again under another ID. No time is signed either.",
			"Webhooks made in the store's notification settings are signed with another secret.",
		},
	}
}

func paypalPreset() Preset {
	return Preset{
		Name: "paypal", EventID: "{body.id}", OnMismatch: mismatchReplay, RetryHorizon: 3 * day,
		Sources: []string{"developer.paypal.com/api/rest/webhooks", "developer.paypal.com/api/rest/webhooks/rest"},
		Notes: []string{
			"Give PayPal's certificate as public_key_file, and webhook_id. The address in PAYPAL-CERT-URL is never followed, so a new certificate has to be added by hand; give old and new.",
			"The signature covers a CRC-32 of the body: it finds accidents, but who captured a delivery can make another body with the same CRC-32.",
			"Deliveries of PayPal's simulator cannot be verified.",
			"Neither PayPal's timeout nor whether it renews the signed time on a retry is known: there is no age check unless tolerance is set.",
		},
	}
}

func square() Preset {
	return Preset{
		Name: "square", EventID: "{body.event_id}", OnMismatch: mismatchReplay, SenderTimeout: 10 * time.Second, RetryHorizon: day,
		Sources: []string{"developer.squareup.com/docs/webhooks-overview", "square/square-nodejs-sdk tests/integration/webhooks.test.ts"},
		Notes: []string{
			"Signs the registered URL letter for letter: public_url and the received target must give it. No time is signed.",
			"Every subscription that matches an event gets the same ID: give each its own route.",
		},
	}
}

func adyenPreset() Preset {
	return Preset{
		Name: "adyen", ExtractID: adyenID, IDText: "merchantAccountCode, eventCode, pspReference and success of every item", OnMismatch: mismatchReplay, Retention: 31 * day,
		Strategy: strategyWait, WaitTimeout: 4 * time.Second, SenderTimeout: 10 * time.Second, RetryHorizon: 30 * day,
		Sources: []string{"docs.adyen.com/development-resources/webhooks/handle-webhook-events", "docs.adyen.com/development-resources/webhooks/troubleshoot", "Adyen/adyen-go-api-library src/hmacvalidator"},
		Notes: []string{
			"Waits its turn: one refused notification puts the whole endpoint into the retry queue, and everything else behind it.",
			"There is no delivery ID. eventDate may differ between attempts, so the body does not decide; Adyen asks to use the latest, Hooklock answers with the first that succeeded.",
			"The signature covers eight fields of each item and nothing else of the body. Platform webhooks (header HmacSignature) are signed as a whole and have no such ID: there the body is the key.",
		},
	}
}
