package virtual

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"hooklock/idem"
)

// reruns are the executions of an event that an operator has let run although it had ended.
type reruns struct {
	known map[idem.ExecutionID]bool
	open  int // calls that may have made one, and have not said which
}

// allows reports whether an operator let the execution run. The first that no answer named belongs
// to a call whose answer is not there, or got lost.
func (a *reruns) allows(id idem.ExecutionID, parked bool) bool {
	if !a.known[id] && parked && a.open > 0 {
		a.open--
		a.note(id)
	}
	return a.known[id]
}

func (a *reruns) note(id idem.ExecutionID) {
	if a.known == nil {
		a.known = map[idem.ExecutionID]bool{}
	}
	a.known[id] = true
}

// reruns lets events run again that have ended, settled or not, until end.
func (w *world) reruns(end time.Time) {
	for time.Now().Before(end) {
		time.Sleep(w.between(time.Second, 30*time.Second))
		w.runSomeAgain(w.anyProcess())
	}
}

// runSomeAgain lets some event run again. Sometimes two operators do that at a time.
func (w *world) runSomeAgain(p *process) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	status := pickOf(w, idem.Success, idem.Success, idem.Failed, idem.Aborted)
	x := w.anyEvent(ctx, p, idem.ExecutionQuery{Status: status})
	if x == nil {
		return
	}
	if w.chance(200) {
		other := w.anyProcess()
		w.tasks.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			w.runAgain(ctx, other, x)
		})
	}
	w.runAgain(ctx, p, x)
}

func (w *world) runAgain(ctx context.Context, p *process, was *idem.ExecutionFacts) {
	w.judge.asksAgain(was.EventID)
	found, err := p.store.RunAgain(ctx, was.Execution, nil)
	w.say("operator", "run %s of %s again: %v", was.Execution, was.EventID, err)
	w.judge.runsAgain(was, found, err)
	if e := w.judge.event(was.EventID); err == nil && w.chance(500) { // its sender does, too
		w.tasks.Go(func() {
			for range 5 {
				time.Sleep(w.between(time.Millisecond, 10*time.Second))
				w.deliver(e)
			}
		})
	}
}

// asksAgain notes that an operator is about to let an event run again.
func (j *judge) asksAgain(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events[id].again.open++
}

// runsAgain is what the ledger says to that: the next attempt of the same event, or why there is
// none.
func (j *judge) runsAgain(was *idem.ExecutionFacts, found *idem.Found, err error) {
	j.mu.Lock()
	e := j.events[was.EventID]
	if unavailable(err) { // it may run, or not
		j.mu.Unlock()
		return
	}
	if err != nil {
		e.again.open--
		j.mu.Unlock()
		return
	}
	id := found.ID()
	if !e.again.known[id] {
		e.again.open--
		e.again.note(id)
	}
	if next := found.Facts(); next == nil || next.Scope != was.Scope || next.EventID != was.EventID ||
		next.Attempt != was.Attempt+1 || next.Execution == was.Execution ||
		next.Earlier[len(next.Earlier)-1].Execution != was.Execution {
		j.failLocked("%s runs again as %+v, which is not the attempt after %d of event %s", was.Execution, next,
			was.Attempt, was.EventID)
	}
	j.last["again"]++
	j.mu.Unlock()
	j.accepted(e, id)
}

// attemptLocked checks that an execution that an operator let run is a later attempt than all
// before it.
func (j *judge) attemptLocked(r *route, e *event, l *idem.Lock) {
	for _, v := range e.visits {
		if v.execution != l.Execution && l.Attempt <= v.attempt && time.Since(v.ended) < r.policy().Retention {
			j.failLocked("event %s: %s is attempt %d, and %s was attempt %d", e.id, l.Execution, l.Attempt,
				v.execution, v.attempt)
		}
	}
}

// newestAnswer is the number of the visit whose answer a duplicate gets that comes now: that one,
// or a later one. 0 = none is known to be in the ledger.
func (j *judge) newestAnswer(e *event) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return e.newest
}

// replayed is the answer that a duplicate got, which came when newest was the newest.
func (j *judge) replayed(e *event, a *idem.Answer, attached bool, newest int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if a.Status >= 300 && !attached {
		j.failLocked("event %s: a duplicate got %d, which is not kept", e.id, a.Status)
	}
	if n, err := strconv.Atoi(string(a.Body)); err == nil && n < newest {
		j.failLocked("event %s: a duplicate got the answer of visit %d, and that of %d is newer", e.id, n, newest)
	}
}

// archived is etcdlock.Options.Archived: the requests of all events are kept. A full disk refuses.
func (w *world) archived(_ context.Context, r *idem.Record, _ idem.ExecutionID) (again idem.StoredRequest,
	runs *idem.ParkedEntry, err error) {
	if w.diskFull.Load() {
		return again, nil, errors.New("no space left on device")
	}
	again.Value, err = json.Marshal(r.EventID)
	again.Bytes = int64(len(again.Value))
	return again, w.policy(r.Route).RunsAgain(r, "/"+r.EventID), err
}
