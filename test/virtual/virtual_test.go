package virtual

import (
	"context"
	"flag"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"hooklock/idem"
)

var (
	hours = flag.Float64("hours", 1, "virtual hours over all seeds; more than one: other seeds each time")
	seed  = flag.Uint64("seed", 0, "the only seed to run; 0: some")
	again = flag.Int("again", 50, "how often a seed is run again that has failed")
)

const (
	perSeed  = 20 * time.Minute // for how long one world is disturbed; its quiet end comes on top
	retrying = 5 * time.Minute  // of real time, for running a failed seed again
)

func TestNoPromiseIsBrokenInAnyWorld(t *testing.T) {
	first, worlds := uint64(1), uint64(max(1, time.Duration(*hours*float64(time.Hour))/perSeed))
	switch {
	case *seed != 0:
		first, worlds = *seed, 1
	case *hours > 1:
		first = uint64(time.Now().UnixNano())
	}
	for s := first; s < first+worlds; s++ {
		if t.Run(strconv.FormatUint(s, 10), func(t *testing.T) { live(t, s) }) {
			continue
		}
		runs, failed := 0, 0
		for began := time.Now(); runs < *again && time.Since(began) < retrying; runs++ {
			if !t.Run("again", func(t *testing.T) { live(t, s) }) {
				failed++
			}
		}
		t.Logf("seed %d failed once, and then %d of %d times", s, failed, runs)
	}
}

// disturbed is a world in which something breaks all the time.
var disturbed = kind{retention: time.Hour, maxAge: 30 * 24 * time.Hour, rareFaults: 1, rareEvents: 1,
	skews: []time.Duration{0, 0, time.Hour, -3 * time.Hour}}

// live runs one world to its quiet end.
func live(t *testing.T, seed uint64) {
	dir, real := t.TempDir(), time.Now()
	cryptotest.SetGlobalRandom(t, seed)
	var w *world
	defer func() { // the end of a bubble that failed is the end of its test
		t.Logf("seed %d: %v of real time; %d runs, %v", seed, time.Since(real).Round(100*time.Millisecond),
			w.judge.runs, w.judge.last)
		if t.Failed() {
			w.write(os.TempDir())
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, seed, dir, disturbed)
		end := time.Now().Add(perSeed)
		time.Sleep(time.Minute)
		quiet := runtime.NumGoroutine()
		w.setLoss(1)
		w.breaking.Go(func() { w.faults(end) })
		w.tasks.Go(func() { w.operators(end) })
		w.tasks.Go(func() { w.reruns(end) })
		w.senders(end)
		w.breaking.Wait()
		w.calm()
		w.judge.close()
		w.leave(quiet)
	})
}

// keptForDays are the keys that are kept for 30 days.
var keptForDays = regexp.MustCompile(`/(audits|arrivals|counting|minutes|hours)/`)

// calm waits, with everything in order, until nothing is left to do. An operator runs what is
// blocked.
func (w *world) calm() {
	w.say("world", "calm")
	w.setLoss(0)
	for range 240 {
		time.Sleep(30 * time.Second)
		p := w.anyProcess()
		if blocked, err := w.unblock(p); err == nil && blocked == 0 && p.store.Parked(idem.Scope{}).Events == 0 {
			time.Sleep(10 * time.Minute) // what is held ends
			return
		}
	}
	w.fail("two hours after the last fault, %d accepted events still wait",
		w.anyProcess().store.Parked(idem.Scope{}).Events)
}

// unblock runs what is blocked, and returns how much that is.
func (w *world) unblock(p *process) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	blocked, err := p.store.ParkedExecutions(ctx, idem.ParkedQuery{State: idem.ParkBlocked})
	for _, f := range blocked.Executions {
		if f.Lock == nil {
			continue
		}
		w.judge.allow(f.Lock.EventID)
		_, err := p.store.RunNow(ctx, f.ID(), nil)
		w.say("operator", "run %s of %s: %v", f.ID(), f.Lock.EventID, err)
	}
	return len(blocked.Executions), err
}

// leave waits until all records are gone by their time, ends the processes, and looks what is left
// of them.
func (w *world) leave(goroutines int) {
	time.Sleep(2*time.Hour + w.kind.retention*9/8)
	if n := runtime.NumGoroutine(); n > goroutines+10*len(w.routes) {
		w.fail("%d goroutines in the end, %d in the beginning", n, goroutines)
	}
	w.leaving.Store(true)
	w.mu.Lock()
	all := append([]*process(nil), w.processes...)
	w.mu.Unlock()
	for _, p := range all {
		if n, _ := p.guard.Waiting(); n != 0 {
			w.fail("%s: %d deliveries wait in the end", p.name, n)
		}
		if n, _ := p.store.Active(); n != 0 {
			w.fail("%s: %d executions run in the end", p.name, n)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		locks, err := p.store.Locks(ctx, idem.LockQuery{})
		cancel()
		for _, l := range locks.Locks {
			w.fail("%s: the lock of %s is there in the end: %+v", p.name, l.Lock.Scope.Workflow, l.Lock.ExecutionFacts)
		}
		if err != nil {
			w.fail("%s: list locks: %v", p.name, err)
		}
		for _, slot := range p.store.SlotsHere() {
			if slot.Taken+slot.Waiting != 0 {
				w.fail("%s: a slot is taken or waited for in the end: %+v", p.name, slot)
			}
		}
		if n, _ := p.store.Held(); n != 0 {
			w.fail("%s: %d executions are held in the end", p.name, n)
		}
		p.end()
	}
	w.tasks.Wait()
	time.Sleep(time.Minute)
	for key, life := range w.keys() {
		if life == 0 || !keptForDays.MatchString(key) {
			w.fail("%s is left, and stays for %v", key, life)
		}
	}
	w.etcd.stop()
}
