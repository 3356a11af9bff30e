package sender

import (
	"bytes"
	"time"

	"hooklock/idem"

	"github.com/valyala/fastjson"
)

// Asana is the sender of that name.
func (known) Asana() Preset {
	return Preset{
		Name: "asana", EventID: "{body_sha256}", OnMismatch: idem.MismatchExecute, Strategy: idem.Wait, WaitTimeout: 4 * time.Second,
		Facts: Facts{
			Patience: 10 * time.Second, Success: []int{200, 204}, Retries: RetriesAll, RetriesFor: day, IDSigned: true,
			RetriesOn: "error statuses and timeouts, at growing intervals for 24 h", Limits: []Limit{{For: 24 * time.Hour}}, GivesUp: "the webhook is deleted when nothing could be delivered for 24 h, heartbeats included",
		},
		Handshakes: []Handshake{{"heartbeat", true, isAsanaHeartbeat}},
		Rule:       HandshakeRule{When: []string{"header.X-Hook-Secret"}, Unsigned: true, Header: "X-Hook-Secret: {header.X-Hook-Secret}"},
		verify:     asHMAC(Config{Header: asanaHeader}),
		sample:     sampleAsana,
		Page: Page{
			Title: "Asana", Path: "/hooks/asana/{webhook}", Workflow: `asana/{path.webhook}`,
			Verify: "secret_file: /etc/hooklock/asana.secret",
			Secret: "The X-Hook-Secret of the webhook, which the answer to its creation shows. Each webhook has its own: give each its own route. Before there is one, put any text into the file, and then reload.",
		},
		Sources: []string{"https://developers.asana.com/docs/webhooks-guide", "Asana's developer docs source/includes/markdown/_18-webhooks.html.md"},
		Notes: []string{
			"Asana gives its events no ID, and one request has several: the body is the event. Its members created_at have milliseconds, so two different events do not have the same body.",
			"If Asana regroups events when it sends again, they run again.",
			"The handshake brings the secret, which nothing can check: it is answered here and does not reach the service.",
			"Asana says of itself that it delivers at most once \"in exceptional circumstances\"; what is refused comes again for a day, and then the webhook is deleted.",
		},
	}
}

const asanaHeader = "X-Hook-Signature"

// isAsanaHeartbeat: an empty object, or one with an empty list and nothing else.
func isAsanaHeartbeat(d *Delivery) bool {
	if string(bytes.TrimSpace(d.Body)) == "{}" {
		return true
	}
	v := object(d.Body, `"events"`)
	if v == nil || v.GetObject().Len() != 1 {
		return false
	}
	events := v.Get("events")
	return events != nil && events.Type() == fastjson.TypeArray && len(events.GetArray()) == 0
}

func sampleAsana(s *sample) error {
	s.body(`{"events":[{"user":{"gid":"1","resource_type":"user"},"created_at":"`+rfc3339(s.happened)+`","action":"changed","resource":{"gid":%s,"resource_type":"task"},"parent":null}]}`, s.id)
	s.signBody(asanaHeader, "", inHex)
	return nil
}
