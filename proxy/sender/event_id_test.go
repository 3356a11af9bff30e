package sender

import (
	"strings"
	"testing"

	"hooklock/idem/naming"
)

// idOf returns the ID of a body under a preset as one text, or "missing" or "ambiguous".
func idOf(t *testing.T, preset, body string, fields ...string) string {
	t.Helper()
	p, _ := Lookup(preset)
	d := &Delivery{Method: []byte("POST"), Target: []byte("/"), Body: []byte(body)}
	for i := 0; i+1 < len(fields); i += 2 {
		d.Fields = append(d.Fields, naming.Field{Name: []byte(fields[i]), Value: []byte(fields[i+1])})
	}
	id := p.ExtractID(d)
	switch id.Status {
	case IDMissing:
		return "missing"
	case IDAmbiguous:
		return "ambiguous"
	}
	if id.Source == "" {
		t.Errorf("%s: no source", preset)
	}
	return strings.Join(id.Parts, "|")
}

func TestCloudEventsAreTheSameEventInEveryMode(t *testing.T) {
	binary := []string{"ce-id", "A%20b", "ce-source", "/ctx/caf%C3%A9%20a", "ce-specversion", "1.0"}
	structured := idOf(t, "cloudevents", `{"specversion":"1.0","id":"A b","source":"/ctx/café a"}`, "Content-Type",
		"Application/CloudEvents+json; charset=utf-8")
	if got := idOf(t, "cloudevents", "{}", binary...); got != structured || got != "/ctx/café a|A b" {
		t.Errorf("binary %q, structured %q", got, structured)
	}
	if got := idOf(t, "cloudevents", "{}", "ce-id", `"a\"b"`, "ce-source", "s"); got != `s|a"b` {
		t.Errorf("quoted: %q", got)
	}
	if got := idOf(t, "cloudevents", "{}", "ce-id", "100%", "ce-source", "s"); got != "s|100%" {
		t.Errorf("a lone percent sign: %q", got)
	}
	batch := []string{"Content-Type", "application/cloudevents-batch+json"}
	if got := idOf(t, "cloudevents", `[{"id":"A b","source":"/ctx/café a"}]`, batch...); got != structured {
		t.Errorf("batch of one: %q", got)
	}
	two := idOf(t, "cloudevents", `[{"id":"1","source":"s"},{"id":"2","source":"s"}]`, batch...)
	if len(two) != 64 || two == idOf(t, "cloudevents", `[{"id":"1","source":"s"},{"id":"3","source":"s"}]`, batch...) {
		t.Errorf("batch of two: %q", two)
	}
	if got := idOf(t, "cloudevents", `{"id":"1","source":"other"}`, "Content-Type",
		"application/cloudevents+json"); got == "s|1" {
		t.Error("the same id of another source is the same event")
	}
	for name, got := range map[string]string{
		"no id":           idOf(t, "cloudevents", `{}`, "ce-source", "s"),
		"empty batch":     idOf(t, "cloudevents", `[]`, batch...),
		"no JSON":         idOf(t, "cloudevents", `{`, "Content-Type", "application/cloudevents+json"),
		"one without any": idOf(t, "cloudevents", `[{"id":"1","source":"s"},{}]`, batch...),
		"id is null": idOf(t, "cloudevents", `{"id":null,"source":"s"}`, "Content-Type",
			"application/cloudevents+json"),
	} {
		if got != "missing" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := idOf(t, "cloudevents", "{}", "ce-id", "1", "ce-id", "2", "ce-source", "s"); got != "ambiguous" {
		t.Errorf("two ids: %q", got)
	}
	if got := idOf(t, "cloudevents", `{"id":"1","id":"2","source":"s"}`, "Content-Type",
		"application/cloudevents+json"); got != "ambiguous" {
		t.Errorf("two members: %q", got)
	}
}

func TestBatchesAreNamedByAllOfTheirElements(t *testing.T) {
	hub := func(attempt string) string {
		return idOf(t, "hubspot", `[{"eventId":1,"subscriptionId":2,"occurredAt":3,"attemptNumber":`+attempt+
			`},{"eventId":1,"subscriptionId":2,"occurredAt":4,"attemptNumber":`+attempt+`}]`)
	}
	if hub("0") != hub("7") || len(hub("0")) != 64 {
		t.Error("HubSpot: attemptNumber changes the ID")
	}
	if one := idOf(t, "hubspot", `[{"eventId":1,"subscriptionId":2,"occurredAt":3,"attemptNumber":0}]`); one == hub(
		"0") {
		t.Error("HubSpot: half of a batch has the ID of the whole")
	}
	if got := idOf(t, "hubspot", `{"objectId":1}`); got != "missing" {
		t.Errorf("HubSpot workflow: %q", got)
	}
	if a, b := idOf(t, "sendgrid", `[{"sg_event_id":"a"},{"sg_event_id":"b"}]`), idOf(t, "sendgrid",
		`[{"sg_event_id":"b"},{"sg_event_id":"a"}]`); a != b || len(a) != 64 {
		t.Errorf("SendGrid: the order counts: %q, %q", a, b)
	}
	if got := idOf(t, "sendgrid", `[{"sg_event_id":"a"},{}]`); got != "missing" {
		t.Errorf("SendGrid, one without an ID: %q", got)
	}
	item := func(success, rest string) string {
		return `{"NotificationRequestItem":{"merchantAccountCode":"M","eventCode":"CAPTURE","pspReference":"P","success":"` + success + `"` + rest + `}}`
	}
	plain := idOf(t, "adyen", `{"notificationItems":[`+item("true", "")+`]}`)
	if later := idOf(t, "adyen", `{"notificationItems":[`+item("true", `,"eventDate":"later"`)+`]}`); later != plain ||
		plain != "M|CAPTURE|P|true" {
		t.Errorf("Adyen: %q, with another date %q", plain, later)
	}
	if failed := idOf(t, "adyen", `{"notificationItems":[`+item("false", "")+`]}`); failed == plain {
		t.Error("Adyen: success does not count")
	}
	if got := idOf(t, "adyen", `{"notificationItems":[`+item("true", `,"pspReference":"Q"`)+`]}`); got != "ambiguous" {
		t.Errorf("Adyen, a member twice: %q", got)
	}
	if got := idOf(t, "adyen", `{"type":"balancePlatform"}`); got != "missing" {
		t.Errorf("Adyen platform webhook: %q", got)
	}
}

func TestEventGridNamesTheSubscription(t *testing.T) {
	body := `[{"id":"1","topic":"/t"}]`
	if got := idOf(t, "eventgrid", body, "aeg-subscription-name", "S"); got != "S|/t|1" {
		t.Errorf("own schema: %q", got)
	}
	if got := idOf(t, "eventgrid", `{"id":"1","source":"/t"}`, "Content-Type",
		"application/cloudevents+json"); got != "/t|1" {
		t.Errorf("CloudEvents schema: %q", got)
	}
	if got := idOf(t, "eventgrid", `[{"id":"1"}]`); got != "missing" {
		t.Errorf("without a topic: %q", got)
	}
}

func TestSNSTakesTheIDFromTheSignedBody(t *testing.T) {
	arn := []string{"x-amz-sns-subscription-arn", "arn:1"}
	for name, c := range map[string]struct {
		body   string
		fields []string
		want   string
	}{
		"envelope": {`{"MessageId":"m"}`, arn, "arn:1|m"},
		"another subscription": {`{"MessageId":"m"}`, []string{"x-amz-sns-subscription-arn", "arn:2"},
			"arn:2|m"},
		"a header that says otherwise": {`{"MessageId":"m"}`, append([]string{"x-amz-sns-message-id", "fresh"}, arn...),
			"ambiguous"},
		"raw delivery": {`{"MessageId":"of the application"}`,
			append([]string{"x-amz-sns-message-id", "m", "x-amz-sns-rawdelivery", "true"}, arn...), "arn:1|m"},
		"no subscription": {`{"MessageId":"m"}`, nil, "missing"},
	} {
		if got := idOf(t, "sns", c.body, c.fields...); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestDiscordEventsHaveNoID(t *testing.T) {
	if got := idOf(t, "discord", `{"id":"1","application_id":"2","type":2}`); got != "2|1" {
		t.Errorf("interaction: %q", got)
	}
	if got := idOf(t, "discord", `{"id":"1","application_id":"2","type":1,"event":{}}`); got != "missing" {
		t.Errorf("webhook event: %q", got)
	}
}
