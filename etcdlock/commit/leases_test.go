package commit

import (
	"context"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func TestALeaseOutlivesEachRecordsRetentionByNoMoreThanTheSlack(t *testing.T) {
	for _, retention := range []time.Duration{1, time.Second, 1500 * time.Millisecond, 10 * time.Minute,
		168 * time.Hour} {
		now := time.Unix(0, 0)
		ends := map[clientv3.LeaseID]time.Time{}
		grant := func(_ context.Context, ttl time.Duration) (clientv3.LeaseID, error) {
			id := clientv3.LeaseID(len(ends) + 1)
			ends[id] = now.Add(time.Duration(link.LeaseSeconds(ttl)) * time.Second)
			return id, nil
		}
		clock := link.Clock{Now: func() time.Time { return now }, Boot: func() time.Duration { return 0 }}
		b := NewLeases(grant, nil, clock, NewTasks())
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
			if left := ends[lease].Sub(now); left < retention ||
				left > wholeSeconds(retention)+idem.ExtraRetention(retention)+
					time.Second {
				t.Errorf("retention %v: a record on lease %d lives for %v", retention, lease, left)
			}
			now = now.Add(OpenFor(retention) / 7)
		}
		if len(ends) < 2 || len(ends) > 40 {
			t.Errorf("retention %v: %d leases", retention, len(ends))
		}
	}
}

// noted is the list of leases, which keeps how many rows each index was written with.
type noted struct {
	mu   sync.Mutex
	rows map[clientv3.LeaseID][]int
}

func (n *noted) ListLease(context.Context, string, clientv3.LeaseID, time.Duration) error { return nil }

func (n *noted) IndexLease(_ context.Context, _ string, lease clientv3.LeaseID, rows []protocol.Row) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rows[lease] = append(n.rows[lease], len(rows))
}

// An index that is written once more, without the rows, would hide what is on its lease.
func TestAnIndexIsWrittenOnceAlsoWhereTheNextLeaseIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var spawned sync.WaitGroup
		arrive := make(chan struct{}, 1)
		arrive <- struct{}{}
		leases := clientv3.LeaseID(0)
		grant := func(context.Context, time.Duration) (clientv3.LeaseID, error) {
			<-arrive
			leases++
			return leases, nil
		}
		n := &noted{rows: map[clientv3.LeaseID][]int{}}
		clock := link.Clock{Now: time.Now, Boot: func() time.Duration { return 0 }}
		tasks := NewTasks()
		b := NewLeases(grant, n, clock, tasks)
		taken := LeaseKeys - leaseLow + 1
		for range taken {
			if _, err := b.Take(t.Context(), time.Hour, "records", &protocol.Row{}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // the second lease is asked for
		spawned.Go(func() { b.Finish(t.Context()) })
		synctest.Wait()
		arrive <- struct{}{}
		spawned.Wait()
		if want := map[clientv3.LeaseID][]int{1: {taken}, 2: {0}}; !reflect.DeepEqual(n.rows, want) {
			t.Errorf("rows of the indexes: %v, want %v", n.rows, want)
		}
	})
}
