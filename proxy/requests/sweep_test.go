package requests

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"hooklock/idem"
)

// swept is a store with n requests, whose known ones are in ledger, and a Sweeper with a clock that
// the test sets.
func swept(n byte) (store *memory, s *Sweeper, ledger map[idem.ExecutionID]bool, clock *time.Time) {
	store, ledger = newMemory(), map[idem.ExecutionID]bool{}
	for i := range n {
		store.kept[execution(i)] = []byte("x")
	}
	now := time.Unix(1000, 0)
	known := func(_ context.Context, asked []idem.ExecutionID) (unknown []idem.ExecutionID, err error) {
		for _, e := range asked {
			if !ledger[e] {
				unknown = append(unknown, e)
			}
		}
		return unknown, nil
	}
	return store, NewSweeper(store, known, func() time.Time { return now }), ledger, &now
}

func pass(t *testing.T, s *Sweeper, want int) {
	t.Helper()
	if deleted, err := s.Pass(t.Context()); err != nil || deleted != want {
		t.Errorf("deleted %d, %v; want %d", deleted, err, want)
	}
}

func TestOrphansGoAfterAnHourAndNothingElse(t *testing.T) {
	store, s, ledger, now := swept(250)
	ledger[execution(3)] = true
	pass(t, s, 0)
	*now = now.Add(orphanAfter - 1)
	pass(t, s, 0)
	*now = now.Add(1)
	pass(t, s, 249)
	if _, kept := store.kept[execution(3)]; len(store.kept) != 1 || !kept {
		t.Errorf("%d are left", len(store.kept))
	}
	*now = now.Add(100 * orphanAfter)
	pass(t, s, 0)
}

func TestTheHourOfAnOrphanBeginsAnewWhereItsBytesWereReferencedMeanwhile(t *testing.T) {
	_, s, ledger, now := swept(1)
	pass(t, s, 0)
	*now = now.Add(orphanAfter - 1)
	ledger[execution(0)] = true
	pass(t, s, 0)
	ledger[execution(0)] = false
	*now = now.Add(1)
	pass(t, s, 0)
	*now = now.Add(orphanAfter)
	pass(t, s, 1)
}

func TestNothingIsDeletedUnlessEveryQuestionWasAnswered(t *testing.T) {
	store, s, _, now := swept(250)
	pass(t, s, 0)
	*now = now.Add(2 * orphanAfter)
	answer := s.known
	away := errors.New("away")
	for name, known := range map[string]Known{
		"the third question fails": func() Known {
			n := 0
			return func(ctx context.Context, asked []idem.ExecutionID) ([]idem.ExecutionID, error) {
				if n++; n == 3 {
					return nil, away
				}
				return answer(ctx, asked)
			}
		}(),
		"an answer about others": func(context.Context, []idem.ExecutionID) ([]idem.ExecutionID, error) {
			return []idem.ExecutionID{execution(255)}, nil
		},
	} {
		s.known = known
		if deleted, err := s.Pass(t.Context()); err == nil || deleted != 0 || len(store.kept) != 250 {
			t.Errorf("%s: deleted %d, %v; %d are left", name, deleted, err, len(store.kept))
		}
	}
	s.known = func(context.Context, []idem.ExecutionID) ([]idem.ExecutionID, error) { return nil, nil }
	pass(t, s, 0)
	s.known = answer
	store.fail = away
	if deleted, err := s.Pass(t.Context()); !errors.Is(err, away) || deleted != 0 {
		t.Errorf("the list fails: deleted %d, %v", deleted, err)
	}
	store.fail = nil
	pass(t, s, 0) // the answer in between began the hour anew
}

func TestQuestionsAreAskedInBatches(t *testing.T) {
	_, s, _, _ := swept(250)
	var sizes []int
	s.known = func(_ context.Context, asked []idem.ExecutionID) ([]idem.ExecutionID, error) {
		sizes = append(sizes, len(asked))
		return nil, nil
	}
	pass(t, s, 0)
	if !slices.Equal(sizes, []int{100, 100, 50}) {
		t.Errorf("asked about %v", sizes)
	}
}

func TestASweeperEndsWithItsContext(t *testing.T) {
	_, s, _, _ := swept(1)
	ctx, cancel := context.WithCancel(t.Context())
	passes := 0
	s.Run(ctx, func(deleted int, err error) {
		passes++
		if deleted != 0 || err != nil {
			t.Errorf("deleted %d, %v", deleted, err)
		}
		cancel()
	})
	if passes != 1 {
		t.Errorf("%d passes", passes)
	}
}
