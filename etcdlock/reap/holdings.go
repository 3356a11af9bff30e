package reap

import (
	"context"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// holdingsPeriod is how often the holds are counted. That is one small read, and another one while
// there are any; a watch would tell each process of each heartbeat.
const holdingsPeriod = 15 * time.Second

// Holdings knows how many holds there are. It is safe for concurrent use.
type Holdings struct {
	reaper *Reaper
	keeper *session.Keeper
	find   func(context.Context, idem.ExecutionID) (*idem.Found, error)

	mu     sync.Mutex
	count  int
	oldest idem.ExecutionID
	since  time.Time // when the oldest one's execution began
}

// NewHoldings returns holdings that know nothing before Run. find returns where an execution is
// now.
func NewHoldings(r *Reaper, k *session.Keeper,
	find func(context.Context, idem.ExecutionID) (*idem.Found, error)) *Holdings {
	return &Holdings{reaper: r, keeper: k, find: find}
}

// Count returns the number of holds at the last look, and when the oldest of their executions
// began; the zero time if there is none.
func (h *Holdings) Count() (n int, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count, h.since
}

// Run looks from time to time, until ctx ends.
func (h *Holdings) Run(ctx context.Context) {
	for {
		if err := h.keeper.WaitReady(ctx); err != nil {
			return // ctx has ended, or the Store is closed
		}
		looking, cancel := context.WithTimeout(ctx, h.reaper.options.Pool.Txn)
		h.Look(looking)
		cancel()
		if link.Sleep(ctx, holdingsPeriod) != nil {
			return
		}
	}
}

// Look counts. What it cannot read now stays as it was.
func (h *Holdings) Look(ctx context.Context) {
	prefix := h.reaper.options.Layout.All(protocol.KindHolds)
	answers, _, err := h.reaper.options.Pool.Read(ctx,
		clientv3.OpGet(prefix, append(clientv3.WithFirstCreate(), clientv3.WithKeysOnly())...))
	if err != nil {
		return
	}
	page := answers[0].GetResponseRange()
	if len(page.Kvs) == 0 {
		h.setCounts(0, "", time.Time{})
		return
	}
	oldest := idem.ExecutionID(strings.TrimPrefix(string(page.Kvs[0].Key), prefix))
	h.mu.Lock()
	since, same := h.since, h.oldest == oldest
	h.mu.Unlock()
	if !same || since.IsZero() {
		found, err := h.find(ctx, oldest)
		switch {
		case err != nil: // it is ending, or cannot be read: the next look asks again
			since = time.Time{}
		case found.Lock != nil:
			since = found.Lock.StartedAt
		case found.Record != nil: // cools
			since = found.Record.StartedAt
		}
	}
	h.setCounts(int(page.Count), oldest, since)
}

func (h *Holdings) setCounts(n int, oldest idem.ExecutionID, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count, h.oldest, h.since = n, oldest, since
}
