package requests

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	tendEvery   = time.Minute
	tendSoonest = time.Second // after the look before, if the limits are passed
	tendTimeout = 5 * time.Minute
)

// tally counts requests.
type tally struct{ events, bytes int64 }

func (t *tally) add(more tally) {
	t.events += more.events
	t.bytes += more.bytes
}

func processName() string { return strings.ToLower(rand.Text()[:12]) }

// countName returns the name that says how much a process has put onto a shelf.
func (s shelf) countName(process string, n tally) string {
	return fmt.Sprintf("%s.%s.%s.%d.%d", s.keepName(), s.minuteName(), process, n.events, n.bytes)
}

// countIn returns what countName wrote.
func countIn(name string) (s shelf, process string, n tally, ok bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 5 {
		return s, "", n, false
	}
	keep, isKeep := keepIn(parts[0])
	minute, isMinute := minuteIn(parts[1])
	events, err := strconv.ParseInt(parts[3], 10, 64)
	bytes, err2 := strconv.ParseInt(parts[4], 10, 64)
	ok = isKeep && isMinute && err == nil && err2 == nil && events >= 0 && bytes >= 0
	return shelf{keep, minute}, parts[2], tally{events, bytes}, ok
}

// tendRegularly looks after the archive until ctx ends.
func (a *Archive) tendRegularly(ctx context.Context) {
	ticker := time.NewTicker(tendEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		bounded, done := context.WithTimeout(ctx, tendTimeout)
		if err := a.Tend(bounded); err != nil && ctx.Err() == nil {
			a.o.OnError(err)
		}
		done()
		soonest := time.NewTimer(tendSoonest)
		select {
		case <-soonest.C:
		case <-ctx.Done():
		}
		soonest.Stop()
		select {
		case <-ticker.C:
		case <-a.full:
		case <-ctx.Done():
		}
	}
}

// Tend says what this process has written, and deletes what is old, and the oldest beyond the
// limits: whole minutes, but never the newest. It is not safe for concurrent use.
func (a *Archive) Tend(ctx context.Context) error {
	if err := a.sayCounts(ctx); err != nil {
		return err
	}
	now := a.o.Now()
	shelves, err := a.listShelves(ctx)
	if err != nil {
		return err
	}
	totals, names, err := a.readCounts(ctx)
	if err != nil {
		return err
	}
	for s := range totals {
		shelves[s] = true
	}
	var all tally
	for _, n := range totals {
		all.add(n)
	}
	events, bytes := a.o.Limits()
	inOrder := slices.SortedFunc(maps.Keys(shelves), func(x, y shelf) int {
		return cmp.Or(cmp.Compare(x.minute, y.minute), cmp.Compare(x.keep, y.keep))
	})
	for i, s := range inOrder {
		over := all.events > int64(events) || all.bytes > bytes
		if old := s.isOld(now); !old && (!over || i == len(inOrder)-1) {
			continue
		} else if !old {
			a.mu.Lock()
			a.counts.Removed += totals[s].events
			a.mu.Unlock()
		}
		all.add(tally{-totals[s].events, -totals[s].bytes})
		if err := a.removeShelf(ctx, s, names[s]); err != nil {
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts.Events, a.counts.Bytes, a.since = all.events, all.bytes, tally{}
	for s, n := range a.own { // written since it was said
		if s.isOld(now) { // another process may have deleted it
			delete(a.own, s)
			delete(a.said, s)
			continue
		}
		a.since.add(tally{n.events - a.said[s].events, n.bytes - a.said[s].bytes})
	}
	return nil
}

// removeShelf deletes all that is on a shelf, and what is said of it.
func (a *Archive) removeShelf(ctx context.Context, s shelf, names []string) error {
	if err := a.area.removeAll(ctx, s); err != nil {
		return err
	}
	for _, name := range names {
		if err := a.area.forgetCount(ctx, name); err != nil {
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.own, s)
	delete(a.said, s)
	return nil
}

// sayCounts writes how much this process has put where, as far as that has changed.
func (a *Archive) sayCounts(ctx context.Context) error {
	a.mu.Lock()
	changed := map[shelf]tally{}
	for s, n := range a.own {
		if a.said[s] != n {
			changed[s] = n
		}
	}
	a.mu.Unlock()
	for s, n := range changed {
		if err := a.area.noteCount(ctx, s.countName(a.name, n)); err != nil {
			return err
		}
		before := a.said[s]
		a.mu.Lock()
		a.said[s] = n
		a.mu.Unlock()
		if before == (tally{}) {
			continue
		}
		if err := a.area.forgetCount(ctx, s.countName(a.name, before)); err != nil {
			return err
		}
	}
	return nil
}

// listShelves returns the shelves that are there.
func (a *Archive) listShelves(ctx context.Context) (map[shelf]bool, error) {
	all := map[shelf]bool{}
	times, err := a.retentionTimes(ctx)
	if err != nil {
		return nil, err
	}
	for _, keep := range times {
		names, err := a.area.listNames(ctx, archiveFolder+"/"+shelf{keep: keep}.keepName())
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if minute, ok := minuteIn(name); ok {
				all[shelf{keep, minute}] = true
			}
		}
	}
	return all, nil
}

// readCounts returns how much is on each shelf, and the names that say so. Of one process the
// greatest number is true: a crash may leave an older one.
func (a *Archive) readCounts(ctx context.Context) (map[shelf]tally, map[shelf][]string, error) {
	all, err := a.area.listNames(ctx, countsFolder)
	if err != nil {
		return nil, nil, err
	}
	type of struct {
		shelf   shelf
		process string
	}
	greatest, names := map[of]tally{}, map[shelf][]string{}
	for _, name := range all {
		s, process, n, ok := countIn(name)
		if !ok {
			continue
		}
		names[s] = append(names[s], name)
		if key := (of{s, process}); n.events >= greatest[key].events {
			greatest[key] = n
		}
	}
	totals := map[shelf]tally{}
	for key, n := range greatest {
		of := totals[key.shelf]
		of.add(n)
		totals[key.shelf] = of
	}
	return totals, names, nil
}

// Counts returns what this process has done, and what there is.
func (a *Archive) Counts() ArchiveCounts {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.counts
	c.Events += a.since.events
	c.Bytes += a.since.bytes
	return c
}
