package sender

import (
	"time"

	"hooklock/idem"
)

// Slack returns the preset of Slack.
func (known) Slack() Preset {
	return Preset{
		Name: "slack", EventID: "{body.api_app_id}/{body.event_id}", OnMismatch: idem.MismatchReplay,
		Strategy: idem.Wait, WaitTimeout: time.Second,
		Facts: Facts{
			Timeout: 3 * time.Second, Retries: RetriesAll, RetriesFor: day + 6*time.Minute, SignedTime: TimeInHeader,
			IDSigned:   true,
			UsesAnswer: isForm, Answer: "the user sees the answer to a slash command or a button",
			RetriesOn: "at once, after 1 min and after 5 min; with delayed events hourly for a day",
			Limits:    []Limit{{Share: 0.95}}, GivesUp: "disabled above 95% failures in an hour",
			Changes: "the signature and its time",
		},
		Handshakes: []Handshake{
			{"url_verification", true, bodyType("url_verification")},
			{"app_rate_limited", true, bodyType("app_rate_limited")},
		},
		verify: asV0(slackHeader, slackTime, minutes5),
		Page: Page{
			Title:    "Slack",
			Workflow: `slack/{body.team_id ?? form.team_id ?? form.payload.team.id ?? "other"}`,
			Secret:   "The app's signing secret.",
			SampleID: "A0001/Ev_one",
		},
		Sources: []string{"docs.slack.dev/apis/events-api",
			"slackapi/python-slack-sdk slack_sdk/signature/__init__.py"},
		Notes: []string{
			"Slack sends again while the first request still runs: the duplicate waits for the first answer.",
			"Slash commands and interactivity have no event_id: the body is the key.",
			"The upstream's x-slack-no-retry passes through.",
		},
		sample: func(s *sample) {
			s.setBody(
				`{"team_id":"T0001","api_app_id":"A0001","event":{"type":"app_mention","user":"U1","text":"hi","channel":"C1"},"type":"event_callback","event_id":%s,"event_time":`+s.unixSeconds()+`}`, s.prefixedID("Ev_"))
			s.signV0(slackHeader, slackTime)
		},
	}
}

const (
	slackHeader = "X-Slack-Signature"
	slackTime   = "X-Slack-Request-Timestamp"
)

// bodyType returns a function that recognises a handshake by Slack's "type". A body with an event
// is never a handshake.
func bodyType(value string) func(*Delivery) bool {
	return func(d *Delivery) bool {
		v := objectWith(d.Body, value)
		return hasMember(v, "type", value) && !v.Exists("event") && !v.Exists("event_id")
	}
}
