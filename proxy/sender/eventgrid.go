package sender

import (
	"bytes"
	"slices"
	"time"

	"github.com/valyala/fastjson"

	"hooklock/idem"
)

// EventGrid returns the preset of EventGrid.
func (known) EventGrid() Preset {
	return Preset{
		Name: "eventgrid", Scheme: "none", ExtractID: eventGridID, IDHeaders: []string{"aeg-subscription-name",
			"ce-source", "ce-id"}, IDText: "aeg-subscription-name, and topic and id (CloudEvents: source and id) of " +
			"every element", OnMismatch: idem.MismatchReplayUnsigned,
		Respond: map[idem.Decision]int{idem.DecisionUnverified: 503, idem.DecisionRejected: 503},
		Facts: Facts{
			Timeout: 30 * time.Second, Success: []int{200, 201, 202, 203, 204}, Retries: RetriesSome, RetriesFor: day,
			RetriesOn: "after all but 200 to 204 and 400, 401, 403, 413; after 503 no sooner than 30 s",
		},
		Handshakes: []Handshake{
			{"SubscriptionValidation", false,
				aegType("SubscriptionValidation", "Microsoft.EventGrid.SubscriptionValidationEvent")},
			{"SubscriptionDeletion", false,
				aegType("SubscriptionDeletion", "Microsoft.EventGrid.SubscriptionDeletedEvent")},
			{"OPTIONS", false, isWebHookOptions},
		},
		Page: Page{
			Title:    "Azure Event Grid",
			Workflow: `eventgrid/{header.aeg-subscription-name ?? "other"}`,
			SampleID: "SAMPLE//subscriptions/sample/one",
		},
		Sources: []string{"MicrosoftDocs/azure-docs articles/event-grid/delivery-and-retry.md",
			"MicrosoftDocs/azure-docs articles/event-grid/webhook-event-delivery.md"},
		Notes: []string{
			"Put a secret into the URL's query, or let the service check an Entra ID token.",
		},
		sample: func(s *sample) {
			s.setBody(
				`[{"id":%s,"topic":"/subscriptions/sample","subject":"sample","data":{},"eventType":"Sample.Event","eventTime":"`+s.rfc3339()+`","metadataVersion":"1","dataVersion":"1"}]`, s.id)
			s.addField("aeg-event-type", "Notification")
			s.addField("aeg-subscription-name", "SAMPLE")
		},
	}
}

// eventGridID returns topic and id in Event Grid's own schema, source and id in the CloudEvents
// schema. The name of the subscription comes first, because every subscription gets the event.
func eventGridID(d *Delivery) EventID {
	subscription, count := d.findHeader("aeg-subscription-name")
	if count > 1 {
		return ambiguousID
	}
	kind, _ := d.findHeader("Content-Type")
	if bytes.HasPrefix(bytes.ToLower(kind), []byte("application/cloudevents")) || d.hasHeader("ce-id") {
		return scopedID(cloudEventID(d), string(subscription))
	}
	return scopedID(batchOf("eventgrid", d.Body, "topic", "id"), string(subscription))
}

// scopedID prepends the name of the subscription to an ID.
func scopedID(id EventID, subscription string) EventID {
	if id.Status == IDFound && subscription != "" {
		id.Parts = append([]string{subscription}, id.Parts...)
	}
	return id
}

// aegType returns a function that recognises a handshake by Event Grid's header and the type of
// every event in the body. Nothing is signed, so the header alone would let any event past its
// lock. A request that does not match runs as an event, so the service answers a handshake in any
// case.
func aegType(value, eventType string) func(*Delivery) bool {
	return func(d *Delivery) bool {
		kind, count := d.findHeader("aeg-event-type")
		if count != 1 || !equalName(kind, value) {
			return false
		}
		v, err := parseJSON(d.Body)
		if err != nil {
			return false
		}
		if v.Type() == fastjson.TypeObject { // CloudEvents schema
			return hasMember(v, "type", eventType)
		}
		events := v.GetArray()
		return len(events) > 0 && !slices.ContainsFunc(events, func(e *fastjson.Value) bool {
			return !hasMember(e, "eventType", eventType)
		})
	}
}
