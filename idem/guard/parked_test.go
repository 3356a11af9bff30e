package guard

import (
	"testing"
	"time"

	"hooklock/idem"
)

func TestAnUpstreamAsksForAPauseInSecondsOrByADate(t *testing.T) {
	now := time.Date(2026, time.October, 21, 7, 28, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"7": 7 * time.Second, " 90 ": 90 * time.Second, "soon": 0, "-1": 0,
		"Wed, 21 Oct 2026 07:28:30 GMT": 30 * time.Second, "Wednesday, 21-Oct-26 07:29:00 GMT": time.Minute,
		"Wed Oct 21 07:28:05 2026":      5 * time.Second,
		"Wed, 21 Oct 2026 07:27:00 GMT": 0, "Wed, 21 Oct 2026 07:28:30 CET": 0,
	} {
		if got := retryAfter(&idem.Answer{Header: []idem.HeaderField{{Name: "retry-after", Value: text}}},
			now); got != want {
			t.Errorf("Retry-After %q: %v, want %v", text, got, want)
		}
	}
}
