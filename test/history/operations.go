package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"hooklock/idem"
)

// Load says what the clients do.
type Load struct {
	// Ledgers are the stores of the replicas; the clients share them evenly.
	Ledgers   []idem.Ledger
	Clients   int
	Workflows int
	// Hot: a third of all operations goes to the first two workflows.
	Hot bool
	// Records: half of the executions end with a record. Without it they all end with a release,
	// and no record can keep a claim out that comes too late.
	Records bool
	// Waiting: a third of all executions wait for their turn.
	Waiting bool
	// Patience is how long a client waits for an answer; 0 = 1.5 s.
	Patience time.Duration
}

// History is what the clients did and saw.
type History struct {
	start time.Time
	seq   atomic.Uint32

	mu         sync.Mutex
	operations []porcupine.Operation
	counts     Counts
}

// Counts tell how much a history says.
type Counts struct {
	Operations int
	Won        int // claims that got the lock
	Refused    int // claims that something stood in the way of
	Unknown    int // operations without an answer
	Waited     int // locks that came through the queue
	Withdrawn  int // claims of which the ledger said that they were never applied
	Lost       int // ends that were told that the lock was lost
	Parked     int // executions that were accepted
	Asked      int // times that a person asked for the end of one
	Again      int // times that a person let the event of one run again
}

// Counts returns them.
func (h *History) Counts() Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.counts
	c.Operations = len(h.operations)
	return c
}

// Run lets the clients work until ctx ends, and returns when all of them have stopped.
func Run(ctx context.Context, load Load) *History {
	if load.Patience == 0 {
		load.Patience = 1500 * time.Millisecond
	}
	h := &History{start: time.Now()}
	var wg sync.WaitGroup
	for i := range load.Clients {
		c := &client{
			h: h, id: i, load: &load, ledger: load.Ledgers[i%len(load.Ledgers)],
			random: rand.New(rand.NewPCG(uint64(i), 1)), known: map[int]int64{},
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

// client is one delivery after the other.
type client struct {
	h      *History
	id     int
	load   *Load
	ledger idem.Ledger
	random *rand.Rand
	known  map[int]int64 // workflow -> the record's revision as this client has last seen it
}

// rest keeps a client from asking a store that has no session as fast as it can.
func rest(ctx context.Context) {
	t := time.NewTimer(50 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// once claims a lock and, if it gets it, ends the execution. It reports whether there was an
// answer.
func (c *client) once() bool {
	n := c.random.IntN(c.load.Workflows)
	if c.load.Hot && c.random.IntN(3) == 0 {
		n %= 2
	}
	if c.load.Waiting && c.random.IntN(3) == 0 {
		return c.wait(n)
	}
	l := c.lock(n, n)
	in := input{kind: claiming, workflow: l.Scope.Workflow, execution: l.Execution, prev: c.known[n]}
	ctx, cancel := context.WithTimeout(context.Background(), c.load.Patience)
	defer cancel()
	call := c.h.now()
	held, seen, err := c.ledger.Claim(ctx, l, in.prev)
	switch {
	case held != nil:
		c.h.add(c.id, call, in, output{done: true, token: held.Lock().Token})
		c.end(n, in, held)
	case seen != nil:
		c.noteRefusal(n, call, in, seen)
		if seen.Lock != nil && seen.Lock.Dead {
			_ = c.ledger.Reap(ctx, seen.Lock) // the next call finds it as it is
		}
	case errors.Is(err, idem.ErrNotClaimed):
		c.h.withdrawn()
	default:
		c.nobodyKnows(call, in)
		return false
	}
	return true
}

// nobodyKnows: should the claim have been applied, the ledger takes it back some time.
func (c *client) nobodyKnows(call int64, in input) {
	c.h.add(c.id, call, in, output{unknown: true})
	in.kind = releasing
	c.h.add(c.id, call, in, output{unknown: true})
}

// wait claims a lock through the queue, for an event of this client's own.
func (c *client) wait(n int) bool {
	l := c.lock(n, 1000+c.id)
	in := input{kind: claiming, workflow: l.Scope.Workflow, execution: l.Execution, apart: true}
	ctx, cancel := context.WithTimeout(context.Background(), c.load.Patience)
	defer cancel()
	call := c.h.now() // who has a place may be handed the lock at any time
	place, _, err := c.ledger.Enqueue(ctx, l, 0, 0)
	if place == nil {
		return err == nil // an earlier place of this client is still being given up
	}
	seen, err := place.Await(ctx, 0)
	if err == nil && seen.Lock == nil {
		if held, _, _ := place.ClaimHead(ctx, l, 0); held != nil {
			c.h.add(c.id, call, in, output{done: true, token: held.Lock().Token})
			c.h.waited()
			c.end(n, in, held)
			return true
		}
	} else if err == nil && seen.Lock.Dead {
		_ = c.ledger.Reap(ctx, seen.Lock)
	}
	c.nobodyKnows(call, in)
	leaving, cancel := context.WithTimeout(context.Background(), c.load.Patience)
	defer cancel()
	_ = place.Leave(leaving) // it goes on by itself
	return err == nil
}

// noteRefusal adds a claim that was refused to the history, with what the refusal has shown.
func (c *client) noteRefusal(n int, call int64, in input, seen *idem.Obstacle) {
	out := output{revision: seen.RecordRevision, queue: seen.Queue}
	if seen.Lock != nil {
		out.holder = seen.Lock.Execution
	}
	if seen.Record != nil {
		out.recorded = seen.Record.Execution
	}
	c.known[n] = seen.RecordRevision
	c.h.add(c.id, call, in, out)
}

// end settles or releases what was won.
func (c *client) end(n int, in input, held idem.RunningLock) {
	ctx, cancel := context.WithTimeout(context.Background(), c.load.Patience)
	defer cancel()
	in.kind, in.token = releasing, held.Lock().Token
	out := output{done: true}
	var err error
	call := c.h.now()
	if c.load.Records && !in.apart && c.random.IntN(2) == 0 {
		in.kind = settling
		var record *idem.Record
		record, err = held.Settle(ctx, idem.End{Status: idem.Success, Outcome: idem.Executed, FinishedAt: time.Now()})
		if err == nil {
			out.revision = record.Revision
			c.known[n] = record.Revision
		}
	} else {
		err = held.Release(ctx)
	}
	switch {
	case errors.Is(err, idem.ErrLockLost):
		out = output{}
	case err != nil:
		out = output{unknown: true}
	}
	c.h.add(c.id, call, in, out)
}

// lock is an execution of an event of workflow n.
func (c *client) lock(n, event int) idem.Lock {
	workflow := fmt.Sprintf("w%d", n)
	key := idem.Key(fmt.Sprintf("%016x-%032x", event, event))
	id := c.h.seq.Add(1)
	return idem.Lock{
		ExecutionFacts: idem.ExecutionFacts{
			Execution: idem.NewExecutionID(workflow, key,
				[4]byte{byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}),
			Scope: idem.Scope{Workflow: workflow, Key: key}, Route: "r", Attempt: 1, StartedAt: time.Now(),
			Retention: time.Hour,
		},
	}
}

func (h *History) now() int64 { return time.Since(h.start).Nanoseconds() }

func (h *History) waited() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts.Waited++
}

func (h *History) withdrawn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts.Withdrawn++
}

func (h *History) add(client int, call int64, in input, out output) {
	back := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case out.unknown:
		h.counts.Unknown++
		back = never
		client = -1 - len(h.operations) // it goes on while its client does something else
	case in.kind == claiming && out.done:
		h.counts.Won++
	case in.kind == claiming:
		h.counts.Refused++
	case !out.done:
		h.counts.Lost++
	}
	h.operations = append(h.operations, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out,
		Return: back})
}
