package idem

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Parking is what a delivery brings that may be parked.
type Parking struct {
	// AtOnce: whatever the policy says, it is to be parked before anything is asked, because its sender has heard too many failures.
	AtOnce bool
	// Patience is how long its sender still waits for an answer; less than 0 = no longer.
	Patience time.Duration
	Size     int // bytes of the request
	// Keep makes what the ledger keeps of it, for the execution of that ID. When it returns nil as its error, what is kept elsewhere is there
	// to stay.
	Keep func(ctx context.Context, id ExecutionID) (Kept, error)
}

// ParkLimits bound what is parked over all processes, as far as each knows of the others.
type ParkLimits struct {
	Events int
	Bytes  int64
}

// Has reports whether a delivery may be parked for that reason.
func (p *ParkPolicy) Has(on ParkOn) bool {
	switch on {
	case ParkPaused, ParkSenderLimit:
		return true
	case ParkLocked:
		return p.Locked
	case ParkSlow:
		return p.Slow
	case ParkUnreachable:
		return p.Unreachable
	case ParkUnknown:
		return p.Unknown
	case ParkFailed:
		return p.Failed
	}
	return false
}

// MayPark reports whether a delivery may be parked for that reason now. Under Observe it says whether it might be.
func (g *Guard) MayPark(r *Request, on ParkOn) bool {
	p := r.Policy.Park
	switch {
	case p == nil || r.Parking == nil || !p.Has(on), p.MaxBytes > 0 && r.Parking.Size > p.MaxBytes:
		return false
	case r.Policy.Observe:
		return true
	case g.o.Parks == nil:
		return false
	}
	now, most := g.o.Parks.Parked(), g.o.ParkLimits()
	return now.Events < most.Events && now.Bytes+int64(r.Parking.Size) <= most.Bytes && g.o.Parks.Waiting(r.Scope) < p.MaxWaiting
}

// atOnce reports whether a delivery is parked before anything is asked.
func (g *Guard) atOnce(r *Request) bool {
	p := r.Policy.Park
	return p != nil && (p.After == 0 && p.Locked || r.Parking != nil && r.Parking.AtOnce) && !r.Policy.Observe && g.MayPark(r, r.atOnceFor())
}

// atOnceFor is what a delivery is parked for that is parked at once.
func (r *Request) atOnceFor() ParkOn {
	if r.Parking != nil && r.Parking.AtOnce {
		return ParkSenderLimit
	}
	return ParkLocked
}

// parkRefused parks a delivery that is refused only because another one is before it.
func (g *Guard) parkRefused(r *Request, a Admission) Admission {
	switch {
	case !g.MayPark(r, a.parkOn()):
		return a
	case r.Policy.Observe:
		a.Decision = DecisionParked
		return a
	}
	parked := g.park(r, a.Verdict, a.parkOn())
	if errors.Is(parked.Err, errUnkept) {
		return a
	}
	parked.Waited = a.Waited
	return parked
}

// parkOn is what a delivery that is refused would be parked for.
func (v *Verdict) parkOn() ParkOn {
	if v.Decision == DecisionPaused {
		return ParkPaused
	}
	return ParkLocked
}

// park puts a delivery into its line, to be run without its sender. It may be decided otherwise: its event was settled, or a copy waits or runs.
func (g *Guard) park(r *Request, first Verdict, on ParkOn) Admission {
	ctx, cancel := context.WithTimeout(g.o.Base, g.o.RequestTimeout)
	defer cancel()
	w := &waiter{guard: g, r: r, ctx: ctx, parks: on}
	_, v, err := AwaitLock(ctx, g.o.Ledger, w, Verdict{Attempt: 1, Behind: first.Behind})
	switch {
	case v.Accepted:
		v.On = on
		g.quotas.add(r.Policy, -1, g.o.Now())
	case v.Decision == DecisionWaitTimeout, v.Decision == "":
		a := unavailable(errors.Join(err, w.notParked, context.Cause(ctx)))
		a.Unsure = errors.Is(err, ErrNotRecorded)
		return a
	}
	return Admission{Verdict: v, Err: err}
}

// errUnkept: what keeps requests does not take this one, so it is decided about as if nothing could be parked. Nothing was asked of the ledger.
var errUnkept = errors.New("the request could not be kept")

// Keep implements Waiter.
func (w *waiter) Keep(ctx context.Context, id ExecutionID) (Kept, error) {
	kept, err := w.r.Parking.Keep(ctx, id)
	if err != nil {
		err = fmt.Errorf("%w: %w", errUnkept, err)
		w.notParked = err // where that took all the time that there was, nobody else says so
	}
	return kept, err
}

// Stays implements Waiter.
func (w *waiter) Stays(place Place, lock Lock) bool {
	on := ParkLocked
	if w.paused() != nil {
		on = ParkPaused
	}
	if w.r.Policy.Observe || !w.guard.MayPark(w.r, on) { // what is observed is forwarded now
		return false
	}
	request, cancel := w.Request()
	defer cancel()
	kept, err := w.Keep(request, lock.Execution)
	if err == nil {
		err = place.Park(request, Parked{Since: w.Now(), On: on, Bytes: kept.Bytes}, kept)
	}
	if w.notParked = err; err == nil {
		w.parks = on
	}
	return err == nil
}

// errEnded: the execution ended before it was to be parked.
var errEnded = errors.New("the execution has ended")

// Park makes an execution outlive its delivery. last is how its only try ended; nil: it still goes on, and its end is told with Tried. After an
// error the execution is as it was.
func (x *Execution) Park(r *Request, on ParkOn, last *Evidence) error {
	x.keeping.Lock()
	defer x.keeping.Unlock()
	if x.ended.Load() {
		return errEnded
	}
	if x.parked.Load() {
		return nil
	}
	kept, err := x.keep(r)
	if err != nil {
		return err
	}
	x.gate.Lock()
	defer x.gate.Unlock()
	if x.ended.Load() { // what is kept is nobody's, and is swept
		return errEnded
	}
	ctx, cancel := x.bounded()
	defer cancel()
	p := (&Parked{Since: x.guard.o.Now(), On: on, Bytes: kept.Bytes, Tries: 1}).tried(last)
	// The park worker hears of the end of this try at once, and writes down its answer and what follows from an unknown outcome. Until then that is the
	// outcome of a try that has not ended.
	p.Trying, p.Failed = last == nil || last.Outcome == Unknown, nil
	if err := x.held.Park(ctx, p, kept); err != nil {
		return err
	}
	x.parked.Store(true)
	x.guard.live.replace(x.spot, x.held.Lock())
	return nil
}

// keep keeps its request, which may take as long as a disk takes. Its end does not wait for that, and calls it off.
func (x *Execution) keep(r *Request) (Kept, error) {
	ctx, cancel := x.bounded()
	defer cancel()
	defer context.AfterFunc(x.ctx, func() {
		if x.ended.Load() { // and was not only told to stop
			cancel()
		}
	})()
	return r.Parking.Keep(ctx, x.Lock().Execution)
}

// Parked reports whether its sender was told that it is accepted. What it ends with is then judged by whoever carries it.
func (x *Execution) Parked() bool { return x.parked.Load() }

// GiveUp ends the try of a parked execution that nothing was sent of, and that no other try can bring further: it is a dead letter.
func (x *Execution) GiveUp(why Failure) { x.told(Tried{Failure: why, Hopeless: true}) }

// told tells whoever carries a parked execution how its try ended; false: it is not parked, or has ended.
func (x *Execution) told(t Tried) bool {
	x.gate.Lock()
	defer x.gate.Unlock()
	if !x.parked.Load() || !x.ended.CompareAndSwap(false, true) {
		return false
	}
	x.deadline()
	x.stop(nil)
	if x.tried != nil {
		x.tried <- t
	} else {
		x.guard.carrier.carryOn(x, t)
	}
	return true
}

// MayPark reports whether the execution may be parked for that reason now.
func (x *Execution) MayPark(r *Request, on ParkOn) bool { return r != nil && x.guard.MayPark(r, on) }

// finish is true for the first who ends the execution, after whoever parks it.
func (x *Execution) finish() bool {
	x.gate.Lock()
	defer x.gate.Unlock()
	return x.ended.CompareAndSwap(false, true)
}

// busy reports whether deliveries come. The last one may be in the future of a clock that was set back since: that is not now.
func (g *Guard) busy() bool {
	since := time.Duration(g.o.Now().UnixNano() - g.lively.Load())
	return since.Abs() < time.Second
}

// Drain lets deliveries that wait be parked where they may be, instead of being refused when the process ends.
func (g *Guard) Drain() { g.drain(errDraining) }

var errDraining = errors.New("the process is about to end")
