package serve

import (
	"context"
	"time"

	"hooklock/admin/client"
	"hooklock/cmd/hooklock/cli"
	"hooklock/idem"
)

// attentionEvery is the time between two counts of what needs attention, for metrics.
const attentionEvery = time.Minute

// countAttention counts, until ctx ends.
func (s *Service) countAttention(ctx context.Context) {
	for more := true; more; more = cli.Pause(ctx, attentionEvery) {
		s.attention.Store(s.attentionNow(ctx))
	}
}

// attentionNow counts the items of each kind; nil: another replica counts. Of what cannot be read
// the list says nothing, so the kinds that it has not are left out then, and not counted as 0.
func (s *Service) attentionNow(ctx context.Context) *map[string]int {
	reading, cancel := context.WithTimeout(ctx, s.requestTimeout)
	notes, err := s.Store.Replicas(reading)
	cancel()
	if err == nil && !isFirst(notes) {
		return nil
	}
	list := s.api.Attention(ctx)
	return countKinds(&list)
}

func countKinds(list *client.Attention) *map[string]int {
	counts := map[string]int{}
	if len(list.NotKnown) == 0 {
		for _, kind := range client.AttentionKinds() {
			counts[kind] = 0
		}
	}
	for i := range list.Items {
		counts[list.Items[i].Kind]++
	}
	return &counts
}

// isFirst reports whether this process is the first of those that are alive.
func isFirst(notes []idem.ReplicaNote) bool {
	own := ""
	for i := range notes {
		if notes[i].Self {
			own = notes[i].Writer
		}
	}
	for i := range notes {
		if n := &notes[i]; n.Alive && !n.Stopped && n.Writer < own {
			return false
		}
	}
	return true
}

// attentionCount returns the latest count, for metrics.
func (s *Service) attentionCount() map[string]int {
	if latest := s.attention.Load(); latest != nil {
		return *latest
	}
	return nil
}
