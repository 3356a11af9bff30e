package sender

import (
	"time"

	"hooklock/idem"

	"github.com/valyala/fastjson"
)

// Line is LINE, the messenger.
func (known) Line() Preset {
	return Preset{
		Name: "line", ExtractID: lineID, IDText: "webhookEventId of every event", OnMismatch: idem.MismatchReplay,
		WaitTimeout: 500 * time.Millisecond,
		Facts: Facts{
			Timeout: 2 * time.Second, Retries: RetriesNever, IDSigned: true,
			RetriesOn: "only with \"Webhook redelivery\" switched on in the console, for some time",
			GivesUp:   "may suspend redelivery and sending", Changes: "deliveryContext.isRedelivery",
		},
		Handshakes: []Handshake{{"verification of the URL", true, isLineVerification}},
		verify:     asHMAC(Config{Header: lineHeader, Encoding: "base64"}),
		Page: Page{
			Title:    "LINE",
			Workflow: `line/{body.events[0].source.userId ?? body.destination ?? "other"}`,
			Secret:   "The channel secret.",
			SampleID: "one",
		},
		Sources: []string{"https://developers.line.biz/en/docs/messaging-api/receiving-messages/",
			"https://developers.line.biz/en/docs/messaging-api/check-webhook-error-statistics/",
			"@line/bot-sdk 11.0.0"},
		Notes: []string{
			"Switch \"Webhook redelivery\" on: without it a refused event is lost.",
			"\"Verify\" in the console sends a request without events; that is the handshake.",
		},
		sample: func(s *sample) {
			s.setBody(
				`{"destination":"U00000000000000000000000000000001","events":[{"type":"message","mode":"active","timestamp":`+
					unixMillis(s.happened)+
					`,"source":{"type":"user","userId":"U00000000000000000000000000000002"},"webhookEventId":%s,"deliveryContext":{"isRedelivery":false},"message":{"type":"text","id":"1","text":"sample"}}]}`, s.id)
			s.signBody(lineHeader, "", inBase64)
		},
	}
}

const lineHeader = "x-line-signature"

func lineID(d *Delivery) EventID {
	v, err := parseJSON(d.Body)
	if err != nil || v.Type() != fastjson.TypeObject {
		return missingID
	}
	if n := countMember(v, "events"); n != 1 {
		return onceOrAmbiguous(n)
	}
	return eachMembers("line", v.GetArray("events"), "webhookEventId")
}

func isLineVerification(d *Delivery) bool {
	v := objectWith(d.Body, `"events"`)
	if v == nil || countMember(v, "events") != 1 {
		return false
	}
	events := v.Get("events")
	return events.Type() == fastjson.TypeArray && len(events.GetArray()) == 0
}
