package link

import (
	"strings"
	"testing"
	"time"
)

func TestTheSpaceSaysHowFastItGrowsAndWhenItIsFull(t *testing.T) {
	const mib = 1 << 20
	for want, anHour := range map[string]int64{
		"; what is in use grows by 6.0 MiB an hour, and fills the quota in 14 days":     6 * mib,
		"; what is in use grows by 600.0 MiB an hour, and fills the quota in 1.4 hours": 600 * mib,
		"; it does not grow": -mib,
	} {
		var g Growth
		at := time.Unix(1_800_000_000, 0)
		if _, known := g.AnHour(); known {
			t.Error("known of nothing")
		}
		var s Space
		for second := range 2 * 60 * 60 {
			s = Space{Size: 2000 * mib, InUse: 10*mib + max(0, anHour*int64(second)/3600), Quota: 2048 * mib}
			history := int64(second%300) * mib / 100 // it comes, and goes with the next compaction
			g.Note(at.Add(time.Duration(second)*time.Second), s.InUse+history)
		}
		if growth, known := g.AnHour(); !known || s.GrowthText(growth) != want {
			t.Errorf("%s, want %s", s.GrowthText(growth), want)
		}
		if len(g.steps) != 12 {
			t.Errorf("%d steps", len(g.steps))
		}
	}
	var long Growth
	for hour := range 100 * 6 {
		long.Note(time.Unix(int64(hour)*600, 0), int64(hour))
	}
	if len(long.steps) != growthSteps {
		t.Errorf("%d steps are kept", len(long.steps))
	}
}

func TestAnEtcdThatDoesNotSayItsQuotaIsNotFullAtSomeTime(t *testing.T) {
	s := Space{Size: 3 << 20, InUse: 1 << 20}
	if got := s.Text() +
		s.GrowthText(
			1<<20); got != "3.0 MiB, 1.0 MiB of it in use, of a quota that it does not say; what is in use grows by 1.0 MiB an hour" || strings.Contains(got, "Inf") {
		t.Errorf("%s", got)
	}
}
