package history_test

import (
	"context"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/history"
)

func TestEveryAnswerAboutWhatIsParkedFitsOneOrderWhileAnswersAndRequestsAreLost(t *testing.T) {
	judged(t, 12*time.Second, func(d time.Duration) history.Verdict {
		ledgers, wires := stores(t, etcdtest.Start(t), 3, 60*time.Second)
		h := run(t, wires, d, func(ctx context.Context) *history.History {
			return history.RunParked(ctx, history.Load{Ledgers: ledgers, Clients: 12, Workflows: 12,
				Patience: 600 * time.Millisecond})
		})
		c := h.Counts()
		// where CPU is scarce, there may be no dead letter
		if c.Won == 0 || c.Parked == 0 || c.Asked == 0 || c.Again == 0 && c.Won > 100 {
			return history.Undecided
		}
		return h.CheckParked(time.Minute)
	})
}
