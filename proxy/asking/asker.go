package asking

import (
	"context"
	"errors"
	"sync"
	"time"

	"hooklock/idem"
)

const (
	// lookEvery is the time between two looks for open questions.
	lookEvery = time.Second
	// mostOpen bounds the open questions of one look, over all processes.
	mostOpen = 1000
	// mostAsked bounds the questions that this process asks at a time.
	mostAsked = 8
)

// Ledger keeps the open questions; *operate.Questions implements it. Its methods return
// idem.ErrStoreUnavailable.
type Ledger interface {
	Open(ctx context.Context, most int) ([]idem.OpenQuestion, error)
	// Begin notes that this process asks now; false: another process was faster.
	Begin(ctx context.Context, q *idem.OpenQuestion) (mine bool, err error)
	// Answer writes down what the service said; nil: there was nothing to correct.
	Answer(ctx context.Context, id idem.ExecutionID, said idem.Asked, status int) (*idem.Record, error)
}

// Options are what an Asker works with.
type Options struct {
	Ledger  Ledger
	Service Service
	// Rule returns the policy and the rule of a route; nil: this process does not have the route,
	// or it does not ask. Asks reports whether any route does.
	Rule func(route string) (*idem.AskPolicy, *Rule)
	Asks func() bool
	// Get asks once; the status is 0 if no whole answer came, and err says why the outcome is
	// unknown. nil: by HTTP, from Service.
	Get func(ctx context.Context, rule *Rule, question string) (outcome idem.Outcome, status int, err error)
	// RequestTimeout bounds each request to the ledger.
	RequestTimeout time.Duration
	// OnAnswer is called with each question that was answered, or given up. It must not block.
	OnAnswer func(Event)
	Now      func() time.Time
}

// Event is the end of one question.
type Event struct {
	Route     string
	Execution idem.ExecutionID
	Said      idem.Asked
	// Record is as it is now; nil: a person had decided meanwhile, or the event ran again.
	Record *idem.Record
}

// Asker asks the service about events of unknown outcome.
type Asker struct {
	options Options
	tasks   sync.WaitGroup
	free    chan struct{} // a place for each question that may be asked now

	// seen is for the goroutine of Run: when this process first saw a question as it is.
	seen map[idem.ExecutionID]sight

	mu    sync.Mutex
	asked map[idem.ExecutionID]bool // those that are being asked
}

// sight is the revision of a question, and since when this process knows it.
type sight struct {
	revision int64
	since    time.Time
}

// New returns an Asker. Run has to be called.
func New(o Options) *Asker {
	if o.Get == nil {
		o.Get = newClient(&o.Service).getOutcome
	}
	return &Asker{
		options: o, free: make(chan struct{}, mostAsked), seen: map[idem.ExecutionID]sight{},
		asked: map[idem.ExecutionID]bool{},
	}
}

// Run asks until ctx ends, and then waits for what it is asking.
func (a *Asker) Run(ctx context.Context) {
	defer a.tasks.Wait()
	for wait := time.NewTicker(lookEvery); ; {
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
		if a.options.Asks() {
			a.askDue(ctx)
		}
	}
}

// Once asks about the latest try of a parked execution, whose route asks. It implements
// worker.Options.Ask.
func (a *Asker) Once(ctx context.Context, lock *idem.Lock) idem.Asked {
	said := idem.Asked{Outcome: idem.Unknown, URL: lock.Question.URL, Detail: "the route does not ask any more"}
	policy, rule := a.options.Rule(lock.Route)
	if policy == nil {
		return said
	}
	var err error
	if said.Outcome, said.Status, err = a.options.Get(ctx, rule, lock.Question.URL); err != nil {
		said.Detail = err.Error()
	} else {
		said.Detail = ""
	}
	return said
}

// askDue begins to ask what is due. When a question becomes due counts from the moment at which
// this process saw it: the clocks of two processes are never compared.
func (a *Asker) askDue(ctx context.Context) {
	reading, cancel := context.WithTimeout(ctx, a.options.RequestTimeout)
	open, err := a.options.Ledger.Open(reading, mostOpen)
	cancel()
	if err != nil {
		return // it is looked for again
	}
	before, now := a.seen, a.options.Now()
	a.seen = make(map[idem.ExecutionID]sight, len(open))
	for _, q := range open {
		s := before[q.Execution]
		if s.revision != q.Revision {
			s = sight{q.Revision, now}
		}
		a.seen[q.Execution] = s
		policy, rule := a.options.Rule(q.Route)
		if policy == nil || now.Sub(s.since) < policy.Pause(q.Asked) || !a.reservePlace(q.Execution) {
			continue
		}
		a.tasks.Go(func() {
			defer a.freePlace(q.Execution)
			a.askOnce(ctx, policy, rule, q)
		})
	}
}

// reservePlace reports whether the question may be asked now: there is a place, and it is not being
// asked.
func (a *Asker) reservePlace(id idem.ExecutionID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked[id] {
		return false
	}
	select {
	case a.free <- struct{}{}:
		a.asked[id] = true
		return true
	default:
		return false
	}
}

func (a *Asker) freePlace(id idem.ExecutionID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.asked, id)
	<-a.free
}

// askOnce asks once. A process that dies after the last question leaves it without an answer:
// whatever process sees it next gives it up.
func (a *Asker) askOnce(ctx context.Context, policy *idem.AskPolicy, rule *Rule, q idem.OpenQuestion) {
	said := idem.Asked{Outcome: idem.Unknown, URL: q.URL, Times: q.Asked,
		Detail: "the process that asked last has ended"}
	if q.Asked < policy.Attempts {
		writing, cancel := a.withTimeout(ctx)
		mine, err := a.options.Ledger.Begin(writing, &q)
		cancel()
		if err != nil || !mine {
			return
		}
		outcome, status, err := a.options.Get(ctx, rule, q.URL)
		if ctx.Err() != nil {
			return
		}
		said = idem.Asked{Outcome: outcome, URL: q.URL, Status: status, Times: q.Asked}
		if err != nil {
			said.Detail = err.Error()
		}
		if outcome == idem.Unknown && q.Asked < policy.Attempts {
			return // it is asked again
		}
	}
	said.At = a.options.Now()
	for {
		writing, cancel := a.withTimeout(ctx)
		record, err := a.options.Ledger.Answer(writing, q.Execution, said, policy.Answer)
		cancel()
		if err == nil {
			a.options.OnAnswer(Event{Route: q.Route, Execution: q.Execution, Said: said, Record: record})
			return
		}
		if ctx.Err() != nil || !errors.Is(err, idem.ErrStoreUnavailable) {
			return // it is asked again
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
	}
}

func (a *Asker) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), a.options.RequestTimeout)
}
