package serve

import (
	"testing"

	"hooklock/admin/client"
	"hooklock/etcdlock/link"
)

func TestAnEtcdThatKnowsALeaseNoMoreHasAnswered(t *testing.T) {
	c := newContacts(nil)
	for code, fails := range map[string]bool{"": false, "NOT_FOUND": false, "UNAVAILABLE": true,
		"RESOURCE_EXHAUSTED": true, "PERMISSION_DENIED": true} {
		c.recordOperation(link.Operation{Code: code})
		if seen := c.embedded.Seen("embedded"); (seen.State == client.ContactFails) != fails {
			t.Errorf("after %q: %+v", code, seen)
		}
	}
	c.recordOperation(link.Operation{Code: "DEADLINE_EXCEEDED", Why: "no connection to etcd"})
	if seen := c.embedded.Seen("embedded"); seen.Failure != "no connection to etcd" {
		t.Errorf("%+v", seen)
	}
}
