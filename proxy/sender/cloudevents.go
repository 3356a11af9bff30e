package sender

import (
	"bytes"
	"net/url"
	"strings"
	"time"

	"hooklock/idem"
)

// CloudEvents returns the preset of CloudEvents.
func (known) CloudEvents() Preset {
	return Preset{
		Name: "cloudevents", Scheme: "none", ExtractID: cloudEventID, IDHeaders: []string{"ce-source", "ce-id"},
		IDText: "source and id, in binary, structured and batched mode", OnMismatch: idem.MismatchReplayUnsigned,
		WaitTimeout: 5 * time.Second,
		Respond: map[idem.Decision]int{
			idem.DecisionInFlight: 429, idem.DecisionLocked: 429, idem.DecisionWaitTimeout: 429,
			idem.DecisionQueueFull: 429, idem.DecisionMismatch: 429,
			idem.DecisionUnknown: 503, idem.DecisionExhausted: 503, idem.DecisionPaced: 429,
			idem.DecisionUnverified: 503, idem.DecisionRejected: 503,
		},
		Facts: Facts{
			UsesAnswer: usesEveryAnswer, Answer: "a response may carry an event or the outcome",
		},
		Handshakes: []Handshake{{"OPTIONS", false, isWebHookOptions}},
		Page: Page{
			Title:    "CloudEvents over HTTP",
			Workflow: `cloudevents/{header.ce-source ?? "other"}`,
			SampleID: "/hooklock/sample/one",
		},
		Sources: []string{"cloudevents/spec spec.md", "cloudevents/spec bindings/http-protocol-binding.md",
			"cloudevents/spec http-webhook.md"},
		Notes: []string{
			"source and id are the same key in binary mode (percent-decoded once) and structured mode.",
			"Every sender must observe 429 with Retry-After, so that is the refusal.",
			"A sender may give a re-sent event a new ID; then it runs again.",
		},
		sample: func(s *sample) {
			s.setBody(`{"sample":%s}`, s.id)
			s.addField("ce-specversion", "1.0")
			s.addField("ce-type", "com.example.sample")
			s.addField("ce-source", "/hooklock/sample")
			s.addField("ce-id", s.id)
			s.addField("ce-time", s.rfc3339())
		},
	}
}

// cloudEventID returns source and id in the three modes of the HTTP binding. Content-Type
// determines the mode; its case does not matter.
func cloudEventID(d *Delivery) EventID {
	kind, kinds := d.findHeader("Content-Type")
	if kinds > 1 {
		return ambiguousID
	}
	kind = bytes.ToLower(bytes.TrimSpace(kind))
	switch {
	case bytes.HasPrefix(kind, []byte("application/cloudevents-batch")):
		return batchOf("cloudevents", d.Body, "source", "id")
	case bytes.HasPrefix(kind, []byte("application/cloudevents")):
		return bodyMembers("cloudevents", d, "body.source", "body.id")
	}
	source, sources := d.findHeader("ce-source")
	id, ids := d.findHeader("ce-id")
	if sources > 1 || ids > 1 {
		return ambiguousID
	}
	return foundID("cloudevents", ceHeader(source), ceHeader(id))
}

// ceHeader removes the quotes and one level of percent-encoding from an attribute in a header (HTTP
// binding, 3.1.3.2). It leaves an invalid encoding as it is.
func ceHeader(value []byte) string {
	text := string(value)
	if len(text) >= 2 && text[0] == '"' && text[len(text)-1] == '"' {
		text = unescapeQuoted(text[1 : len(text)-1])
	}
	if decoded, err := url.PathUnescape(text); err == nil {
		return decoded
	}
	return text
}

func unescapeQuoted(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// isWebHookOptions reports whether d is the request of the abuse protection of CloudEvents' webhook
// spec, section 4.
func isWebHookOptions(d *Delivery) bool {
	return string(d.Method) == "OPTIONS" && d.hasHeader("WebHook-Request-Origin")
}
