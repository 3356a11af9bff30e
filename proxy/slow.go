package proxy

import (
	"context"
	"runtime"
	"time"

	"hooklock/idem"
)

// run calls the upstream for an admitted delivery, and settles. It returns the delivery that answers, and its ending: that is another delivery if
// the sender stops waiting before the call ends.
func (d *delivery) run() (*delivery, *ending) {
	if !d.parksSlow() {
		return d, d.execute()
	}
	r := slowRun{back: d, front: d.h.pool.get(d.h), ended: make(chan *ending), answered: make(chan struct{})}
	f := r.front
	f.route, f.trace, f.report, f.names, f.answered = d.route, d.trace, d.report, d.names, r.answered
	f.req.peer = append(f.req.peer, d.req.peer...)
	d.h.calls.Go(r.call)
	return r.wait()
}

// parksSlow reports whether the route parks what is slow, and this delivery can be.
func (d *delivery) parksSlow() bool {
	p := d.route.Policy.Park
	return p != nil && p.Slow && d.asked.Parking != nil && !d.route.Observe && (p.MaxBytes == 0 || d.asked.Parking.Size <= p.MaxBytes)
}

// slowRun is a run whose call may go on without its sender. back makes the call, in a goroutine of its own; if the sender stops waiting, back is
// parked, and front answers. They share no memory that changes.
type slowRun struct {
	back, front *delivery
	ended       chan *ending  // of back, if the sender still waits
	answered    chan struct{} // closed when front has answered
}

// call makes the call, and ends back if front has answered.
func (r *slowRun) call() {
	growStack()
	d := r.back
	end := d.contained(d.execute)
	select {
	case r.ended <- end:
	case <-r.answered:
		d.accepted, d.report.Trace = true, nil // front has reported both
		end.readAlone()
		d.finish()
	}
}

// readAlone reads an answer that is too long to be read whole, if no stream does: its end is the outcome.
func (e *ending) readAlone() {
	if e.stream != nil {
		_ = e.stream.Close()
	}
}

// growStack makes room on the stack of a new goroutine for a call of the upstream at once. Bit by bit, the stack is copied with all that is on it,
// which took 5 % of a delivery's CPU.
//
//go:noinline
func growStack() {
	var room [20 << 10]byte
	runtime.KeepAlive(&room)
}

// parkAgain is how often parking is tried again for a delivery whose sender has stopped waiting: there may be room, or a store, again.
const parkAgain = time.Second

// wait waits for the end of the call, or until back is parked.
func (r *slowRun) wait() (*delivery, *ending) {
	h, began := r.back.h, r.back.h.o.Now()
	timer := time.NewTimer(r.back.patience())
	defer timer.Stop()
	for {
		select {
		case end := <-r.ended:
			h.pool.put(r.front)
			return r.back, end
		case <-timer.C:
		}
		if r.park() {
			r.front.report.Upstream = h.o.Now().Sub(began) // so far
			return r.front, r.front.parkedAs(r.back.execution.Lock().Execution, idem.ParkSlow)
		}
		timer.Reset(parkAgain) // it is about to end, or its sender waits as on any route
	}
}

// park parks back if it can be. A panic is front's: back is in use by its call.
func (r *slowRun) park() (parked bool) {
	defer func() {
		if p := recover(); p != nil {
			r.front.logPanic(p)
		}
	}()
	return r.back.execution.Park() == nil
}

// Wait waits for the calls that go on after their senders were answered, at most until ctx ends.
func (h *Handler) Wait(ctx context.Context) error { return awaitAll(ctx, &h.calls) }
