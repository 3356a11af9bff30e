package sender

import (
	"testing"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
)

func TestThePresetsOrderReadsItsSample(t *testing.T) {
	found := 0
	for _, p := range Presets() {
		if p.Order == "" {
			continue
		}
		found++
		keys, err := naming.NewKeys(naming.KeySpec{Route: "r", Workflow: "w", OrderBy: p.Order, OrderUnit: p.OrderUnit})
		if err != nil {
			t.Fatal(err)
		}
		at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
		order := func(at time.Time) *idem.Order {
			s, err := Sample(p.Name, []byte("whsec_AAAA"), at)
			if err != nil {
				t.Fatalf("%s: %v", p.Name, err)
			}
			n, err := keys.Name(&naming.Message{Method: []byte(s.Method), Target: []byte(s.Target), Fields: s.Fields,
				Body: s.Body})
			if err != nil || n.Order == nil {
				t.Fatalf("%s: %v, %s is %q in %s %s", p.Name, err, p.Order, n.Ordered, s.Fields, s.Body)
			}
			return n.Order
		}
		newest, _ := idem.ParsePosition(order(at).At)
		if stale := order(at.Add(-37 * time.Second)).Against(&idem.HighWaterMark{At: newest}); stale == nil ||
			stale.By != "37s" {
			t.Errorf("%s: an event of 37 seconds before is %+v", p.Name, stale)
		}
	}
	if found != 5 {
		t.Errorf("%d presets have an order", found)
	}
}
