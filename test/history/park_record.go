package history

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"hooklock/idem"
)

// ParkLedger is what the clients that park ask.
type ParkLedger interface {
	idem.Ledger
	idem.ParkLedger
	Skip(ctx context.Context, id idem.ExecutionID, c idem.Cancel, a *idem.Audit) (*idem.Found, bool, error)
	Cancel(ctx context.Context, id idem.ExecutionID, c idem.Cancel, a *idem.Audit) (*idem.Found, bool, error)
	Rerun(ctx context.Context, id idem.ExecutionID, a *idem.Audit) (*idem.Found, error)
}

// RunParked lets clients accept events, carry them and end them until ctx ends. Load says how many;
// all of them park.
func RunParked(ctx context.Context, load Load) *History {
	h := &History{start: time.Now()}
	shared, letters := &acceptances{}, &acceptances{}
	var wg sync.WaitGroup
	for i := range load.Clients {
		ledger := load.Ledgers[i%len(load.Ledgers)]
		c := &parker{
			client: &client{h: h, id: i, load: &load, ledger: ledger, random: rand.New(rand.NewPCG(uint64(i), 2)),
				known: map[int]int64{}},
			parks: ledger.(ParkLedger), accepted: shared, letters: letters, behind: map[int]int64{},
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				if !c.once() {
					rest(ctx)
				}
			}
		})
	}
	wg.Wait()
	return h
}

// parker is one client: sender, carrier and person.
type parker struct {
	*client
	parks    ParkLedger
	accepted *acceptances
	letters  *acceptances  // that somebody may let run again
	behind   map[int]int64 // workflow -> the lock that this client has last seen in the way
}

// acceptances are the executions that somebody may ask to end.
type acceptances struct {
	mu   sync.Mutex
	last []step
}

func (a *acceptances) add(s step) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last = append(a.last, s); len(a.last) > 8 {
		a.last = a.last[1:]
	}
}

func (a *acceptances) any(random *rand.Rand) (s step, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.last) == 0 {
		return s, false
	}
	return a.last[random.IntN(len(a.last))], true
}

// longest is how many wait in a line that more are accepted in. In which order two came that came
// together, is seen when they run: behind a long line that is late, and the checker then goes
// through all orders of what came in between.
const longest = 4

func (c *parker) once() bool {
	n := c.random.IntN(c.load.Workflows)
	ctx, cancel := context.WithTimeout(context.Background(), c.load.Patience)
	defer cancel()
	switch r := c.random.IntN(20); {
	case r < 10, r < 16 && c.parks.Parked(c.lock(n, n).Scope).InQueue >= longest:
		return c.carry(ctx, n)
	case r < 14:
		return c.accept(ctx, n)
	case r < 16:
		return c.acceptWaiting(ctx, n)
	case r < 18:
		return c.acceptRunning(ctx, n)
	case r == 18:
		return c.again(ctx)
	}
	return c.ask(ctx)
}

// event is a new execution of an event that nobody else has.
func (c *parker) event(n int) (idem.Lock, step, idem.StoredRequest) {
	l := c.lock(n, 1000+int(c.h.seq.Add(1)))
	return l, step{workflow: l.Scope.Workflow, execution: l.Execution},
		idem.StoredRequest{Value: []byte("request"), Bytes: 7, MaxAge: time.Hour}
}

// accept parks a delivery at the end of its line.
func (c *parker) accept(ctx context.Context, n int) bool {
	l, in, kept := c.event(n)
	in.kind = enqueuing
	l.Parked = &idem.Parked{Since: time.Now(), On: idem.ParkLocked, Kept: &kept}
	call := c.h.now()
	_, seen, err := c.parks.Enqueue(ctx, l, 0, c.behind[n])
	switch {
	case seen != nil:
		if c.behind[n] = 0; seen.Lock != nil {
			c.behind[n] = seen.Lock.Token
		}
		return true
	case err == nil:
		c.add(call, in, came{done: true})
		c.accepted.add(in)
	case errors.Is(err, idem.ErrNotRecorded):
		c.add(call, in, came{unknown: true})
	}
	return err == nil
}

// acceptWaiting parks one that waits, in its place.
func (c *parker) acceptWaiting(ctx context.Context, n int) bool {
	l, in, kept := c.event(n)
	in.kind = enqueuing
	call := c.h.now()
	place, _, err := c.parks.Enqueue(ctx, l, 0, 0)
	if place == nil {
		return err == nil
	}
	switch err = place.Park(ctx, idem.Parked{Since: time.Now(), On: idem.ParkLocked, Kept: &kept}); {
	case err == nil:
		c.add(call, in, came{done: true})
		c.accepted.add(in)
	case errors.Is(err, idem.ErrNotRecorded):
		c.add(call, in, came{unknown: true})
	default:
		leaving, cancel := context.WithTimeout(context.Background(), c.load.Patience)
		defer cancel()
		_ = place.Leave(leaving) // it goes on by itself
	}
	return err == nil
}

// acceptRunning parks one that has the lock, and carries it.
func (c *parker) acceptRunning(ctx context.Context, n int) bool {
	l, in, kept := c.event(n)
	in.kind, in.carrier = claiming, int(c.h.seq.Add(1))
	call := c.h.now()
	held, seen, err := c.parks.Claim(ctx, l, 0)
	switch {
	case held == nil && seen != nil:
		return true
	case held == nil && errors.Is(err, idem.ErrNotClaimed):
		c.h.withdrawn()
		return true
	case held == nil: // should it have been applied, the ledger takes it back some time
		c.add(call, in, came{unknown: true})
		in.kind = releasing
		c.add(call, in, came{unknown: true})
		return false
	}
	c.add(call, in, came{done: true, token: held.Lock().Token})
	in.kind = parking
	call = c.h.now()
	err = held.Park(ctx, idem.Parked{Since: time.Now(), On: idem.ParkSlow, Kept: &kept, Tries: 1, Trying: true})
	c.add(call, in, seenOf(err))
	if err != nil {
		c.settle(in, held)
		return false
	}
	c.accepted.add(in)
	c.tries(in, held)
	return true
}

// carry takes what is first in a line.
func (c *parker) carry(ctx context.Context, n int) bool {
	in := step{kind: taking, workflow: c.lock(n, n).Scope.Workflow, carrier: int(c.h.seq.Add(1))}
	call := c.h.now()
	taken, err := c.parks.TakeParked(ctx, idem.Scope{Workflow: in.workflow}, func(string) bool { return true })
	switch {
	case err != nil:
		c.add(call, in, came{unknown: true})
		return false
	case taken == nil:
		return false // nothing is said by that
	}
	in.execution = taken.Running.Lock().Execution
	c.add(call, in, came{done: true, token: taken.Running.Lock().Token})
	c.tries(in, taken.Running)
	return true
}

// tries does so a few times, and ends it or leaves it to the next carrier.
func (c *parker) tries(in step, held idem.RunningLock) {
	ctx, cancel := context.WithTimeout(context.Background(), c.load.Patience)
	defer cancel()
	for n := c.random.IntN(3); n > 0; n-- {
		p := *held.Lock().Parked
		p.Tries, p.Trying = p.Tries+1, true
		in.kind = trying
		call := c.h.now()
		err := held.BeginTry(ctx, p, string(in.execution))
		out := seenOf(err)
		out.token = held.Lock().Token
		c.add(call, in, out)
		if err == nil {
			in.kind = resting
			p.Last = &idem.Evidence{Outcome: idem.NotExecuted, At: time.Now()}
			call = c.h.now()
			err = held.RecordTry(ctx, p)
			c.add(call, in, seenOf(err))
		}
		switch {
		case errors.Is(err, idem.ErrLockLost):
			return
		case err != nil:
			n = 1
		}
	}
	if c.random.IntN(4) > 0 {
		c.settle(in, held)
		return
	}
	in.kind = puttingOff
	call := c.h.now()
	c.add(call, in, seenOf(held.Release(ctx)))
}

// settle ends it, now and then as a dead letter.
func (c *parker) settle(in step, held idem.RunningLock) {
	ctx, cancel := context.WithTimeout(context.Background(), c.load.Patience)
	defer cancel()
	in.kind = settling
	end := idem.End{Status: idem.Success, Outcome: idem.Executed, FinishedAt: time.Now()}
	if held.Lock().Parked != nil && c.random.IntN(4) == 0 {
		end.Status, end.Error, end.RequestKept = idem.Failed, &idem.Failure{Code: "test"}, true
	}
	call := c.h.now()
	_, err := held.Settle(ctx, end)
	c.add(call, in, seenOf(err))
	if err == nil && end.Status == idem.Failed {
		c.letters.add(in)
	}
}

// ask is a person who does not want an execution any more.
func (c *parker) ask(ctx context.Context) bool {
	in, ok := c.accepted.any(c.random)
	if !ok {
		return false
	}
	in.kind, in.carrier = asking, 0
	how := c.parks.Skip
	if c.random.IntN(2) == 0 {
		how = c.parks.Cancel
	}
	call := c.h.now()
	switch _, _, err := how(ctx, in.execution, idem.Cancel{By: "test", At: time.Now()}, nil); {
	case err == nil:
		c.add(call, in, came{done: true})
	case errors.Is(err, idem.ErrStoreUnavailable):
		c.add(call, in, came{unknown: true})
		return false
	}
	return true
}

// again is a person who wants a dead letter to run again.
func (c *parker) again(ctx context.Context) bool {
	in, ok := c.letters.any(c.random)
	if !ok {
		return false
	}
	in.kind, in.carrier, in.of, in.execution = rerunning, 0, in.execution, ""
	call := c.h.now()
	switch found, err := c.parks.Rerun(ctx, in.of, nil); {
	case err == nil && found.Lock != nil:
		in.execution = found.Lock.Execution
		c.add(call, in, came{done: true})
		c.accepted.add(in)
	case err == nil && found.Record != nil: // an attempt whose answer got lost, and it has run since
		in.execution = found.Record.Execution
		c.add(call, in, came{done: true})
	case err == nil || errors.Is(err, idem.ErrStoreUnavailable):
		c.add(call, in, came{unknown: true})
		return false
	}
	return true
}

// seenOf is what an error says of an operation on one's own lock.
func seenOf(err error) came {
	switch {
	case err == nil:
		return came{done: true}
	case errors.Is(err, idem.ErrCancelled):
		return came{cancelled: true}
	case errors.Is(err, idem.ErrLockLost):
		return came{}
	}
	return came{unknown: true}
}

func (c *parker) add(call int64, in step, out came) {
	h, back, who := c.h, c.h.now(), c.id
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case out.unknown:
		h.counts.Unknown++
		back, who = never, -1-len(h.operations)
	case in.kind == taking:
		h.counts.Won++
	case in.kind == enqueuing, in.kind == parking:
		h.counts.Parked++
	case in.kind == asking:
		h.counts.Asked++
	case in.kind == rerunning:
		h.counts.Again++
	case !out.done && !out.cancelled:
		h.counts.Lost++
	}
	h.operations = append(h.operations, porcupine.Operation{ClientId: who, Input: in, Call: call, Output: out,
		Return: back})
}
