package etcdlock

import (
	"context"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// holdingsPeriod is how often the holds are counted. That is one small read, and another one while there are any; a watch would tell each
// process of each heartbeat.
const holdingsPeriod = 15 * time.Second

// holdings knows how many holds there are, for whoever watches the process.
type holdings struct {
	control *Control

	mu     sync.Mutex
	n      int
	oldest idem.ExecutionID
	since  time.Time // when the oldest one's execution began
}

// seen is what was there when this process looked last.
func (h *holdings) seen() (n int, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.n, h.since
}

// run looks from time to time, until ctx ends.
func (h *holdings) run(ctx context.Context) {
	for {
		if err := h.control.waitReady(ctx); err != nil {
			return // ctx has ended, or the Store is closed
		}
		looking, cancel := context.WithTimeout(ctx, link.TxnTimeout)
		h.look(looking)
		cancel()
		if link.Sleep(ctx, holdingsPeriod) != nil {
			return
		}
	}
}

// look counts. What it cannot read now stays as it was.
func (h *holdings) look(ctx context.Context) {
	prefix := h.control.layout.Root + protocol.KindHolds
	answers, _, err := h.control.pool.Read(ctx, clientv3.OpGet(prefix, append(clientv3.WithFirstCreate(), clientv3.WithKeysOnly())...))
	if err != nil {
		return
	}
	page := answers[0].GetResponseRange()
	if len(page.Kvs) == 0 {
		h.set(0, "", time.Time{})
		return
	}
	oldest := idem.ExecutionID(strings.TrimPrefix(string(page.Kvs[0].Key), prefix))
	h.mu.Lock()
	since, same := h.since, h.oldest == oldest
	h.mu.Unlock()
	if !same {
		found, err := h.control.Execution(ctx, oldest)
		switch {
		case err != nil: // it is going, or cannot be read: the next look finds another one
			since = time.Time{}
		case found.Lock != nil:
			since = found.Lock.StartedAt
		case found.Record != nil: // cools
			since = found.Record.StartedAt
		}
	}
	h.set(int(page.Count), oldest, since)
}

func (h *holdings) set(n int, oldest idem.ExecutionID, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n, h.oldest, h.since = n, oldest, since
}
