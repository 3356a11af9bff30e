package idem

import (
	"context"
	"testing"
	"time"
)

// counting is a Ledger in which something stands in the way, and which counts copies.
type counting struct {
	Ledger
	seen   Seen
	follow *Seen
	copies map[ExecutionID]int
	kept   time.Duration
}

func (*counting) Paused(string, string) *Pause          { return nil }
func (*counting) Answer(context.Context, *Record) error { return nil }
func (*counting) Ahead(Scope) *Lock                     { return nil }

func (c *counting) Claim(context.Context, Lock, int64) (Held, *Seen, error) {
	seen := c.seen
	return nil, &seen, nil
}
func (c *counting) Follow(context.Context, *Lock) (*Seen, error) { return c.follow, nil }
func (c *counting) Duplicate(id ExecutionID, retention time.Duration) {
	c.copies[id]++
	c.kept = retention
}

func TestADuplicateThatIsAnsweredWithoutRunningCountsForItsExecution(t *testing.T) {
	const id = ExecutionID("exec_first")
	record := func(change func(*Record)) Seen {
		r := &Record{Entry: Entry{Execution: id, Scope: Scope{Key: keyA}, Retention: time.Hour}, End: End{Status: Success, Outcome: Executed, Kept: true, Answer: &Answer{Status: 200}}}
		change(r)
		return Seen{Record: r, RecordRevision: 7}
	}
	keep := func(*Record) {}
	running := Seen{Lock: &Lock{Entry: Entry{Execution: id, Scope: Scope{Workflow: "w", Key: keyA}, Token: 5}}}
	parked := Seen{Lock: &Lock{Entry: running.Lock.Entry, Parked: &Parked{Since: noon}}}
	other := Seen{Lock: &Lock{Entry: Entry{Execution: id, Scope: Scope{Workflow: "w", Key: keyB}, Token: 5}}}
	ended := record(keep)
	for name, c := range map[string]struct {
		seen     Seen
		policy   func(*Policy)
		decision Decision
		copies   int
	}{
		"replayed":                         {ended, nil, DecisionReplayed, 1},
		"in flight":                        {running, nil, DecisionInFlight, 1},
		"attached":                         {running, func(p *Policy) { p.InFlight, p.MaxWaiting, p.AttachTimeout = Attach, 1, time.Hour }, DecisionAttached, 1},
		"of a parked one":                  {parked, nil, DecisionParked, 1},
		"skipped copy":                     {running, func(p *Policy) { p.Strategy = Skip }, DecisionSkipped, 1},
		"blocked after an unknown outcome": {record(func(r *Record) { r.Status, r.Outcome, r.Kept = Failed, Unknown, false }), func(p *Policy) { p.OnUnknown = UnknownBlock }, DecisionUnknown, 1},
		"cancelled for good":               {record(func(r *Record) { r.Status, r.Outcome, r.Kept, r.Final = Aborted, NotExecuted, false, true }), nil, DecisionAborted, 1},
		"another event runs":               {other, nil, DecisionLocked, 0},
		"skipped for another event":        {other, func(p *Policy) { p.Strategy = Skip }, DecisionSkipped, 0},
		"no copy but a mismatch":           {record(func(r *Record) { r.Fingerprint[0] = 1 }), nil, DecisionMismatch, 0},
		"observed, so it runs":             {ended, func(p *Policy) { p.Observe = true }, DecisionReplayed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := &counting{seen: c.seen, follow: &ended, copies: map[ExecutionID]int{}}
			p := testPolicy()
			p.Retention = 42 * time.Hour
			if c.policy != nil {
				c.policy(p)
			}
			g := NewGuard(GuardOptions{Ledger: l, Base: t.Context(), Cache: NewCache(0), Now: func() time.Time { return noon }, MaxWaiting: func() int { return 1 }})
			for n := 1; n <= 2; n++ { // the second may be answered from what the process remembers
				a := g.Admit(t.Context(), &Request{Scope: Scope{Workflow: "w", Key: keyA}, Policy: p})
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
	v := Verdict{Decision: DecisionAborted, Holder: "exec_own", WhileWaiting: true}
	if ofCopy(&v) {
		t.Error("counted")
	}
}
