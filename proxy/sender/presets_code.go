package sender

import "time"

// Senders of code, tickets and teams.

func github() Preset {
	r := only5xx()
	delete(r, unverified) // nothing brings these two back, so that they may say in GitHub's list what is wrong
	delete(r, rejected)
	return Preset{
		Name: "github", EventID: `{header.X-GitHub-Hook-ID ?? "-"}/{header.X-GitHub-Delivery}`, OnMismatch: mismatchReplay,
		Strategy: strategyWait, WaitTimeout: 4 * time.Second, SenderTimeout: 10 * time.Second, NeverRetries: true,
		Respond: r,
		Sources: []string{"docs.github.com/en/webhooks/using-webhooks/best-practices-for-using-webhooks", "docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries",
			"docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries"},
		Notes: []string{
			"GitHub never retries: a delivery waits its turn, and a copy gets the first one's answer. What is refused nevertheless can only be redelivered by hand.",
			"X-GitHub-Delivery names the event for all hooks; the hook's ID keeps two hooks on one URL apart. Where that header is missing, the delivery's ID alone counts.",
			"A manual redelivery keeps its ID and gets the first answer if that succeeded: `hooklock executions forget` lets the event run again.",
			"The headers are not signed, nor is a time: who captured a delivery can send it again under another ID.",
			"`ping` is an ordinary delivery. GitHub Enterprise Server waits 30 s.",
		},
	}
}

func gitlab() Preset {
	return Preset{
		Name: "gitlab", EventID: "{header.webhook-id ?? header.Idempotency-Key}", OnMismatch: mismatchReplay,
		Strategy: strategyWait, WaitTimeout: 4 * time.Second, SenderTimeout: 10 * time.Second, NeverRetries: true, Respond: only5xx(),
		Sources: []string{"docs.gitlab.com/user/project/integrations/webhooks", "gitlabhq/gitlabhq app/services/web_hook_service.rb"},
		Notes: []string{
			"GitLab does not retry on a status, and disables a hook after 4 failures in a row: a delivery waits its turn, and no refusal is a 4xx.",
			"Needs GitLab 17.4 for an ID; before that the body is the key. X-Gitlab-Webhook-UUID and X-Gitlab-Event-UUID are no IDs of deliveries.",
			"A secret that begins with whsec_ is a signing token (the body is signed); any other is compared with X-Gitlab-Token and signs nothing.",
			"The two IDs are equal. webhook-id comes first because it is signed when a signing token is set; Idempotency-Key never is.",
			"The 10 s are of GitLab.com; a self-managed one may differ.",
		},
	}
}

func bitbucket() Preset {
	return Preset{
		Name: "bitbucket", EventID: `{header.X-Hook-UUID ?? "-"}/{header.X-Request-UUID ?? header.X-Request-Id}`, OnMismatch: mismatchExecute,
		Strategy: strategyWait, WaitTimeout: 4 * time.Second, SenderTimeout: 10 * time.Second, Respond: only5xx(),
		Sources: []string{"support.atlassian.com/bitbucket-cloud/docs/troubleshoot-webhooks", "support.atlassian.com/bitbucket-cloud/docs/event-payloads"},
		Notes: []string{
			"Only 5xx is sent again, twice and at once: a delivery waits its turn.",
			"That X-Request-UUID is the same on a retry is not documented. If it is not, a retry runs again, as without Hooklock; a known ID with another body runs.",
			"The headers are not signed, nor is a time.",
		},
	}
}

func jira() Preset {
	r := only5xx()
	r[inFlight], r[locked], r[waitTimeout], r[queueFull], r[unknown] = 409, 409, 409, 429, 409
	return Preset{
		Name: "jira", EventID: "{header.X-Atlassian-Webhook-Identifier}", OnMismatch: mismatchExecute, RetryHorizon: 90 * time.Minute, Respond: r,
		Sources: []string{"developer.atlassian.com/cloud/jira/platform/webhooks"},
		Notes: []string{
			"Jira retries 408, 409, 425, 429 and 5xx five times, and loses the event on any other 4xx.",
			"The identifier is unique within one tenant: give each site its own route. A known identifier with another body runs.",
			"Webhooks of OAuth 2.0 and Connect apps carry a JWT, which is not checked here: scheme none, and let the service check it.",
			"Jira Cloud's timeout is not published; Jira Data Center was not checked.",
		},
	}
}

func linear() Preset {
	return Preset{
		Name: "linear", EventID: "{header.Linear-Delivery}", OnMismatch: mismatchReplay, Strategy: strategyWait, WaitTimeout: 2 * time.Second, SenderTimeout: 5 * time.Second, RetryHorizon: 8 * time.Hour,
		Sources: []string{"linear.app/developers/webhooks", "linear/linear packages/sdk/src/webhooks/client.ts"},
		Notes: []string{
			"Waits its turn: three retries only, after 1 min, 1 h and 6 h, and a webhook that does not answer is disabled.",
			"Linear documents 200 as the only success; Hooklock passes the upstream's status on as it is.",
			"That Linear-Delivery is the same on a retry is not spelled out. If it is not, a retry runs again. webhookTimestamp changes between attempts, so the body does not decide.",
			"The tolerance of 1 min is that of Linear's own library.",
		},
	}
}

func slack() Preset {
	return Preset{
		Name: "slack", EventID: "{body.api_app_id}/{body.event_id}", OnMismatch: mismatchReplay, Strategy: strategyWait, WaitTimeout: time.Second, SenderTimeout: 3 * time.Second, RetryHorizon: day + 6*time.Minute,
		Handshakes: []Handshake{
			{"url_verification", true, bodyType("url_verification")},
			{"app_rate_limited", true, bodyType("app_rate_limited")},
		},
		Sources: []string{"docs.slack.dev/apis/events-api", "slackapi/python-slack-sdk slack_sdk/signature/__init__.py"},
		Notes: []string{
			"Slack waits 3 s and sends again at once, while the first request still runs: the copy waits for the first one's answer. More than 95% failures in an hour disable the subscription.",
			"Slash commands and interactivity have no event_id: there the body is the key.",
			"x-slack-no-retry of the upstream is passed on.",
		},
	}
}

func discordPreset() Preset {
	r := only5xx()
	r[unverified] = 401
	return Preset{
		Name: "discord", ExtractID: discordID, IDText: "application_id and id of an interaction; webhook events have none", OnMismatch: mismatchReplay,
		Strategy: strategyWait, WaitTimeout: time.Second, SenderTimeout: 3 * time.Second, NeverRetries: true, Respond: r,
		Handshakes: []Handshake{{"PING", true, isDiscordPing}},
		Sources:    []string{"discord/discord-api-docs developers/interactions/overview.mdx", "discord/discord-api-docs developers/events/webhook-events.mdx"},
		Notes: []string{
			"Interactions are never retried and need an answer within 3 s: they wait 1 s.",
			"Discord sends wrong signatures on purpose and removes the URL unless they are answered with 401. Do not set mode: observe or scheme: none unless the service checks them itself.",
			"Webhook events have no ID: the body is the key.",
		},
	}
}
