package virtual

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"hooklock/idem"
	"hooklock/proxy/requests"
)

var days = flag.Int("days", 0, "virtual days of TestNothingGrowsWithTheDays; 0: it does not run")

// calmWorld is a world as most are: now and then an event, seldom a fault. Its etcd writes down how
// long leases still live, as the embedded one does: where it restarts more often than records
// expire, none would.
var calmWorld = kind{retention: 24 * time.Hour, maxAge: 48 * time.Hour, rareFaults: 40, rareEvents: 8,
	skews: []time.Duration{0}, beside: true, remembered: 20_000,
	gates: map[string]bool{"LeaseCheckpoint": true, "LeaseCheckpointPersist": true}}

// forgotten is how long after its last event everything of it but what people read is gone. Leases
// are shared, so records live up to an eighth longer.
const forgotten = 27*time.Hour + 5*time.Minute

// TestNothingGrowsWithTheDays lives through days in which events are remembered for one: a repeat
// that comes within it does not run again, and one that comes after it does; keys, kept requests,
// memory and goroutines stay as they were; and the counts of each day are those of the day.
func TestNothingGrowsWithTheDays(t *testing.T) {
	if *days == 0 {
		t.Skip("runs with -days 7")
	}
	dir, real, s := t.TempDir(), time.Now(), max(*seed, 1)
	cryptotest.SetGlobalRandom(t, s)
	var w *week
	defer func() {
		t.Logf("seed %d: %d days in %v of real time; %d runs, %v", s, *days, time.Since(real).Round(time.Second),
			w.judge.runs, w.judge.last)
		t.Logf("%d processes and %d members of etcd were started", w.born, len(w.etcd.starts()))
		t.Logf("%d repeats within the retention, %d after it, of which %d ran at once", w.within, w.after, w.ran)
		t.Logf("%d kept requests were looked for, %d of them in vain", w.fetched, w.truth.missing)
		if t.Failed() {
			w.write(os.TempDir())
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		w = &week{world: newWorld(t, s, dir, calmWorld)}
		end := w.began.Add(time.Duration(*days) * 24 * time.Hour)
		time.Sleep(time.Minute)
		quiet := runtime.NumGoroutine()
		w.setLoss(1)
		w.breaking.Go(func() { w.faults(end) })
		w.tasks.Go(func() { w.operators(end) })
		w.tasks.Go(func() { w.repeat(end) })
		w.tasks.Go(func() { w.hours(end) })
		w.tasks.Go(func() { w.unblockAll(end) })
		w.senders(end)
		w.breaking.Wait()
		w.calm()
		w.judge.close()
		w.countsAreRight()
		w.neverGrew()
		w.leave(quiet)
	})
}

// week is a world that is looked at each hour.
type week struct {
	*world
	looks         []look
	within, after int // repeats within the retention, and after it
	ran           int // of those after it, those that ran at once
	fetched       int // kept requests that were looked for
}

// look is what there was at the end of an hour.
type look struct {
	day        int
	keys       int // without those that are kept for 30 days
	lasting    int // those
	executions int // that the keys may be of
	goroutines int
	heap       uint64
	database   int64
	files      int // of kept requests
	due        int // requests that are to be kept
}

// hours looks each hour at what is there, and does what is done regularly.
func (w *week) hours(end time.Time) {
	for hour := 1; time.Now().Before(end); hour++ {
		time.Sleep(time.Until(w.began.Add(time.Duration(hour) * time.Hour)))
		w.etcd.compact(context.Background())
		if m, _ := w.etcd.current(); m != nil {
			if hour%24 == 0 {
				_ = m.server.Backend().Defrag()
			}
			w.look(m, hour)
		}
		w.judge.drop(time.Now().Add(-3 * w.kind.retention))
		w.truth.drop(time.Now().Add(-3 * w.kind.retention))
	}
}

// unblockAll runs what is blocked, as people do.
func (w *week) unblockAll(end time.Time) {
	for time.Now().Before(end) {
		time.Sleep(5 * time.Minute)
		_, _ = w.unblock(w.anyProcess())
	}
}

func (w *week) look(m *member, hour int) {
	l := look{day: (hour - 1) / 24, goroutines: runtime.NumGoroutine(), database: m.server.Backend().SizeInUse()}
	for key := range w.keys() {
		if keptForDays.MatchString(key) {
			l.lasting++
		} else {
			l.keys++
		}
	}
	l.executions = w.truth.since(w.remembersSince())
	l.due = w.truth.since(time.Now().Add(-w.kind.retention))
	l.files = countFiles(filepath.Join(w.etcd.dir, "requests"))
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	l.heap = memory.HeapAlloc
	w.looks = append(w.looks, l)
	if most := l.executions*3/2 + 300; l.keys > most {
		w.fail("hour %d: %d keys, and at most %d executions that they can be of", hour, l.keys, l.executions)
	}
	if most := l.due*3/2 + 24*60 + 300; l.files > most { // with a folder for each minute
		w.fail("hour %d: %d files, and %d requests that are kept", hour, l.files, l.due)
	}
	w.readKept(hour)
}

// remembersSince is when an execution began at the earliest of which keys may be left. A change of
// etcd's leader gives them their whole time again.
func (w *week) remembersSince() time.Time {
	since := time.Now().Add(-forgotten)
	for _, at := range slices.Backward(w.etcd.starts()) {
		if at.After(since) {
			since = at.Add(-forgotten)
		}
	}
	return since
}

// readKept reads some kept requests: they are there for the retention, and no longer.
func (w *week) readKept(hour int) {
	archive := w.anyProcess().beside.archive
	for range 100 {
		at, ok := w.truth.anyPlace(w.world)
		if !ok {
			return
		}
		age := time.Since(at.StartedAt)
		r, err := archive.Fetch(context.Background(), at)
		switch {
		case err == nil && len(r.Body) == 0:
			w.fail("hour %d: the request of %s is empty", hour, at.Execution)
		case err == nil && age > w.kind.retention+5*time.Minute:
			w.fail("hour %d: the request of %s is there after %v", hour, at.Execution, age)
		case errors.Is(err, requests.ErrNotKept) && age < w.kind.retention-time.Minute && age > time.Second:
			w.truth.missed(at)
		case err != nil && !errors.Is(err, requests.ErrNotKept):
			w.fail("hour %d: the request of %s: %v", hour, at.Execution, err)
		}
		w.fetched++
	}
}

// repeat sends events again that have gone through, within the retention or after it.
func (w *week) repeat(end time.Time) {
	for time.Now().Before(end) {
		time.Sleep(w.between(time.Second, 4*time.Minute))
		e, settled := w.judge.anySettled(w.world)
		since := time.Now().Add(-forgotten)
		starts := w.etcd.starts()
		switch {
		case e == nil:
		case time.Since(settled) < w.kind.retention-time.Minute:
			w.within++
			w.deliver(e)
		case settled.Before(since) && starts[len(starts)-1].Before(since) && w.judge.renew(e):
			w.after++
			switch got := w.deliver(e); got.decision {
			case idem.DecisionReplayed, idem.DecisionAttached:
				w.fail("event %s is still answered by its record, %v after it", e.id, time.Since(settled))
			case idem.DecisionExecuted:
				w.ran++
			}
		}
	}
}

// countsAreRight compares what was counted on each day with what was delivered on it.
func (w *week) countsAreRight() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	h, err := w.anyProcess().store.Counts(ctx, idem.CountQuery{Since: w.began, Step: 24 * time.Hour})
	if err != nil {
		w.fail("read the counts: %v", err)
		return
	}
	w.truth.mu.Lock()
	defer w.truth.mu.Unlock()
	var all, told int
	for _, r := range h.Routes {
		for _, step := range r.Steps {
			day := dayOf(step.At)
			want, got := w.truth.deliveries[day][r.Route], int(step.Counts[idem.CountDeliveries])
			all, told = all+want, told+got
			if differ := max(want-got, got-want); differ > w.truth.unsure[day] {
				w.fail("%s, day %d: %d deliveries, %d counted", r.Route, day+1, want, got)
			}
		}
	}
	var sent int
	for _, routes := range w.truth.deliveries {
		for _, n := range routes {
			sent += n
		}
	}
	if sent != all {
		w.fail("%d deliveries are of days that have counts, and there were %d", all, sent)
	}
	w.t.Logf("%d deliveries, %d counted", sent, told)
}

// neverGrew compares the days, from the one on which all that is remembered has been full.
func (w *week) neverGrew() {
	byDay := map[int]*look{}
	for _, l := range w.looks {
		d := byDay[l.day]
		if d == nil {
			byDay[l.day] = &l
			continue
		}
		d.goroutines, d.heap = min(d.goroutines, l.goroutines), min(d.heap, l.heap)
		d.database, d.keys, d.lasting = min(d.database, l.database), max(d.keys, l.keys), max(d.lasting, l.lasting)
		d.executions, d.files, d.due = max(d.executions, l.executions), max(d.files, l.files), max(d.due, l.due)
	}
	w.t.Logf("| day | executions that are remembered | keys of them | keys for 30 days | kept requests | goroutines " +
		"| heap MB | database MB |")
	for _, day := range slices.Sorted(maps.Keys(byDay)) {
		d := byDay[day]
		w.t.Logf("| %d | %d | %d | %d | %d | %d | %.1f | %.1f |", day+1, d.executions, d.keys, d.lasting, d.due,
			d.goroutines, float64(d.heap)/1e6, float64(d.database)/1e6)
		full := byDay[fullAfter]
		if full == nil || day <= fullAfter {
			continue
		}
		if d.goroutines > full.goroutines*5/4 || d.heap > full.heap*5/4+4e6 || d.database > full.database*5/4+1e6 {
			w.fail("day %d has more than day %d: %+v and %+v", day+1, fullAfter+1, *d, *full)
		}
		if most := 200 * (day + 1); d.lasting > most {
			w.fail("day %d: %d keys are kept for 30 days", day+1, d.lasting)
		}
	}
	if w.truth.missing > w.fetched/100 {
		w.fail("%d of %d requests that are to be kept are not", w.truth.missing, w.fetched)
	}
	if *days >= 3 && (w.within < 100**days || w.ran < 10**days) {
		w.fail("%d repeats within the retention and %d that ran after it show nothing", w.within, w.ran)
	}
}

// fullAfter is the day on which the test remembers as many events as it ever will.
const fullAfter = 3

func countFiles(dir string) (n int) {
	_ = filepath.WalkDir(dir, func(_ string, _ fs.DirEntry, err error) error {
		if err == nil {
			n++
		}
		return nil
	})
	return n
}

// truth is what was delivered, and which requests are to be kept.
type truth struct {
	mu         sync.Mutex
	deliveries map[int]map[string]int // by day and route
	unsure     map[int]int            // by day: those that a killed process may have forgotten
	places     []requests.Place       // the oldest first, as far as clocks tell
	missing    int
}

func dayOf(at time.Time) int {
	return int(at.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) / (24 * time.Hour))
}

// delivered counts a delivery. One near midnight may be counted on either day.
func (t *truth) delivered(route string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	day := dayOf(time.Now())
	if other := dayOf(time.Now().Add(-5 * time.Second)); other != day {
		t.unsure[day]++
		t.unsure[other]++
	} else if other := dayOf(time.Now().Add(5 * time.Second)); other != day {
		t.unsure[day]++
		t.unsure[other]++
	}
	if t.deliveries[day] == nil {
		t.deliveries[day] = map[string]int{}
	}
	t.deliveries[day][route]++
}

func (t *truth) mayLack(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unsure[dayOf(time.Now())] += n
}

func (t *truth) keeps(at requests.Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.places = append(t.places, at)
}

func (t *truth) missed(requests.Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.missing++
}

func (t *truth) since(at time.Time) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range slices.Backward(t.places) {
		if p.StartedAt.Before(at) {
			break
		}
		n++
	}
	return n
}

func (t *truth) anyPlace(w *world) (requests.Place, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.places) == 0 {
		return requests.Place{}, false
	}
	return t.places[w.pick(len(t.places))], true
}

// drop forgets what is older.
func (t *truth) drop(before time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.places, func(p requests.Place) bool { return p.StartedAt.After(before) })
	t.places = slices.Delete(t.places, 0, max(i, 0))
}
