package admin

import (
	"testing"
	"time"

	"hooklock/idem"
)

func TestAnExecutionShowsWhatTheServiceWasAsked(t *testing.T) {
	f := newFleet(t, nil)
	end := failure()
	end.Asked = &idem.Asked{
		Outcome: idem.Unknown, At: time.Now(), URL: "/orders/1", Status: 500, Detail: "the service answered 500",
		Times: 5,
	}
	d := f.run("w", "1")
	f.settle(d, end)
	a, _ := f.execution(string(d.Lock().Execution)).json["asked"].(map[string]any)
	for member, want := range map[string]string{
		"outcome": "unknown", "url": "/orders/1", "detail": "the service answered 500",
	} {
		if got := a[member]; got != want {
			t.Errorf("%s: %q, want %q", member, got, want)
		}
	}
}

func TestAnExecutionShowsThatTheFileOfADeadProcessProvedItsEnd(t *testing.T) {
	f := newFleet(t, nil)
	end := success()
	end.ProvenAt = time.Date(2026, 11, 28, 2, 13, 31, 0, time.UTC)
	d := f.run("w", "1")
	f.settle(d, end)
	if got := f.execution(string(d.Lock().Execution)).text("provenAt"); got != "2026-11-28T02:13:31.000Z" {
		t.Errorf("provenAt: %q", got)
	}
}
