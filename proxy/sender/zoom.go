package sender

import (
	"time"

	"github.com/valyala/fastjson"

	"hooklock/idem"
)

// Zoom returns the preset of Zoom.
func (known) Zoom() Preset {
	return Preset{
		Name:      "zoom",
		ExtractID: zoomID, IDText: "digest of the body without download_token and download_url",
		OnMismatch: idem.MismatchReplay,
		Order:      "{body.event_ts}", OrderUnit: idem.UnitMilliseconds,
		Strategy: idem.Wait, WaitTimeout: time.Second, Respond: only5xx(),
		Facts: Facts{
			Timeout: 3 * time.Second, Success: []int{200, 204}, Retries: RetriesSome, RetriesFor: 90 * time.Minute,
			SignedTime: TimeInHeader, IDSigned: true,
			RetriesOn: "three times, after 5, 25 and 85 min", Changes: "download_token and download_url",
		},
		Handshakes: []Handshake{{"endpoint.url_validation", true, memberIs("event", "endpoint.url_validation")}},
		verify:     asV0(zoomHeader, zoomTime, 0),
		Page: Page{
			Title: "Zoom", Workflow: `zoom/{body.payload.account_id ?? "other"}`,
			Secret: "The secret token of the app's event subscription. The service needs it too: it answers " +
				"`endpoint.url_validation`.",
		},
		Sources: []string{"developers.zoom.us/docs/api/webhooks",
			"developers.zoom.us/changelog/platform/webhook-url-validation", "zoom/webhook-sample index.js"},
		Notes: []string{
			"The unit of the signed time is not documented.",
		},
		sample: func(s *sample) {
			s.setBody(`{"event":"meeting.started","event_ts":`+unixMillis(s.happened)+
				`,"payload":{"account_id":"acc_sample","object":{"uuid":%s,"id":"123","topic":"sample"}}}`, s.id)
			s.signV0(zoomHeader, zoomTime)
		},
	}
}

const (
	zoomHeader = "x-zm-signature"
	zoomTime   = "x-zm-request-timestamp"
)

// zoomID returns the digest of the whole event without the members that change between attempts.
func zoomID(d *Delivery) EventID {
	v, err := parseJSON(d.Body)
	if err != nil || v.Type() != fastjson.TypeObject {
		return missingID
	}
	event, status := memberTexts(v, "event")
	if status != IDFound {
		return EventID{Status: status}
	}
	return foundID("zoom", event[0], digestWithout(v, "download_token", "download_url"))
}
