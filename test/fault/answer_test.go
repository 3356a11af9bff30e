package fault

import (
	"strings"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/fault/cluster"
)

func TestTheTrueAnswerGoesOutWhenItsRecordIsLateAndTheRecordFollows(t *testing.T) {
	t.Parallel()
	s := newStage(t, etcdtest.Start(t), "retry", func(s *stage) { s.config.SessionTTL = 30 * time.Second })
	s.up.Next(func(x *cluster.Exchange) bool {
		_ = x.ReadBody()
		x.Effect()
		s.wire.HoldRequest(settles)
		return x.Answer(200, x.Receipt()) == nil
	})
	s.send()
	first := s.sent()
	if first.String() != "200 executed, not recorded" || first.Body != s.up.Of(s.delivery.Event)[0].Receipt() {
		t.Errorf("the sender got %v %q", first, first.Body)
	}
	if a := s.copy(); a.Code != "execution_in_flight" {
		t.Errorf("a copy got %v before the record", a)
	}
	s.wire.Blackhole(false)
	if end := s.journal.Await("the record",
		cluster.RecordOf(s.delivery.Event)); end.Value.Ended() != "SUCCESS executed" {
		t.Errorf("the record says %s", end.Value.Ended())
	}
	if a := s.copy(); a.String() != "200 replayed" || a.Body != first.Body {
		t.Errorf("a copy got %v %q after the record", a, a.Body)
	}
	if n := len(s.up.Of(s.delivery.Event)); n != 1 {
		t.Errorf("the upstream saw the event %d times", n)
	}
}

func TestAnAnswerThatTheUpstreamCutsOffIsNeverASuccess(t *testing.T) {
	etcd := etcdtest.Start(t)
	for name, c := range map[string]struct{ limit, saw, wrote string }{
		"no answer":   {"8MiB", "502 upstream_failed", ""},
		"half a head": {"8MiB", "502 upstream_failed", "HTTP/1.1 200 Sa"},
		"half a body": {"8MiB", "502 upstream_failed",
			answerHalf + strings.Repeat("x", 50000)},
		"half a body that is passed on": {"1KiB", "200, then cut", answerHalf + strings.Repeat("x", 50000)},
		"half a chunked body that is passed on": {"1KiB", "200, then cut",
			"HTTP/1.1 200 Said\r\nTransfer-Encoding: chunked\r\n\r\n8000\r\n" + strings.Repeat("x", 0x8000) + "\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, etcd, "retry", func(s *stage) { s.config.ResponseBody = c.limit })
			s.up.Next(func(x *cluster.Exchange) bool {
				_ = x.ReadBody()
				x.Effect()
				_ = x.Write(c.wrote)
				return false
			})
			s.send()
			if saw := s.sent(); saw.String() != c.saw || saw.Code != "" && saw.Executed != "unknown" {
				t.Errorf("the sender saw %v (executed: %s), not %s", saw, saw.Executed, c.saw)
			}
			if end := s.journal.Await("the record",
				cluster.RecordOf(s.delivery.Event)); end.Value.Ended() != "FAILED unknown" {
				t.Errorf("the record says %s", end.Value.Ended())
			}
			if n := len(s.up.Of(s.delivery.Event)); n != 1 {
				t.Errorf("the upstream saw the event %d times", n)
			}
			if a := s.copy(); a.String()+attempt(a, s.up.Of(s.delivery.Event)) != "200 executed, attempt 2" {
				t.Errorf("a copy got %v", a)
			}
			s.up.CheckFence()
		})
	}
}
