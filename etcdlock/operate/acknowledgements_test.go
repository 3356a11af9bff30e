package operate_test

import (
	"fmt"
	"testing"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// Marks are in etcd, so every replica knows them, also after a restart; and they are bounded.
func TestOfTooManyMarksTheOldestGo(t *testing.T) {
	etcd := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{etcd.Endpoint}})
	mark := func(route string) idem.Acknowledgement {
		return idem.Acknowledgement{Concern: idem.Concern{Kind: idem.ConcernUnknown, Route: route}, By: "ops",
			Reason: "why",
			At:     time.Unix(7, 0).UTC(), Until: time.Unix(5, 0).UTC()}
	}
	const most, more = 500, 2
	for i := range most + more {
		if _, before, err := s.Acknowledge(within(t, patience), mark(fmt.Sprint(i)), nil); before != nil || err != nil {
			t.Fatalf("%d: %+v %v", i, before, err)
		}
	}
	other := openStore(t, etcdlock.Options{Endpoints: []string{etcd.Endpoint}})
	all, err := other.Acknowledgements(within(t, patience))
	if err != nil || len(all) != most ||
		all[0] != mark(fmt.Sprint(most+more-1)) ||
		all[len(all)-1] != mark(fmt.Sprint(more)) {
		t.Fatalf("%d marks: %v", len(all), err)
	}
	leases, err := etcd.Client.Leases(t.Context())
	if err != nil || len(leases.Leases) > 5 {
		t.Errorf("%d leases for two sessions and all marks: %v", len(leases.Leases), err)
	}
	if _, err := other.DropAcknowledgement(within(t, patience), all[0].Concern, nil); err != nil {
		t.Error(err)
	}
	if left, err := s.Acknowledgements(within(t, patience)); err != nil || len(left) != most-1 {
		t.Errorf("%d marks are left of those that share a lease: %v", len(left), err)
	}
}
