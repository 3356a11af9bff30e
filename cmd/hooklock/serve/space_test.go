package serve

import (
	"testing"
	"time"

	"hooklock/idem"
)

func TestTheFullestMemberOfAClusterSaysWhenItIsFull(t *testing.T) {
	const mib = 1 << 20
	var c clusterSpace
	if got := c.spaceText(); got != "" {
		t.Errorf("before a look: %q", got)
	}
	began := time.Unix(1_800_000_000, 0)
	for minute := range 120 {
		c.noteMembers(began.Add(time.Duration(minute)*time.Minute), []idem.StoreSpace{
			{Member: "http://a:2379", Size: 100 * mib, InUse: 50 * mib, Quota: 1000 * mib},
			{Member: "http://b:2379", Size: 300 * mib, InUse: int64(100+minute) * mib, Quota: 1000 * mib},
		})
	}
	const want = "http://b:2379, the fullest of 2, has 300.0 MiB, 219.0 MiB of it in use, of a quota of 1000.0 MiB; what is in use grows by 60.0 MiB an hour, and fills the quota in 13.0 hours"
	if got := c.spaceText(); got != want {
		t.Errorf("%s", got)
	}
	c.noteMembers(began.Add(2*time.Hour),
		[]idem.StoreSpace{{Member: "http://b:2379", Size: 1001 * mib, InUse: 990 * mib, Quota: 1000 * mib, Full: true}})
	if got := c.spaceText(); got != "http://b:2379 has 1001.0 MiB, 990.0 MiB of it in use, of a quota of 1000.0 MiB; it is full, "+
		"and nothing new is taken: compact and defragment it or raise its quota, then disarm the NOSPACE alarm" {
		t.Errorf("%s", got)
	}
	c.noteMembers(began.Add(2*time.Hour), nil)
	if got := c.spaceText(); got != "" {
		t.Errorf("none answers: %q", got)
	}
}
