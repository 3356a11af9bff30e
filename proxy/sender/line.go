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
		Strategy: idem.Wait, WaitTimeout: 500 * time.Millisecond, Respond: only5xx(),
		Facts: Facts{
			Patience: 2 * time.Second, Retries: RetriesNever, IDSigned: true,
			RetriesOn: "where \"Webhook redelivery\" is switched on in the console, for some time", GivesUp: "redelivery and sending may be suspended", Changes: "deliveryContext.isRedelivery",
		},
		Handshakes: []Handshake{{"verification of the URL", true, isLineVerification}},
		verify:     asHMAC(Config{Header: lineHeader, Encoding: "base64"}),
		sample:     sampleLine,
		Page: Page{
			Title: "LINE", Path: "/hooks/line", Workflow: `line/{body.events[0].source.userId ?? body.destination ?? "other"}`,
			Verify:   "secret_file: /etc/hooklock/line.secret",
			Secret:   "The channel secret.",
			SampleID: "one",
		},
		Sources: []string{"https://developers.line.biz/en/docs/messaging-api/receiving-messages/", "https://developers.line.biz/en/docs/messaging-api/check-webhook-error-statistics/", "@line/bot-sdk 11.0.0"},
		Notes: []string{
			"LINE waits 2 s, and sends again only where \"Webhook redelivery\" is switched on: switch it on. Otherwise what is refused is lost.",
			"A request may carry several events and is run as one. If LINE regroups them when it sends again, they run again.",
			"No time is signed; a copy within the retention is a duplicate, because the IDs are signed.",
			"\"Verify\" in the console sends a request without events: it passes through to the service.",
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
	v := object(d.Body, `"events"`)
	if v == nil || countMember(v, "events") != 1 {
		return false
	}
	events := v.Get("events")
	return events.Type() == fastjson.TypeArray && len(events.GetArray()) == 0
}

func sampleLine(s *sample) error {
	s.body(`{"destination":"U00000000000000000000000000000001","events":[{"type":"message","mode":"active","timestamp":`+millis(s.happened)+
		`,"source":{"type":"user","userId":"U00000000000000000000000000000002"},"webhookEventId":%s,"deliveryContext":{"isRedelivery":false},"message":{"type":"text","id":"1","text":"sample"}}]}`, s.id)
	s.signBody(lineHeader, "", inBase64)
	return nil
}
