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
			RetriesOn: "error statuses and timeouts, at growing intervals for 24 h", GivesUp: "the webhook is deleted when nothing could be delivered for 24 h, heartbeats included",
		},
		Handshakes: []Handshake{{"X-Hook-Secret", false, isAsanaHandshake}, {"heartbeat", true, isAsanaHeartbeat}},
		verify:     asHMAC(Config{Header: asanaHeader}),
		sample:     sampleAsana,
		Page: Page{
			Title: "Asana", Path: "/hooks/asana/{webhook}", Workflow: `asana/{path.webhook}`,
			Verify: "secret_file: /etc/hooklock/asana.secret",
			Secret: "The X-Hook-Secret of the handshake, which the service stores. Each webhook has its own: give each its own route.",
		},
		Sources: []string{"https://developers.asana.com/docs/webhooks-guide", "Asana's developer docs source/includes/markdown/_18-webhooks.html.md"},
		Notes: []string{
			"Asana gives its events no ID, and one request has several: the body is the event. Its members created_at have milliseconds, so two different events do not have the same body.",
			"If Asana regroups events when it sends again, they run again.",
			"The handshake brings the secret and cannot be checked: a request with X-Hook-Secret, no signature and no events passes through to the service, which echoes it. Have the service take a secret only while you make a webhook.",
			"Asana says of itself that it delivers at most once \"in exceptional circumstances\"; what is refused comes again for a day, and then the webhook is deleted.",
		},
	}
}

const asanaHeader = "X-Hook-Signature"

// isAsanaHandshake: without events, so that none can come without a signature.
func isAsanaHandshake(d *Delivery) bool {
	return d.has("X-Hook-Secret") && !d.has(asanaHeader) && (len(bytes.TrimSpace(d.Body)) == 0 || string(bytes.TrimSpace(d.Body)) == "{}" || isAsanaHeartbeat(d))
}

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
