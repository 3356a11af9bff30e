package sender

import (
	"testing"

	"hooklock/idem"
	"hooklock/idem/naming"
)

func TestPubSubMessagesAreToldApartByWhatTheyCarryAndElseNotAtAll(t *testing.T) {
	p, _ := Lookup("pubsub")
	keys, err := naming.NewKeys(naming.KeySpec{Route: "r", Workflow: "w", EventID: p.EventID, Missing: p.OnMissing})
	if err != nil {
		t.Fatal(err)
	}
	const wrapped = `{"message":{"data":"e30=","messageId":"1"},"subscription":"projects/p/subscriptions/s"}`
	metadata := func(id string) []naming.Field {
		return []naming.Field{
			field("X-Goog-Pubsub-Subscription-Name", "projects/p/subscriptions/s"),
			field("X-Goog-Pubsub-Message-Id", id),
		}
	}
	for name, c := range map[string]struct {
		a, b naming.Message
		same bool
		id   string
	}{
		"wrapped": {naming.Message{Body: []byte(wrapped)}, naming.Message{Body: []byte(wrapped)}, true,
			"projects/p/subscriptions/s/1"},
		"unwrapped, with metadata": {
			naming.Message{Fields: metadata("1"), Body: []byte("{}")},
			naming.Message{Fields: metadata("1"), Body: []byte("{}")}, true, "projects/p/subscriptions/s/1",
		},
		"two of them with equal bytes": {
			naming.Message{Fields: metadata("1"), Body: []byte("{}")},
			naming.Message{Fields: metadata("2"), Body: []byte("{}")}, false, "projects/p/subscriptions/s/1",
		},
		"a publisher that writes as if it were wrapped": {
			naming.Message{Fields: metadata("1"), Body: []byte(wrapped)},
			naming.Message{Fields: metadata("2"), Body: []byte(wrapped)}, false, "projects/p/subscriptions/s/1",
		},
		"unwrapped, without metadata": {naming.Message{Body: []byte("{}")}, naming.Message{Body: []byte("{}")}, false,
			""},
	} {
		var found [2]naming.Names
		for i, m := range []naming.Message{c.a, c.b} {
			if found[i], err = keys.Name(&m); err != nil {
				t.Fatal(err)
			}
		}
		if same := found[0].Key == found[1].Key && found[0].Key != idem.Key(""); same != c.same ||
			found[0].EventID != c.id || found[0].Missing {
			t.Errorf("%s: %+v and %+v", name, found[0], found[1])
		}
	}
}
