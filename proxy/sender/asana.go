package sender

import (
	"bytes"
	"time"

	"hooklock/idem"

	"github.com/valyala/fastjson"
)

// Asana returns the preset of Asana.
func (known) Asana() Preset {
	return Preset{
		Name: "asana", EventID: "{body_sha256}", OnMismatch: idem.MismatchExecute, Strategy: idem.Wait,
		WaitTimeout: 4 * time.Second,
		Facts: Facts{
			Timeout: 10 * time.Second, Success: []int{200, 204}, Retries: RetriesAll, RetriesFor: day, IDSigned: true,
			RetriesOn: "after error statuses and timeouts, at growing intervals for 24 h",
			Limits:    []Limit{{For: 24 * time.Hour}},
			GivesUp:   "the webhook is deleted after 24 h without a successful delivery, heartbeats included",
		},
		Handshakes: []Handshake{{"heartbeat", true, isAsanaHeartbeat}},
		Rule: HandshakeRule{When: []string{"header.X-Hook-Secret"}, Unsigned: true,
			Header: "X-Hook-Secret: {header.X-Hook-Secret}"},
		verify: asHMAC(Config{Header: asanaHeader}),
		Page: Page{
			Title: "Asana", Path: "/hooks/asana/{webhook}", Workflow: `asana/{path.webhook}`,
			Secret: "The X-Hook-Secret of the webhook, from the answer to its creation. Each webhook has its own " +
				"secret: give each its own route. Until you have it, put any text into the file; reload afterwards.",
		},
		Sources: []string{"https://developers.asana.com/docs/webhooks-guide",
			"Asana's developer docs source/includes/markdown/_18-webhooks.html.md"},
		Notes: []string{
			"A request has several events, none with an ID: the body is the key. Its created_at members have " +
				"milliseconds, so two events differ.",
			"The handshake brings the secret, unsigned, which nothing can check.",
			"Asana itself delivers at most once \"in exceptional circumstances\": an event may never come.",
		},
		sample: func(s *sample) {
			s.setBody(`{"events":[{"user":{"gid":"1","resource_type":"user"},"created_at":"`+rfc3339(s.happened)+
				`","action":"changed","resource":{"gid":%s,"resource_type":"task"},"parent":null}]}`, s.id)
			s.signBody(asanaHeader, "", inHex)
		},
	}
}

const asanaHeader = "X-Hook-Signature"

// isAsanaHeartbeat reports whether the body is an empty object, or one with only an empty list of
// events.
func isAsanaHeartbeat(d *Delivery) bool {
	if string(bytes.TrimSpace(d.Body)) == "{}" {
		return true
	}
	v := objectWith(d.Body, `"events"`)
	if v == nil || v.GetObject().Len() != 1 {
		return false
	}
	events := v.Get("events")
	return events != nil && events.Type() == fastjson.TypeArray && len(events.GetArray()) == 0
}
