package main

// senderPage is what a page of docs/senders says that the preset does not know.
type senderPage struct {
	title string
	// path and workflow are those of the route to copy.
	path, workflow string
	// verify is the rest of the route's verify; empty where nothing is signed.
	verify string
	secret string // what goes into the secret or key file, and where the sender shows it
	// expect is the event ID of the sample with the event "one", as the route names it.
	expect string
}

// senderPages has one for each preset.
func senderPages() map[string]senderPage {
	const secret = "secret_file: /etc/hooklock/"
	return map[string]senderPage{
		"stripe": {"Stripe", "/hooks/stripe/{account}", "stripe/{path.account}", secret + "stripe.secret",
			"The endpoint's signing secret, `whsec_` included. Stripe shows it once for each endpoint; after \"Roll secret\" both are valid for a while: give both as `secret_files`.", "evt_one"},
		"github": {"GitHub", "/hooks/github", `github/{body.repository.full_name ?? "other"}`, secret + "github.secret",
			"The secret that you typed into the webhook's settings. Only X-Hub-Signature-256 is read, unless `algorithm: sha1` is given. Set the content type to application/json, so that the workflow can be read from the body.", "1001/one"},
		"gitlab": {"GitLab", "/hooks/gitlab", `gitlab/{body.project_id ?? body.project.id ?? "other"}`, secret + "gitlab.secret",
			"The signing token of the webhook (`whsec_…`), or its older secret token.", "one"},
		"bitbucket": {"Bitbucket Cloud", "/hooks/bitbucket", `bitbucket/{body.repository.full_name ?? "other"}`, secret + "bitbucket.secret",
			"The secret of the webhook.", "{5d9c5e2a-0000-4000-8000-000000000001}/one"},
		"shopify": {"Shopify", "/hooks/shopify", `shopify/{header.X-Shopify-Shop-Domain ?? header.shopify-shop-domain ?? "other"}`, secret + "shopify.secret",
			"The client secret of the app; for webhooks of the store's notification settings the key that is shown there.", "sample.myshopify.com/one"},
		"slack": {"Slack", "/hooks/slack", `slack/{body.team_id ?? form.team_id ?? "other"}`, secret + "slack.secret",
			"The app's signing secret.", "A0001/Ev_one"},
		"twilio": {"Twilio", "/hooks/twilio", `twilio/{form.MessageSid ?? form.CallSid ?? "other"}`, secret + "twilio.secret, public_url: \"https://hooks.example.com\"",
			"The account's auth token. `public_url` is the origin of the URL that Twilio was given.", "one"},
		"sendgrid": {"Twilio SendGrid", "/hooks/sendgrid", "sendgrid", "public_key_file: /etc/hooklock/sendgrid.pub",
			"The verification key of the signed event webhook, as its settings show it.", "one"},
		"paypal": {"PayPal", "/hooks/paypal", `paypal/{body.resource.id ?? "other"}`, "public_key_file: /etc/hooklock/paypal.pem, webhook_id: 5GP028458E2496506",
			"The certificate that PAYPAL-CERT-URL names: fetch it once, from PayPal, and look at it. `webhook_id` is the one of the webhook in the developer dashboard.", "WH-one"},
		"square": {"Square", "/hooks/square", `square/{body.merchant_id ?? "other"}`, secret + "square.secret, public_url: \"https://hooks.example.com\"",
			"The signature key of the subscription. `public_url` is the origin of its notification URL.", "one"},
		"adyen": {"Adyen", "/hooks/adyen", `adyen/{body.notificationItems[0].NotificationRequestItem.merchantAccountCode ?? "other"}`, secret + "adyen.secret",
			"The HMAC key of the webhook, in hex, as the Customer Area shows it.", "SampleCOM/AUTHORISATION/one/true"},
		"mailgun": {"Mailgun", "/hooks/mailgun", `mailgun/{body.event-data.message.headers.message-id ?? "other"}`, secret + "mailgun.secret",
			"The HTTP webhook signing key of the account.", "one"},
		"hubspot": {"HubSpot", "/hooks/hubspot", "hubspot", secret + "hubspot.secret, public_url: \"https://hooks.example.com\"",
			"The client secret of the app. `public_url` is the origin of its target URL.", ""},
		"zoom": {"Zoom", "/hooks/zoom", `zoom/{body.payload.account_id ?? "other"}`, secret + "zoom.secret",
			"The secret token of the app's event subscription. The service answers `endpoint.url_validation` itself, so it needs the secret, too.", ""},
		"jira": {"Jira Cloud", "/hooks/jira", `jira/{body.issue.key ?? "other"}`, secret + "jira.secret",
			"The secret of the webhook, as given when it was made.", "one"},
		"linear": {"Linear", "/hooks/linear", `linear/{body.data.id ?? "other"}`, secret + "linear.secret",
			"The signing secret on the webhook's page.", "one"},
		"discord": {"Discord", "/hooks/discord", `discord/{body.guild_id ?? body.application_id ?? "other"}`, "public_key_file: /etc/hooklock/discord.pub",
			"The application's public key, 64 hex digits, as its page shows it.", "2000/one"},
		"standard-webhooks": {"Standard Webhooks and Svix", "/hooks/standard/{endpoint}", "standard/{path.endpoint}", secret + "standard.secret",
			"The endpoint's secret, `whsec_` included. For version v1a the sender's public key (`whpk_…`) as `public_key_file` instead.", "msg_one"},
		"cloudevents": {"CloudEvents over HTTP", "/hooks/cloudevents", `cloudevents/{header.ce-source ?? "other"}`, "",
			"", "/hooklock/sample/one"},
		"sns": {"Amazon SNS", "/hooks/sns", `sns/{header.x-amz-sns-topic-arn ?? "other"}`, "public_key_file: /etc/hooklock/sns.pem",
			"The certificate that SigningCertURL names: fetch it once, from AWS, and look at it. Signature versions 1 and 2 are taken; `algorithm: sha256` refuses version 1.",
			"arn:aws:sns:us-east-1:123456789012:Sample:00000000-0000-4000-8000-000000000001/one"},
		"pubsub":    {"Google Pub/Sub push", "/hooks/pubsub", `pubsub/{body.subscription ?? "other"}`, "", "", "projects/sample/subscriptions/sample/one"},
		"eventgrid": {"Azure Event Grid", "/hooks/eventgrid", `eventgrid/{header.aeg-subscription-name ?? "other"}`, "", "", "SAMPLE//subscriptions/sample/one"},
	}
}
