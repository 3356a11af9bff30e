package etcdlock

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// Each key of a transaction has the name of the workflow in it, three times as long as it was
// written.
func TestClaimsOfWorkflowsWithLongNamesAreTakenHoweverManyComeTogether(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	var all []func() error
	for i := range 100 {
		l := lockFor(fmt.Sprint(i, strings.Repeat("é", 1000)), "event")
		all = append(all, func() error {
			_, seen, err := s.Claim(within(t, patience), l, 0)
			if seen != nil {
				t.Errorf("saw %+v", seen)
			}
			return err
		})
	}
	together(t, s, all...)
}

func TestThirtyTwoClaimantsOfFiveWorkflowsAreAnswered(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	var wg sync.WaitGroup
	for worker := range 32 {
		wg.Go(func() {
			for n := range 10 {
				workflow := fmt.Sprintf("w%d", (worker+n)%5)
				held, seen, err := s.Claim(within(t, patience), lockFor(workflow, fmt.Sprintf("%d/%d", worker, n)), 0)
				switch {
				case errors.Is(err, idem.ErrNotClaimed):
					// etcd has not answered in time
				case err != nil:
					t.Error(err)
				case held == nil && seen.Lock == nil:
					// the lock was free again by the time it was read
				case held != nil:
					if err := held.Release(within(t, patience)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	// an answer is handed out before its lock is free
	eventually(t, "after the last answer every place is free", s.sender.Idle)
}
