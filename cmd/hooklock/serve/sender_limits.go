package serve

import (
	"context"
	"time"

	"hooklock/admin/attention"
	"hooklock/admin/report"
	"hooklock/cmd/hooklock/cli"
)

// A process reads what the others have seen of the senders of its routes every standingsEvery, or
// less often if there are many processes.
const (
	standingsEvery   = 2 * time.Second
	standingsForEach = 100 * time.Millisecond
)

// followStandings lets the report know what other processes have seen of the senders of routes,
// until ctx ends: a balancer gives each process a part of the failures, and a sender counts all. It
// reads only if a sender is known to have a limit, and keeps what it knows while etcd is away.
func (s *Service) followStandings(ctx context.Context) {
	pause := standingsEvery
	for cli.Pause(ctx, pause) {
		if !s.report.HasLimits() {
			continue
		}
		reading, cancel := context.WithTimeout(ctx, s.requestTimeout)
		notes, err := s.Store.Replicas(reading)
		cancel()
		if err != nil {
			continue
		}
		pause = max(standingsEvery, time.Duration(len(notes))*standingsForEach)
		s.report.SetElsewhere(standingsElsewhere(attention.ReadReplicas(notes)))
	}
}

// standingsElsewhere adds up what the other processes have seen of the sender of each route, those
// that ended in the last hour included.
func standingsElsewhere(all []attention.Replica) map[string]report.Standings {
	sums := map[string]report.Standings{}
	for i := range all {
		if all[i].Self {
			continue
		}
		for _, r := range all[i].Routes {
			sum := sums[r.Route]
			sum.Add(r.Standings)
			sums[r.Route] = sum
		}
	}
	return sums
}
