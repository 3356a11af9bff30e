package commit

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/idem"
)

func TestALeaseOutlivesEachRecordsRetentionByNoMoreThanTheSlack(t *testing.T) {
	for _, retention := range []time.Duration{1, time.Second, 1500 * time.Millisecond, 10 * time.Minute, 168 * time.Hour} {
		now := time.Unix(0, 0)
		ends := map[clientv3.LeaseID]time.Time{}
		grant := func(_ context.Context, ttl time.Duration) (clientv3.LeaseID, error) {
			id := clientv3.LeaseID(len(ends) + 1)
			ends[id] = now.Add(time.Duration(link.LeaseSeconds(ttl)) * time.Second)
			return id, nil
		}
		clock := link.Clock{Now: func() time.Time { return now }, Boot: func() time.Duration { return 0 }}
		b := NewLeases(grant, nil, clock, func(f func(context.Context)) bool { go f(t.Context()); return true })
		for range 100 {
			lease, err := b.Take(t.Context(), retention, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			b.mu.Lock()
			coming := b.current[class{wholeSeconds(retention), ""}].granting
			b.mu.Unlock()
			if coming != nil {
				<-coming
			}
			if left := ends[lease].Sub(now); left < retention || left > wholeSeconds(retention)+idem.Slack(retention)+time.Second {
				t.Errorf("retention %v: a record on lease %d lives for %v", retention, lease, left)
			}
			now = now.Add(OpenFor(retention) / 7)
		}
		if len(ends) < 2 || len(ends) > 40 {
			t.Errorf("retention %v: %d leases", retention, len(ends))
		}
	}
}
