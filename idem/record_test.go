package idem

import (
	"testing"
	"time"
)

func TestARecordMayBeBelievedForASixteenthOfItsRetention(t *testing.T) {
	for retention, want := range map[time.Duration]time.Duration{
		time.Second: 5 * time.Second, 80 * time.Second: 5 * time.Second, 160 * time.Second: 10 * time.Second,
		24 * time.Hour: 90 * time.Minute, 1000 * time.Hour: 6 * time.Hour,
	} {
		if got := ExtraRetention(retention); got != want {
			t.Errorf("%s: %s, want %s", retention, got, want)
		}
	}
}
