package virtual

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/link"
	"hooklock/idem"
	"hooklock/idem/guard"
	"hooklock/idem/worker"
	"hooklock/proxy/asking"
)

const (
	upstreamTimeout = time.Minute
	senderTimeout   = 30 * time.Second
	shutdownTimeout = 25 * time.Second
	sessionTTL      = 5 * time.Second
)

// process is one replica: what cmd/hooklock/serve puts together, without its sockets.
type process struct {
	w       *world
	name    string
	net     *network
	store   *etcdlock.Store
	guard   *guard.Guard
	worker  *worker.Worker
	base    context.Context
	stop    context.CancelCauseFunc
	calls   sync.WaitGroup // calls of the service, and what settles them
	carries sync.WaitGroup
	leaving atomic.Bool
	asleep  atomic.Int64 // how long its machine was suspended so far
	beside  *beside      // nil: the world has none
}

// startProcess starts a replica whose wall clock is off by skew.
func (w *world) startProcess(name string, skew time.Duration) *process {
	p := &process{w: w, name: name, net: newNetwork(w)}
	p.base, p.stop = context.WithCancelCause(context.Background())
	began, now := time.Now(), func() time.Time { return time.Now().Add(skew) }
	cache := guard.NewCache(0)
	o := etcdlock.Options{
		Client: p.net.client(), SessionTTL: sessionTTL, Holder: name, OnForget: cache.Forget, OnReset: cache.Reset,
		Limit: w.slots, Archived: w.archived,
		OnReaped: func(l *idem.Lock) { w.say(name, "reaped %s of %s", l.Execution, l.EventID) },
		OnSession: func(e etcdlock.SessionEvent) {
			if !p.net.isDead() {
				w.say(name, "session %s opened=%v %v", e.Session, e.Opened, e.Reason)
			}
		},
		Clock: link.Clock{Now: now, Boot: func() time.Duration {
			return time.Since(began) + time.Duration(p.asleep.Load())
		}},
	}
	if w.kind.beside {
		p.beside = newBeside(p)
		o.Counted = p.beside.tally.Take
	}
	var err error
	if p.store, err = etcdlock.Open(o); err != nil {
		w.t.Error(err)
		return nil
	}
	p.guard = guard.New(guard.Options{
		Ledger: p.store.Ledger, Base: p.base, Cache: cache, Now: now, MaxWaiting: func() int { return 1000 },
		Parks: p.store.Ledger, ParkLimits: func() guard.ParkLimits {
			return guard.ParkLimits{Events: 10000, Bytes: 1 << 30}
		},
	})
	asker := asking.New(asking.Options{
		Ledger: p.store.Questions(), Get: w.service.askedBy(p), Asks: func() bool {
			return true
		}, Now: now, RequestTimeout: 2 * time.Second,
		Rule: func(route string) (*idem.AskPolicy, *asking.Rule) { return w.policy(route).Ask, &asking.Rule{} },
		OnAnswer: func(e asking.Event) {
			if !p.net.isDead() {
				w.say(name, "%s was asked about: %s, corrected %v", e.Execution, e.Said.Outcome, e.Record != nil)
			}
		},
	})
	p.worker = worker.New(worker.Options{
		Ask:   asker.Once,
		Guard: p.guard, Ledger: p.store.Ledger, Now: now, Policy: w.policy, Running: func() int {
			return 8
		}, Try: p.try, OnEvent: p.parkedEvent,
	})
	p.carries.Go(p.worker.Run)
	p.carries.Go(func() { asker.Run(p.base) })
	return p
}

// reportParkedEvent passes on what became of a parked event. What a killed process still does has
// no effect.
func (p *process) parkedEvent(t worker.Event) {
	if p.net.isDead() {
		return
	}
	p.w.say(p.name, "parked event %s: %s %s %s %v", t.Lock.EventID, t.What, t.Code, t.Why, t.Err)
	p.w.judge.parkedEvent(t)
}

// end stops the process as SIGTERM does.
func (p *process) end() {
	p.leaving.Store(true)
	p.w.say(p.name, "ends")
	p.guard.Drain()
	p.worker.Drain()
	over := make(chan struct{})
	p.w.tasks.Go(func() { p.calls.Wait(); close(over) })
	select {
	case <-over:
	case <-time.After(shutdownTimeout):
	}
	p.close()
}

// kill ends the process at once: nothing of it reaches etcd or the service any more.
func (p *process) kill() {
	p.leaving.Store(true)
	p.w.say(p.name, "is killed")
	close(p.net.dead)
	p.beside.killed()
	p.close() // what is left in memory has no effect
}

func (p *process) close() {
	p.stop(guard.ErrShutdown)
	p.calls.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := p.worker.Close(ctx); err != nil && !p.net.isDead() {
		p.w.say(p.name, "close the park worker: %v", err)
	}
	p.carries.Wait()
	p.beside.close(ctx)
	if err := p.store.Close(ctx); err != nil && !p.net.isDead() {
		p.w.say(p.name, "close the store: %v", err)
	}
}

// reply is what a sender gets. Status 0: its connection broke.
type reply struct {
	decision idem.Decision
	status   int
	final    bool // it is the service's own answer, and is in the ledger
	counted  bool // it is counted with the outcome of its execution
	accepted bool // its event was parked with it
}

// deliver is one delivery of an event, from its arrival to its answer.
func (p *process) deliver(e *event) reply {
	got := p.answer(e)
	p.beside.note(e, &got)
	return got
}

func (p *process) answer(e *event) reply {
	if p.net.isDead() || p.leaving.Load() {
		return reply{}
	}
	policy := p.w.policy(e.route)
	began, newest := time.Now(), p.w.judge.newestAnswer(e)
	sender, gone := context.WithTimeout(p.base, senderTimeout)
	defer gone()
	r := e.request(policy, p.w.chance(20))
	if park := policy.Park; park != nil {
		r.Parking = &idem.Parking{Patience: park.After, Size: len(e.id), Store: p.keep(e, park)}
	}
	a := p.guard.Admit(sender, r)
	if p.net.isDead() {
		return reply{}
	}
	if a.Execution == nil {
		if a.Decision == idem.DecisionParked && a.Accepted {
			p.w.judge.accepted(e, a.Holder)
		}
		return p.refusal(r, e, &a, newest)
	}
	return p.run(r, e, a.Execution, began)
}

func (p *process) refusal(r *idem.Request, e *event, a *guard.Admission, newest int) reply {
	got := reply{decision: a.Decision, status: a.Decision.Row().Status}
	switch a.Decision {
	case idem.DecisionReplayed, idem.DecisionAttached:
		if r.Policy.OnMismatch == idem.MismatchReject && a.Record.Fingerprint != r.Fingerprint {
			p.w.fail("event %s: a delivery with other bytes got the answer of %s", e.id, a.Holder)
		}
		got.status, got.final = a.Record.Answer.Status, true
		p.w.judge.replayed(e, a.Record.Answer, a.Decision == idem.DecisionAttached, newest)
	case idem.DecisionParked:
		got.status, got.accepted = 202, a.Accepted
	}
	p.w.say(p.name, "%s: %s (%d) behind %s %v", e.id, a.Decision, got.status, a.Holder, a.Err)
	return got
}

// keep stores the request of an event in the ledger. A full disk refuses.
func (p *process) keep(e *event, park *idem.ParkPolicy) func(context.Context, idem.ExecutionID) (idem.StoredRequest,
	error) {
	return func(context.Context, idem.ExecutionID) (idem.StoredRequest, error) {
		if p.w.diskFull.Load() {
			return idem.StoredRequest{}, errors.New("no space left on device")
		}
		value, err := json.Marshal(e.id)
		return idem.StoredRequest{Value: value, Bytes: int64(len(value)), MaxAge: park.MaxAge}, err
	}
}

// run calls the service and settles. A sender whose timeout comes first is told that the event is
// accepted.
func (p *process) run(r *idem.Request, e *event, x *guard.Execution, began time.Time) reply {
	ended := make(chan called, 1)
	p.calls.Go(func() { ended <- p.call(e, x) })
	park := r.Policy.Park
	if park == nil || !park.Slow {
		return p.settle(r, e, x, <-ended, false)
	}
	timer := time.NewTimer(park.After - time.Since(began))
	defer timer.Stop()
	for {
		select {
		case got := <-ended:
			return p.settle(r, e, x, got, false)
		case <-timer.C:
			if x.Park(context.Background()) == nil {
				p.calls.Go(func() { p.settle(r, e, x, <-ended, true) })
				if p.net.isDead() {
					return reply{}
				}
				p.w.say(p.name, "%s: parked while it runs", e.id)
				p.w.judge.accepted(e, x.Lock().Execution)
				return reply{decision: idem.DecisionParked, status: 202, accepted: true}
			}
			timer.Reset(time.Second)
		}
	}
}

// called is the evidence of one call of the service.
type called struct {
	answer *idem.Answer // nil: none came
	sent   bool
	hold   time.Duration
	cause  string
}

func (p *process) call(e *event, x *guard.Execution) called {
	if err := x.Begin(); err != nil || p.net.isDead() {
		return called{cause: fmt.Sprint(err)}
	}
	p.beside.keep(e, x.Lock())
	return p.w.service.call(p, e, x)
}

// settle writes down how a call ended. accepted: its sender has an answer already.
func (p *process) settle(r *idem.Request, e *event, x *guard.Execution, got called, accepted bool) reply {
	defer x.End(guard.Tried{Sent: true, ResponseBegun: true, Failure: idem.Failure{Code: "internal_error"}})
	tried := got.tried()
	tried.Counted = idem.Counted{Route: e.route}
	if !accepted {
		tried.Counted.Kinds, tried.Counted.Last = idem.CountSetOf(idem.CountDeliveries), time.Now()
	}
	end := x.End(tried)
	if end.On != "" && !p.net.isDead() {
		p.w.judge.accepted(e, x.Lock().Execution)
		return reply{decision: idem.DecisionParked, status: 202, counted: end.Counted, accepted: true}
	}
	p.w.say(p.name, "%s: %s ended, answer %v recorded %v lost %v parked %v %v", e.id, x.Lock().Execution, got.status(),
		end.Recorded, end.Lost, end.Parked, end.Err)
	switch {
	case p.net.isDead() || end.Parked:
		return reply{counted: end.Counted}
	case got.answer == nil && got.sent:
		return reply{decision: idem.DecisionUpstreamFailed, status: 502, counted: end.Counted}
	case got.answer == nil:
		return reply{decision: idem.DecisionUpstreamUnreachable, status: 503, counted: end.Counted}
	}
	if final := end.Recorded && !end.Lost && got.hold == 0; final {
		p.w.judge.answered(e, x, r.Policy, got.answer.Status)
	}
	return reply{decision: idem.DecisionExecuted, status: got.answer.Status, final: end.Recorded,
		counted: end.Counted}
}

// tried is the evidence for the guard.
func (c *called) tried() guard.Tried {
	t := guard.Tried{Answer: c.answer, Sent: c.sent, Hold: c.hold, Challenge: c.status() == challenged}
	switch {
	case c.answer != nil:
	case c.sent:
		t.Failure = idem.Failure{Code: string(idem.DecisionUpstreamFailed), Detail: c.cause}
	default:
		t.Failure = idem.Failure{Code: string(idem.DecisionUpstreamUnreachable), Detail: c.cause}
	}
	return t
}

func (c *called) status() int {
	if c.answer == nil {
		return 0
	}
	return c.answer.Status
}

// try is one try of a parked event. It implements worker.Options.Try.
func (p *process) try(x *guard.Execution, request []byte) {
	var id string
	if err := json.Unmarshal(request, &id); err != nil {
		p.w.t.Errorf("the request that was kept: %q: %v", request, err)
	}
	e := p.w.judge.event(id)
	got := p.call(e, x)
	tried := got.tried()
	tried.Counted = idem.Counted{Route: e.route}
	x.End(tried)
}
