package etcdlock

import (
	"fmt"
	"strings"
	"testing"

	"hooklock/etcdlock/etcdtest"
)

// Each key of a transaction has the name of the workflow in it, three times as long as it was written.
func TestClaimsOfWorkflowsWithLongNamesAreTakenHoweverManyComeTogether(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	var all []func() error
	for i := range maxBatch {
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
