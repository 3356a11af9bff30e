package virtual

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"hooklock/idem"
	"hooklock/idem/guard"
	"hooklock/proxy/asking"
)

// service is what Hooklock stands in front of. It works on a request until it has an answer, or
// until its connection is closed.
type service struct {
	w    *world
	away atomic.Bool
}

// call is one request. The execution that ends, and the process that is killed, close its
// connection.
func (s *service) call(p *process, e *event, x *guard.Execution) called {
	ctx, done := context.WithTimeout(x.Context(), upstreamTimeout)
	defer done()
	if s.away.Load() {
		return called{cause: "connection refused"}
	}
	lock := x.Lock()
	v := s.w.judge.begin(p, e, lock)
	if v == nil {
		return called{cause: "never began"}
	}
	plan := s.w.plan(e)
	timer := time.NewTimer(plan.takes)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		s.w.judge.end(v, 0, false)
		return called{sent: true, cause: "closed: " + context.Cause(ctx).Error()}
	case <-p.net.dead:
		s.w.judge.end(v, 0, false)
		return called{sent: true, cause: "killed"}
	}
	switch {
	case plan.status == 0:
		s.w.judge.end(v, 0, plan.works)
		return called{sent: true, cause: "connection reset"}
	case plan.hold > 0:
		s.w.tasks.Go(func() { s.goOn(v, lock, x.CallbackKey, plan) })
		return called{answer: v.answer(plan.status), sent: true, hold: holdTTL}
	}
	s.w.judge.end(v, plan.status, plan.status < 300)
	a := v.answer(plan.status)
	if plan.status == 429 {
		a.Header = []idem.HeaderField{{Name: "Retry-After", Value: "20"}}
	}
	return called{answer: a, sent: true}
}

// answer says which visit it is of.
func (v *visit) answer(status int) *idem.Answer {
	return &idem.Answer{Status: status, Body: []byte(strconv.Itoa(v.n)), Whole: true}
}

const holdTTL = 30 * time.Second

// askedBy is what asking.Options.Get does: the service says what became of an event, if its answer
// comes.
func (s *service) askedBy(p *process) func(context.Context, *asking.Rule, string) (idem.Outcome, int, error) {
	return func(_ context.Context, _ *asking.Rule, question string) (idem.Outcome, int, error) {
		if s.away.Load() || p.net.isDead() || s.w.chance(200) {
			return idem.Unknown, 0, errors.New("connection refused")
		}
		time.Sleep(s.w.between(time.Millisecond, time.Second))
		outcome, status, err := s.w.judge.asked(question[1:])
		s.w.say("service", "is asked about %s: %s %v", question[1:], outcome, err)
		return outcome, status, err
	}
}

// goOn is the work behind an answer of 202: it renews its hold until it is done, and says so; or it
// dies, and the hold runs out. It stops before its hold does, as a worker has to.
func (s *service) goOn(v *visit, lock *idem.Lock, key string, plan plan) {
	renewed := time.Now()
	until := renewed.Add(plan.hold)
	for time.Now().Before(until) {
		time.Sleep(min(holdTTL/3, time.Until(until)))
		now := time.Now()
		if !s.ask(renewed.Add(holdTTL-2*time.Second), func(ctx context.Context, p *process) error {
			_, err := p.store.Heartbeat(ctx, callback(lock, key), holdTTL)
			return err
		}) {
			s.w.judge.end(v, 0, false) // a worker that hears that its lock is gone stops
			return
		}
		renewed = now
	}
	if !plan.works {
		s.w.judge.end(v, 0, false)
		return
	}
	s.w.judge.end(v, 200, true)
	if s.ask(time.Now().Add(holdTTL), func(ctx context.Context, p *process) error {
		_, err := p.store.Complete(ctx, callback(lock, key), idem.Final{Status: idem.Success})
		return err
	}) {
		s.w.judge.completed(v)
	}
}

func callback(lock *idem.Lock, key string) idem.Callback {
	return idem.Callback{Execution: lock.Execution, Token: lock.Token, Key: key}
}

// ask asks any process until one answers. It is false where the answer is no, and where none has
// come until end.
func (s *service) ask(end time.Time, f func(context.Context, *process) error) bool {
	for time.Now().Before(end) {
		ctx, cancel := context.WithDeadline(context.Background(), earlier(end, time.Now().Add(2*time.Second)))
		err := f(ctx, s.w.anyProcess())
		cancel()
		switch {
		case err == nil:
			return true
		case !unavailable(err):
			return false
		}
		time.Sleep(time.Second)
	}
	return false
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
