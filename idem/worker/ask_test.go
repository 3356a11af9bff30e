package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"hooklock/idem"
	"hooklock/idem/guard"
)

// askedLock is a parked execution whose latest try is of unknown outcome.
type askedLock struct {
	oneLock
	ended *idem.End
}

func (a *askedLock) RecordTry(_ context.Context, p idem.Parked) error {
	a.lock.Parked = &p
	return nil
}

func (a *askedLock) Settle(_ context.Context, e idem.End) (*idem.Record, error) {
	a.ended = &e
	return &idem.Record{End: e}, nil
}

func asksAboutOne(t *testing.T, said ...idem.Asked) (*run, *askedLock) {
	held := &askedLock{}
	held.lock.Question = &idem.Question{URL: "/orders/1"}
	held.lock.Parked = &idem.Parked{Tries: 1, Failures: 1, Effect: idem.Unknown,
		Last: &idem.Evidence{Outcome: idem.Unknown, At: time.Now()}}
	policy := testPolicy()
	policy.OnUnknown, policy.Ask = idem.UnknownAsk, &idem.AskPolicy{After: 2 * time.Second, Attempts: 2, Answer: 204}
	g := guard.New(guard.Options{Ledger: held, Base: t.Context(), Cache: guard.NewCache(0)})
	asked := 0
	w := New(Options{Guard: g, Ledger: roomy{}, Policy: func(string) *idem.Policy {
		return policy
	}, Ask: func(context.Context, *idem.Lock) idem.Asked {
		asked++
		return said[asked-1]
	}})
	return &run{worker: w, running: g.Resume(held), wake: make(chan struct{}, 1)}, held
}

func TestTheServiceIsAskedBeforeAnotherTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, held := asksAboutOne(t, idem.Asked{Outcome: idem.Executed, Status: 200})
		if next := held.lock.Parked.Asks(r.worker.options.Policy(""), held.lock.Question); !next {
			t.Error("it is tried again without a question")
		}
		if over := r.askService(); !over || held.ended == nil || held.ended.Status != idem.Success ||
			held.ended.Answer.Status != 204 || held.ended.Asked.Times != 1 {
			t.Errorf("executed: %+v", held.ended)
		}
	})
}

func TestWhatWasNotExecutedIsTriedAtOnceAndCountsAsNoTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, held := asksAboutOne(t, idem.Asked{Outcome: idem.NotExecuted, Status: 404})
		over := r.askService()
		if p := held.lock.Parked; over || p.Outcome() != idem.NotExecuted || p.Failures != 0 ||
			!p.NextAttempt.IsZero() || p.Asks(r.worker.options.Policy(""), held.lock.Question) {
			t.Errorf("%+v", p)
		}
	})
}

func TestAServiceThatSaysNothingLeavesTheEventToAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := idem.Asked{Outcome: idem.Unknown, Detail: "the service answered 500"}
		r, held := asksAboutOne(t, silent, silent)
		r.askService()
		if p := held.lock.Parked; p.Blocked != "" || p.Asked != 1 || time.Until(p.NextAttempt) != time.Second {
			t.Errorf("after one question: %+v", p)
		}
		r.askService()
		if p := held.lock.Parked; p.Blocked == "" || p.Asks(r.worker.options.Policy(""), held.lock.Question) {
			t.Errorf("after the last question: %+v", p)
		}
	})
}
