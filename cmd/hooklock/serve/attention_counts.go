package serve

import (
	"context"
	"slices"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/notify"
	"hooklock/cmd/hooklock/cli"
	"hooklock/config"
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
	self := slices.IndexFunc(notes, func(n idem.ReplicaNote) bool { return n.Self })
	return self < 0 || !slices.ContainsFunc(notes, func(n idem.ReplicaNote) bool {
		return n.Alive && !n.Stopped && n.Writer < notes[self].Writer
	})
}

// attentionCount returns the latest count, for metrics.
func (s *Service) attentionCount() map[string]int {
	if latest := s.attention.Load(); latest != nil {
		return *latest
	}
	return nil
}

// openNotify starts telling people what needs attention. It needs the API, which makes the list. A
// stop waits for the message that is being sent, so that it is not sent again after a restart.
func (s *Service) openNotify(context.Context) error {
	s.notifier = notify.New(&notify.Options{
		Ledger: s.Store.Control, Attention: s.api.Attention, Replica: s.replica, Log: s.Log.Logger,
		Told: s.telemetry.OnNotified,
	})
	s.notifier.SetSettings(notifySettings(s.config))
	s.runBeside("notify", s.notifier.Run)
	s.runBeside("count of attention", s.countAttention)
	s.runBeside("failures at other replicas", s.followStandings)
	if s.embedded == nil {
		s.runBeside("space of etcd", s.space.lookUntilEnd)
	}
	return nil
}

func notifySettings(c *config.Config) notify.Settings {
	return notify.Settings{URL: c.Notify.URL.Reveal(), Every: c.Notify.Every, Routes: c.Notify.Routes}
}

// TestNotify implements admin.Process.
func (s *Service) TestNotify(ctx context.Context) client.NotifyTest {
	answer, err := s.notifier.Test(ctx)
	result := client.NotifyTest{Taken: err == nil, Status: answer.Status, Answer: answer.Text}
	if err != nil {
		result.Problem = err.Error()
	}
	return result
}
