package requests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hooklock/idem"
)

// Known returns which of some executions are in no queue, no lock and no record: the bytes of those
// alone may be deleted. An error means that this is unknown, and deletes nothing. It is called with
// at most 100 executions, and does not keep the slice.
type Known func(ctx context.Context, executions []idem.ExecutionID) (unknown []idem.ExecutionID, err error)

const (
	sweepBatch   = 100
	maxSuspects  = 1 << 16 // more are looked at once some of them are gone
	orphanAfter  = time.Hour
	sweepEvery   = 10 * time.Minute
	sweepTimeout = 5 * time.Minute
)

// Sweeper deletes bytes without an execution: a process wrote them and died, or failed, before the
// transaction that was to refer to them.
//
// What is old is decided by one clock alone, this process's own, which never runs backwards: bytes
// go when this process has found them without an execution in every pass for an hour. So a restart
// lets them live longer, and no clock of another machine, nor one that was set, can end them.
type Sweeper struct {
	store Store
	known Known
	clock func() time.Time
	since map[idem.ExecutionID]time.Time // first seen without an execution, and in each pass since then
}

// NewSweeper sweeps store. clock is time.Now, whose readings are monotonic.
func NewSweeper(store Store, known Known, clock func() time.Time) *Sweeper {
	return &Sweeper{store: store, known: known, clock: clock, since: map[idem.ExecutionID]time.Time{}}
}

// Run makes a pass at once and every ten minutes, until ctx ends. It reports of each how many
// orphans it deleted, and why it ended early.
func (s *Sweeper) Run(ctx context.Context, say func(deleted int, err error)) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		pass, cancel := context.WithTimeout(ctx, sweepTimeout)
		deleted, err := s.Pass(pass)
		cancel()
		if ctx.Err() == nil {
			say(deleted, err)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// Pass checks all bytes once, and deletes those that have been orphans for an hour. It is not safe
// for concurrent use. Nothing is deleted before every question was answered.
func (s *Sweeper) Pass(ctx context.Context) (deleted int, err error) {
	orphans, err := s.findOrphans(ctx)
	if err != nil {
		return 0, err
	}
	now := s.clock()
	for execution := range s.since {
		if _, still := orphans[execution]; !still {
			delete(s.since, execution)
		}
	}
	for execution := range orphans {
		first, seen := s.since[execution]
		switch {
		case !seen:
			s.since[execution] = now
		case now.Sub(first) >= orphanAfter:
			if err := s.store.Delete(ctx, execution); err != nil {
				return deleted, fmt.Errorf("sweep the bytes of requests: %w", err)
			}
			delete(s.since, execution)
			deleted++
		}
	}
	return deleted, nil
}

// findOrphans returns the orphans among all that is in the store.
func (s *Sweeper) findOrphans(ctx context.Context) (map[idem.ExecutionID]struct{}, error) {
	orphans := map[idem.ExecutionID]struct{}{}
	var batch []idem.ExecutionID
	for execution, err := range s.store.List(ctx) {
		if err != nil {
			return nil, err
		}
		if batch = append(batch, execution); len(batch) < sweepBatch {
			continue
		}
		if err := s.addOrphans(ctx, orphans, batch); err != nil {
			return nil, err
		}
		batch = batch[:0]
	}
	return orphans, s.addOrphans(ctx, orphans, batch)
}

// addOrphans adds the orphans of a batch.
func (s *Sweeper) addOrphans(ctx context.Context, orphans map[idem.ExecutionID]struct{},
	batch []idem.ExecutionID) error {
	if len(batch) == 0 {
		return nil
	}
	unknown, err := s.known(ctx, batch)
	if err != nil {
		return fmt.Errorf("ask whose bytes are still needed: %w", err)
	}
	for _, execution := range unknown {
		if !slices.Contains(batch, execution) {
			return errors.New("ask whose bytes are still needed: the answer is about others than the question")
		}
		if len(orphans) < maxSuspects {
			orphans[execution] = struct{}{}
		}
	}
	return nil
}
