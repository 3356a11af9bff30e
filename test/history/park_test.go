package history_test

import (
	"context"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/fault/cluster"
	"hooklock/test/history"
)

func TestEveryAnswerAboutWhatIsParkedFitsOneOrderWhileAnswersAndRequestsAreLost(t *testing.T) {
	judged(t, 12*time.Second, func(d time.Duration) history.Verdict {
		ledgers, wires := stores(t, etcdtest.Start(t), 3, 60*time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		disturbed := make(chan struct{})
		go func() {
			defer close(disturbed)
			cluster.Disturb(ctx, wires)
		}()
		h := history.RunParked(ctx, history.Load{Ledgers: ledgers, Clients: 12, Workflows: 12, Patience: 600 * time.Millisecond})
		<-disturbed
		c := h.Counts()
		t.Logf("%+v", c)
		if c.Won == 0 || c.Parked == 0 || c.Asked == 0 || c.Again == 0 && c.Won > 100 { // where CPU is scarce, there may be no dead letter
			return history.Undecided
		}
		return h.CheckParked(time.Minute)
	})
}
