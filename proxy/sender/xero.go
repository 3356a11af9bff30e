package sender

import (
	"crypto/sha256"
	"encoding/hex"

	"hooklock/idem"

	"github.com/valyala/fastjson"
)

// Xero returns the preset of Xero.
func (known) Xero() Preset {
	r := only5xx()
	r[idem.DecisionUnverified] = 401
	return Preset{
		Name: "xero", ExtractID: xeroID, IDText: "digest of the events", OnMismatch: idem.MismatchReplay,
		Respond: r,
		Facts: Facts{
			IDSigned: true, GivesUp: "the webhook is not activated if a wrong signature gets anything but 401",
		},
		Handshakes: []Handshake{{"intent to receive", true, isXeroIntent}},
		verify:     asHMAC(Config{Header: "x-xero-signature", Encoding: "base64"}),
		Page: Page{
			Title: "Xero", Workflow: `xero/{body.events[0].tenantId ?? "other"}`,
			Secret: "The webhooks key of the app.",
		},
		Sources: []string{"https://developer.xero.com/documentation/guides/webhooks/overview/",
			"https://developer.xero.com/documentation/guides/webhooks/configuring-your-server/"},
		Notes: []string{
			"Xero tests an endpoint with right and wrong signatures (\"intent to receive\"). The service gets the " +
				"right ones, which have no events. Do not set `mode: observe` or `scheme: none` unless it checks " +
				"signatures itself.",
		},
		sample: func(s *sample) {
			s.setBody(
				`{"events":[{"resourceUrl":"https://api.xero.com/api.xro/2.0/Contacts/1","resourceId":%s,"tenantId":"t1","tenantType":"ORGANISATION","eventCategory":"CONTACT","eventType":"UPDATE","eventDateUtc":"`+
					rfc3339(s.happened)+`"}],"firstEventSequence":1,"lastEventSequence":1,"entropy":%s}`, s.id, s.unixMillis())
			s.signBody("x-xero-signature", "", inBase64)
		},
	}
}

// xeroEvents returns the events of a body, or nil if it has none.
func xeroEvents(d *Delivery) *fastjson.Value {
	v := objectWith(d.Body, `"events"`)
	if v == nil || countMember(v, "events") != 1 || v.Get("events").Type() != fastjson.TypeArray {
		return nil
	}
	return v.Get("events")
}

func isXeroIntent(d *Delivery) bool {
	events := xeroEvents(d)
	return events != nil && len(events.GetArray()) == 0
}

// xeroID returns the digest of the events. The other members are left out, because entropy differs
// in each request.
func xeroID(d *Delivery) EventID {
	events := xeroEvents(d)
	if events == nil || len(events.GetArray()) == 0 {
		return missingID
	}
	sum := sha256.Sum256(events.MarshalTo(nil))
	return foundID("xero", hex.EncodeToString(sum[:]))
}
