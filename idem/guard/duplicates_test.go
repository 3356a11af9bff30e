package guard

import (
	"context"
	"testing"
	"time"

	"hooklock/idem"
)

// counting is a Ledger in which something stands in the way, and which counts copies.
type counting struct {
	quiet
	seen   idem.Obstacle
	follow *idem.Obstacle
	copies map[idem.ExecutionID]int
	kept   time.Duration
}

func (c *counting) Claim(context.Context, idem.Lock, int64) (idem.RunningLock, *idem.Obstacle, error) {
	seen := c.seen
	return nil, &seen, nil
}
func (c *counting) AwaitEnd(context.Context, *idem.Lock) (*idem.Obstacle, error) {
	return c.follow, nil
}
func (c *counting) CountDuplicate(id idem.ExecutionID, retention time.Duration) {
	c.copies[id]++
	c.kept = retention
}

func TestADuplicateThatIsAnsweredWithoutRunningCountsForItsExecution(t *testing.T) {
	const id = idem.ExecutionID("exec_first")
	record := func(change func(*idem.Record)) idem.Obstacle {
		r := &idem.Record{ExecutionFacts: idem.ExecutionFacts{Execution: id, Scope: idem.Scope{Key: keyA},
			Retention: time.Hour},
			End: idem.End{Status: idem.Success, Outcome: idem.Executed, Remembered: true,
				Answer: &idem.Answer{Status: 200}}}
		change(r)
		return idem.Obstacle{Record: r, RecordRevision: 7}
	}
	keep := func(*idem.Record) {}
	running := idem.Obstacle{Lock: &idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: id,
		Scope: idem.Scope{Workflow: "w", Key: keyA}, Token: 5}}}
	parked := idem.Obstacle{Lock: &idem.Lock{ExecutionFacts: running.Lock.ExecutionFacts,
		Parked: &idem.Parked{Since: noon}}}
	other := idem.Obstacle{Lock: &idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: id,
		Scope: idem.Scope{Workflow: "w", Key: keyB}, Token: 5}}}
	ended := record(keep)
	for name, c := range map[string]struct {
		seen     idem.Obstacle
		policy   func(*idem.Policy)
		decision idem.Decision
		copies   int
	}{
		"replayed":  {ended, nil, idem.DecisionReplayed, 1},
		"in flight": {running, nil, idem.DecisionInFlight, 1},
		"attached": {running, func(p *idem.Policy) {
			p.InFlight, p.MaxWaiting, p.AttachTimeout = idem.Attach, 1, time.Hour
		}, idem.DecisionAttached, 1},
		"of a parked one": {parked, nil, idem.DecisionParked, 1},
		"skipped copy": {running, func(p *idem.Policy) {
			p.Strategy = idem.Skip
		}, idem.DecisionSkipped, 1},
		"blocked after an unknown outcome": {record(func(r *idem.Record) {
			r.Status, r.Outcome, r.Remembered = idem.Failed, idem.Unknown, false
		}), func(p *idem.Policy) { p.OnUnknown = idem.UnknownBlock }, idem.DecisionUnknown, 1},
		"cancelled for good": {record(func(r *idem.Record) {
			r.Status, r.Outcome, r.Remembered, r.Final = idem.Aborted, idem.NotExecuted, false, true
		}), nil, idem.DecisionAborted, 1},
		"another event runs":        {other, nil, idem.DecisionLocked, 0},
		"skipped for another event": {other, func(p *idem.Policy) { p.Strategy = idem.Skip }, idem.DecisionSkipped, 0},
		"no copy but a mismatch": {record(func(r *idem.Record) {
			r.Fingerprint[0] = 1
		}), nil, idem.DecisionMismatch, 0},
		"observed, so it runs": {ended, func(p *idem.Policy) { p.Observe = true }, idem.DecisionReplayed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := &counting{seen: c.seen, follow: &ended, copies: map[idem.ExecutionID]int{}}
			p := testPolicy()
			p.Retention = 42 * time.Hour
			if c.policy != nil {
				c.policy(p)
			}
			g := New(Options{Ledger: l, Base: t.Context(), Cache: NewCache(0), Now: func() time.Time {
				return noon
			}, MaxWaiting: func() int { return 1 }})
			for n := 1; n <= 2; n++ { // the second may be answered from what the process remembers
				a := g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyA}, Policy: p})
				if a.Decision != c.decision || a.Execution != nil {
					t.Fatalf("%+v", a)
				}
				if l.copies[id] != n*c.copies || len(l.copies) > c.copies {
					t.Fatalf("%d copies: %v", n*c.copies, l.copies)
				}
			}
			if c.copies > 0 && l.kept != p.Retention {
				t.Errorf("kept for %s", l.kept)
			}
		})
	}
}

func TestADeliveryThatWasCancelledWhileItWaitedIsNoDuplicate(t *testing.T) {
	v := idem.Verdict{Decision: idem.DecisionAborted, Holder: "exec_own", WhileWaiting: true}
	if ofCopy(&v) {
		t.Error("counted")
	}
}
