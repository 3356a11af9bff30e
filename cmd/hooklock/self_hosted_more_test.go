package main

import "hooklock/proxy/sender"

// selfHostedOnce returns those that make one try for an event.
func selfHostedOnce() []sender.SelfHosted {
	return append(selfHostedRefusable(), selfHostedAsking()...)
}

// selfHostedRefusable returns those that lose an event which is refused.
func selfHostedRefusable() []sender.SelfHosted {
	return []sender.SelfHosted{
		{
			Name: "Gitea", Version: "1.25.4",
			Refused: "lost", Unavailable: "lost", Redirected: "GET, lost", Silent: "waits 5 s, lost",
			EventID: "`X-Gitea-Delivery`",
			Route: `
  - name: gitea
    path: /hooks/gitea
    preset: github
    workflow: "gitea/{body.repository.full_name}"
    event_id: "{header.X-Gitea-Delivery}"
    verify: {secret_file: /etc/hooklock/gitea.secret}
    park: {on: [locked, slow, unreachable, unknown, failed], after: 4s}
`,
			Notes: "It signs and names events as GitHub does. A delivery that is replayed in its settings has a new " +
				"ID: it runs again.",
		},
		{
			Name: "MinIO (webhook without queue_dir)", Version: "2026-02-12",
			Refused: "lost", Unavailable: "lost", Redirected: "GET, lost", Silent: "not tried",
			EventID: "`x-amz-request-id` of `responseElements`, and `Key`",
			Notes:   "Its route is that of MinIO with queue_dir.",
		},
		{
			Name: "Buildbot (HttpStatusPush)", Version: "3.7.0",
			Refused: "lost", Unavailable: "lost", Redirected: "GET, lost", Silent: "not tried",
			EventID: "`buildid` and `complete`",
			Route: `
  - name: buildbot
    path: /hooks/buildbot
    workflow: buildbot
    event_id: "{body.buildid}/{body.complete}"
    lock: {strategy: wait, wait_timeout: 4s}
    idempotency: {in_flight: attach, on_mismatch: execute}
    park: {on: [locked, slow, unreachable, unknown, failed], after: 4s}
`,
			Notes: "It sends the start and the end of a build.",
		},
		{
			Name: "Puppet (reports = http)", Version: "7.23.0",
			Refused: "lost", Unavailable: "lost", Redirected: "POST again, delivered", Silent: "not tried",
			EventID: "none",
			Route:   reportRoute("puppet"),
			Notes:   "If a 429 or 503 has Retry-After, the run sleeps for so long, and then loses the report.",
		},
		{
			Name: "collectd (write_http)", Version: "5.12.0",
			Refused: "lost", Unavailable: "lost", Redirected: "GET, lost", Silent: "not tried",
			EventID: "none; an array",
			Route:   reportRoute("collectd"),
		},
		{
			Name: "Rspamd (metadata_exporter)", Version: "3.4",
			Refused: "lost", Unavailable: "lost", Redirected: "lost", Silent: "waits under 10 s, lost", EventID: "none",
			Route: reportRoute("rspamd"),
			Notes: "`X-Rspamd-Qid` is `unknown` for what no mail server handed over. Two scans of one mail are one " +
				"event for ten minutes.",
		},
		{
			Name: "Mailpit", Version: "1.33.1",
			Refused: "lost", Unavailable: "lost", Redirected: "GET, lost", Silent: "not tried", EventID: "`ID`",
			Route: `
  - name: mailpit
    path: /hooks/mailpit
    workflow: mailpit
    event_id: "{body.ID}"
    lock: {strategy: wait, wait_timeout: 4s}
    idempotency: {in_flight: attach}
    park: {on: [locked, slow, unreachable, unknown, failed], after: 4s}
`,
			Notes: "Of six messages in a row it sent one: `webhook-limit` drops the others, unlogged.",
		},
	}
}

// reportRoute returns the route of a sender whose payload is its only name, and that loses what is
// refused.
func reportRoute(name string) string {
	return `
  - name: ` + name + `
    path: /hooks/` + name + `
    workflow: ` + name + `
    lock: {strategy: wait, wait_timeout: 4s}
    idempotency: {in_flight: attach}
    park: {on: [locked, slow, unreachable, unknown, failed], after: 4s}
`
}

// selfHostedAsking returns those that go on by the answer, such as to let a person in.
func selfHostedAsking() []sender.SelfHosted {
	return []sender.SelfHosted{
		{
			Name: "Node-RED (http request)", Version: "4.1.15",
			Refused: "the flow decides", Unavailable: "the same", Redirected: "POST again, delivered",
			Silent: "not tried", EventID: "none, unless the flow sets a header",
			Route: `
  - name: node-red
    path: /hooks/node-red
    workflow: node-red
    event_id: "{header.Idempotency-Key}"
    lock: {strategy: wait, wait_timeout: 10s}
    on_missing_event_id: reject
    idempotency: {in_flight: attach}
`,
			Notes: "The flow has to look at `msg.statusCode`. Two equal messages are one event, unless " +
				"`msg.headers` has an ID.",
		},
		{
			Name: "Icecast (URL authentication)", Version: "2.4.4",
			Refused: "the listener is refused", Unavailable: "the same", Redirected: "the listener is refused",
			Silent: "waits over 4 s", EventID: "none: `client` begins at 0 again after a restart",
			Route: askingRoute("icecast", "icecast/{form.mount}"),
			Notes: "The header `icecast-auth-user: 1` lets a listener in, whatever the status.",
		},
		{
			Name: "Centrifugo (connect proxy)", Version: "6.9.1",
			Refused: "the client is disconnected", Unavailable: "the same", Redirected: "GET, its answer counts",
			Silent: "waits 1 s", EventID: "`client`, new for each connection",
			Route: askingRoute("centrifugo", "centrifugo/{body.client}"),
			Notes: "A 2xx other than 200 is a failure to it, too.",
		},
	}
}

// askingRoute returns the route of a sender whose question is to be answered anew each time.
func askingRoute(name, workflow string) string {
	return `
  - name: ` + name + `
    path: /hooks/` + name + `
    workflow: "` + workflow + `"
    lock: {strategy: none}
    idempotency: {enabled: false}
`
}

// selfHostedUntilAccepted returns those that send an event again for long.
func selfHostedUntilAccepted() []sender.SelfHosted {
	return []sender.SelfHosted{
		{
			Name: "MinIO (with queue_dir)", Version: "2026-02-12",
			Refused: "again at once, then each 3 s, without end; later events wait", Unavailable: "the same",
			Redirected: "GET, lost", Silent: "waits over 14 s", EventID: "as without",
			Route: `
  - name: minio
    path: /hooks/minio
    workflow: minio
    event_id: '{body.Records[0].responseElements["x-amz-request-id"]}/{body.Key}'
    lock: {strategy: wait, wait_timeout: 10s}
    idempotency: {in_flight: attach, on_mismatch: execute}
`,
		},
		{
			Name: "mox (webhooks)", Version: "0.0.15",
			Refused: "again after 1, 2, 4 min and so on; later events pass", Unavailable: "the same",
			Redirected: "not tried", Silent: "waits 60 s", EventID: "`X-Mox-Webhook-Id`",
			Route: `
  - name: mox
    path: /hooks/mox
    workflow: mox
    event_id: "{header.X-Mox-Webhook-Id}"
    lock: {strategy: wait, wait_timeout: 10s}
    idempotency: {in_flight: attach}
    park: {on: [locked, slow, unreachable, unknown, failed], after: 10s, answer: 200}
`,
			Notes: "A 2xx other than 200 is a failure to it: `park.answer` has to be 200.",
		},
		{
			Name: "Mailman (HyperKitty archiver)", Version: "1.2.1",
			Refused: "with the next message of any list", Unavailable: "the same", Redirected: "GET; again",
			Silent: "not tried", EventID: "none; a multipart form",
			Route: `
  - name: hyperkitty
    path: /hooks/hyperkitty/api/mailman/archive
    workflow: hyperkitty
    lock: {strategy: wait, wait_timeout: 10s}
    idempotency: {in_flight: attach, payload_retention: 24h}
`,
			Notes: "Anything but a 200 with JSON that has `url` is a failure to it: it cannot be parked.",
		},
		{
			Name: "FreeRADIUS (rest, accounting)", Version: "3.2.1",
			Refused: "the access server sends it again", Unavailable: "the same", Redirected: "the same",
			Silent: "waits 4 s, then the same", EventID: "none",
			Route: `
  - name: radius
    path: /hooks/radius/{session}
    workflow: "radius/{path.session}"
    lock: {strategy: wait, wait_timeout: 3s}
    idempotency: {in_flight: attach}
    park: {on: [locked, slow, unreachable, unknown, failed], after: 3s}
`,
			Notes: "Leave `Acct-Delay-Time`, which grows with each try, out of `data`.",
		},
		{
			Name: "Postfix (pipe to curl -f)", Version: "3.7.11", EventID: "none", Route: reportRoute("postfix"),
			Refused: "bounced", Unavailable: "bounced", Redirected: "counts as delivered",
			Silent: "bounced after curl's `-m`",
			Notes:  "With `sh -c 'curl … || exit 75'` a mail stays in the queue.",
		},
		{
			Name: "Prometheus (alerting)", Version: "2.42.0", Silent: "waits `timeout`", EventID: "none; an array",
			Refused: "lost until the next `resend-delay`", Unavailable: "the same", Redirected: "GET, lost",
			Route: `
  - name: prometheus
    path: /hooks/prometheus/api/v2/alerts
    workflow: prometheus
    lock: {strategy: wait, wait_timeout: 4s}
    idempotency: {in_flight: attach}
    respond: {in_flight: 503, wait_timeout: 503, queue_full: 503, mismatch: 503, rejected: 503}
`,
			Notes: "It repeats an alert that lasts, each time with a later `endsAt`: each runs.",
		},
	}
}
