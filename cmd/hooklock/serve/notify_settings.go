package serve

import (
	"context"

	"hooklock/admin/client"
	"hooklock/admin/notify"
	"hooklock/config"
)

// openNotify starts telling people what needs attention. It needs the API, which makes the list. A
// stop waits for the message that is being sent, so that it is not sent again after a restart.
func (s *Service) openNotify(context.Context) error {
	s.notifier = notify.New(&notify.Options{
		Ledger: s.Store.Control, Attention: s.api.Attention, Replica: s.replica, Log: s.Log.Logger,
		Told: s.telemetry.OnNotified,
	})
	s.notifier.SetSettings(notifySettings(s.config))
	s.beside("notify", s.notifier.Run)
	s.beside("count of attention", s.countAttention)
	s.beside("failures at other replicas", s.followStandings)
	if s.embedded == nil {
		s.beside("space of etcd", s.space.follow)
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
