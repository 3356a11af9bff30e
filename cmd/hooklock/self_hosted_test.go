package main

import (
	"slices"

	"hooklock/proxy/sender"
)

// selfHostedSenders returns those without a preset, because it is up to their user what names an
// event or a workflow.
func selfHostedSenders() []sender.SelfHosted {
	return slices.Concat(selfHostedWithoutRetries(), selfHostedOnce(), selfHostedWithRetries(),
		selfHostedUntilAccepted())
}

// selfHostedWithoutRetries returns those that lose an event which is refused with a 409.
func selfHostedWithoutRetries() []sender.SelfHosted {
	return []sender.SelfHosted{
		{
			Name: "tusd", Version: "2.8.0", Run: sender.RunInTest,
			Refused: "lost", Unavailable: "3 tries, 1 s apart", Redirected: "GET, lost", Silent: "waits over 38 s",
			EventID: "`Event.Upload.ID` and `Type`",
			Route: `
  - name: tusd
    path: /hooks/tusd
    workflow: "tusd/{body.Event.Upload.ID}"
    event_id: "{body.Event.Upload.ID}/{body.Type}"
    lock: {strategy: wait, wait_timeout: 10s}
    idempotency: {in_flight: attach, on_mismatch: execute}
    respond: {in_flight: 503, wait_timeout: 503, queue_full: 503, mismatch: 503, rejected: 503}
`,
			Notes: "A 2xx without a JSON body is a failure to it: it cannot be parked.",
		},
		{
			Name: "Janus (sampleevh)", Version: "1.1.2", Run: sender.RunInTest,
			Refused: "counts as delivered", Unavailable: "the same", Redirected: "counts as delivered",
			Silent: "waits 10 s, 5 tries", EventID: "none; an array",
			Route: `
  - name: janus
    path: /hooks/janus
    workflow: janus
    lock: {strategy: wait, wait_timeout: 4s}
    idempotency: {in_flight: attach}
    park: {on: [locked, slow, unreachable, unknown, failed], after: 4s}
`,
		},
		{
			Name: "Dovecot (ox)", Version: "2.3.19.1", Run: sender.RunInTest,
			Refused: "lost", Unavailable: "lost", Redirected: "lost", Silent: "waits 2 s, then again at once",
			EventID: "uidvalidity and uid",
			Route: `
  - name: dovecot
    path: /hooks/dovecot
    workflow: dovecot
    event_id: '{body.user}/{body.folder}/{body["imap-uidvalidity"]}/{body["imap-uid"]}'
    lock: {strategy: wait, wait_timeout: 1s}
    idempotency: {in_flight: attach, on_mismatch: execute}
    park: {on: [locked, slow, unreachable, unknown, failed], after: 1500ms}
`,
			Notes: "It sends PUT.",
		},
		{
			Name: "nginx-rtmp (on_play)", Version: "1.2.2", Run: sender.RunInTest,
			Refused: "the viewer is cut off", Unavailable: "the same", Redirected: "the viewer is let in",
			Silent: "waits 10 s", EventID: "none: `clientid` begins at 1 again after a restart",
			Route: `
  - name: rtmp
    path: /hooks/rtmp
    workflow: "rtmp/{form.name}"
    lock: {strategy: none}
    idempotency: {enabled: false}
`,
			Notes: "The answer decides whether a viewer may watch: never replay or park it.",
		},
	}
}

// selfHostedWithRetries returns those that send such an event again.
func selfHostedWithRetries() []sender.SelfHosted {
	return []sender.SelfHosted{
		{
			Name: "LiveKit (webhook)", Version: "protocol 1.54.0",
			Refused: "409 lost; 429 as 503", Unavailable: "5 tries in 15 s", Redirected: "GET, lost",
			Silent: "waits 10 s, again", EventID: "`id`",
			Route: `
  - name: livekit
    path: /hooks/livekit
    workflow: 'livekit/{body.room.sid ?? "other"}'
    event_id: "{body.id}"
    verify: {scheme: jwt, header: Authorization, issuer: APIkey, body_hash: sha256,
      secret_file: /etc/hooklock/livekit.secret}
    idempotency: {in_flight: attach}
    park: {on: [locked, slow, unreachable, unknown, failed], after: 8s}
`,
			Notes: "An event waits for those of its room before it, and is dropped after 30 s.",
		},
		{
			Name: "nsq_to_http", Version: "1.3.0", Run: sender.RunInTest,
			Refused: "again after 90 s, five times; the whole consumer stops for seconds", Unavailable: "the same",
			Redirected: "GET, lost", Silent: "waits 20 s", EventID: "none",
			Route: `
  - name: nsq
    path: /hooks/nsq
    workflow: nsq
    lock: {strategy: wait, wait_timeout: 15s}
    idempotency: {enabled: false}
`,
			Notes: "Two equal messages are two events, so a retry runs again.",
		},
		{
			Name: "Kannel (smsbox)", Version: "1.4.5", Run: sender.RunInTest,
			Refused: "3 tries", Unavailable: "3 tries; 204 too", Redirected: "followed as GET",
			Silent: "waits over 12 s", EventID: "`%I` in the query",
			Route: `
  - name: kannel
    match: {path: /hooks/kannel, methods: [GET]}
    workflow: kannel
    event_id: "{query.id}"
    lock: {strategy: wait, wait_timeout: 20s, release_delay: 2s}
    idempotency: {in_flight: attach}
`,
			Notes: "Its `get-url` needs `&id=%I`. After the last try it tells the user that the message failed.",
		},
		{
			Name: "Monit (collector)", Version: "5.33.0", Run: sender.RunInTest,
			Refused: "again at each cycle", Unavailable: "the same", Redirected: "counts as delivered",
			Silent: "waits 5 s", EventID: "`collected_sec` and `collected_usec` of `event`",
			Route: `
  - name: monit
    path: /hooks/monit
    workflow: "monit/{xml.monit.server.localhostname}"
    event_id: "{xml.monit.event.collected_sec}.{xml.monit.event.collected_usec}"
    idempotency: {on_mismatch: replay_unsigned}
`,
			Notes: "Each try has a new state of all services, so the ID alone decides. A message without an event " +
				"has no ID: its payload is the key.",
		},
		{
			Name: "syslog-ng (http)", Version: "3.38.1", Run: sender.RunInTest,
			Refused: "again", Unavailable: "again", Redirected: "again", Silent: "not tried",
			EventID: "`$UNIQID`, in the body alone, with `use-uniqid(yes)`",
			Route: `
  - name: syslog
    path: /hooks/syslog
    workflow: syslog
    event_id: "{body.id}"
    idempotency: {on_mismatch: execute}
`,
			Notes: "Say `batch-lines(1)`, because a batch grows between tries, and put `id` with `$UNIQID` into the " +
				"body: it is empty without `use-uniqid(yes)`, and literal in `headers()`, one ID for all.",
		},
	}
}
