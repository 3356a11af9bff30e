package proxy

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

func TestDuringTheReleaseDelayNoAnswerSaysThatTheExecutionRuns(t *testing.T) {
	for strategy, decision := range map[idem.Strategy]string{idem.FailFast: "locked", idem.Skip: "skipped",
		idem.Wait: "wait_timeout"} {
		t.Run(string(strategy), func(t *testing.T) {
			etcd, up := etcdtest.Start(t), newService(t)
			r := newReplica(t, etcd, up, func(p *idem.Policy) {
				p.Strategy, p.WaitTimeout, p.ReleaseDelay = strategy, 100*time.Millisecond, time.Minute
				p.Unknown.Add(502, 502)
			})
			up.reply <- "502"
			first := await(t, r.send(t.Context(), "w", "1"))
			ended := first.header.Get("Hooklock-Execution")
			got := await(t, r.send(t.Context(), "w", "2"))
			var said struct {
				Detail, Details string
				ClosedUntil     time.Time
			}
			if err := json.Unmarshal([]byte(got.body), &said); err != nil || got.decision != decision ||
				got.header.Get("Hooklock-Execution") != ended {
				t.Fatalf("got %+v, %v", got, err)
			}
			if left := time.Until(said.ClosedUntil); left < 30*time.Second || left > time.Minute {
				t.Errorf("closed until %v", said.ClosedUntil)
			}
			for _, text := range []string{said.Detail, said.Details} {
				if strategy != idem.Skip && !strings.Contains(text, ended+" has ended") ||
					strings.Contains(text, "Currently executing") {
					t.Errorf("it says %q", text)
				}
			}
			r.events.mu.Lock()
			defer r.events.mu.Unlock()
			if last := r.events.reports[len(r.events.reports)-1]; !last.ClosedUntil.Equal(said.ClosedUntil) {
				t.Errorf("reported until %v", last.ClosedUntil)
			}
		})
	}
}
