package sender

import (
	"time"

	"hooklock/idem"
)

// Alertmanager returns the preset of the webhook receiver of Prometheus Alertmanager.
func (known) Alertmanager() Preset {
	return Preset{
		Name: "alertmanager", Scheme: "none", EventID: "{fingerprint}", PayloadRetention: time.Minute,
		IDText: "none: `groupKey` names the group, so that with it \"resolved\" would get the answer of " +
			"\"firing\"; the payload is the key, for a minute",
		OnMismatch: idem.MismatchExecute, Strategy: idem.Wait, WaitTimeout: 8 * time.Second, Respond: only5xx(),
		Facts: Facts{
			Retries: RetriesSome, RetriesOn: "after a 5xx, with pauses from 0.3 s, until group_interval (5 min) is " +
				"over; a 4xx, 409 and 429 included, is the end of the notification",
		},
		Tried: &SelfHosted{
			Name: "Alertmanager", Version: "0.25.0, 0.28.1", Run: RunInTest,
			Refused: "lost", Unavailable: "again from 0.3 s, until `group_interval`", Redirected: "GET, lost",
			Silent: "waits `group_interval`", EventID: "none",
		},
		Page: Page{
			Title:    "Prometheus Alertmanager",
			Workflow: `alertmanager/{body.receiver ?? "other"}`,
		},
		Sources: []string{"Alertmanager 0.25.0 and 0.28.1, run against Hooklock (deploy/test/senders)"},
		Notes: []string{
			"A notification that is refused and over before the next group_interval is never told, neither firing " +
				"nor resolved.",
			"It follows a 301 with a GET and takes the 200 for success: give it the last URL.",
			"It repeats a notification with the same bytes after repeat_interval (4 h): that one runs.",
			"It can send a secret: `http_config: {authorization: {credentials: …}}` there, `verify: {scheme: token, " +
				"header: Authorization, prefix: \"Bearer \", secret_file: …}` here.",
		},
		sample: func(s *sample) {
			s.setBody(
				`{"receiver":"service","status":"firing","alerts":[{"status":"firing","labels":{"alertname":%s},"annotations":{},"startsAt":"`+rfc3339(s.happened)+
					`","endsAt":"0001-01-01T00:00:00Z","generatorURL":"","fingerprint":"d256efc389800170"}],"groupLabels":{"alertname":%s},"commonLabels":{"alertname":%s},`+
					`"commonAnnotations":{},"externalURL":"http://alertmanager.example.com","version":"4","groupKey":"{}:{alertname=\"sample\"}","truncatedAlerts":0}`, s.id, s.id, s.id)
		},
	}
}
