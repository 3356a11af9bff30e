package admin

import (
	"strings"
	"testing"

	"hooklock/idem"
)

// limited is a lock that counts against a limit of one.
func limited(workflow, event string) idem.Lock {
	l := lockOf(workflow, event)
	l.Slots = []idem.Slot{{LimitName: "erp", Rule: "erp", Index: -1}}
	return l
}

func TestTheAPIShowsTheSlotsAndTheSlotWaiters(t *testing.T) {
	f := newFleet(t, nil)
	d := f.start(limited("stripe/a", "1"), 0)
	waiting := limited("github/b", "2")
	place, seen, err := f.enqueue(waiting, 0)
	if err != nil || place == nil {
		t.Fatalf("%+v %v", seen, err)
	}
	if got := f.all(opsToken, "slots", ""); len(got) != 1 || got[0] != d.id {
		t.Errorf("slots: %v", got)
	}
	one := f.want(200, "", "GET", "/v1/slots?prefix=er", readToken1, "").json["slots"].([]any)[0].(map[string]any)
	if one["limit"] != "erp" || one["slot"] != 0.0 || one["of"] != 1.0 || one["workflow"] != "stripe/a" ||
		one["route"] != "route" {
		t.Errorf("a slot: %v", one)
	}
	if own, _ := f.execution(d.id).json["slots"].([]any); len(own) != 1 {
		t.Errorf("its own: %v", own)
	}
	turn := f.want(200, "", "GET", "/v1/slots?waiting=true", readToken1, "").json["slots"].([]any)[0].(map[string]any)
	if turn["limit"] != "erp" || turn["slot"] != -1.0 || turn["of"] != 1.0 || turn["workflow"] != "github/b" {
		t.Errorf("who waits: %v", turn)
	}
	if got := f.all(opsToken, "slots", "waiting=true"); len(got) != 1 || got[0] != string(waiting.Execution) {
		t.Errorf("who waits: %v", got)
	}
	if got := f.all(stripeToken, "slots", "waiting=true"); len(got) != 0 {
		t.Errorf("a token for stripe/* sees who waits of others: %v", got)
	}
	f.want(400, "bad_request", "GET", "/v1/slots?waiting=perhaps", opsToken, "")
	f.want(400, "bad_request", "GET", "/v1/slots?cursor=nonsense", opsToken, "")
	if err := place.Leave(within(t)); err != nil {
		t.Fatal(err)
	}
	f.settle(d, success())
	if got := f.all(opsToken, "slots", ""); len(got) != 0 {
		t.Errorf("slots that nobody has: %v", got)
	}
}

func TestALockOfSeveralExecutionsNamesThoseWithASlot(t *testing.T) {
	f := newFleet(t, nil)
	l := lockOf("stripe/several", "1")
	l.Scope.PerEvent, l.Slots = true, []idem.Slot{{LimitName: idem.OwnLimit(l.Scope.Workflow), Index: -1}}
	d := f.start(l, 0)
	got := f.want(200, "", "GET", "/v1/locks/stripe%2Fseveral", opsToken, "")
	if all, _ := got.json["executions"].([]any); got.json["of"] != 1.0 || len(all) != 1 || all[0] != d.id ||
		got.json["executionId"] != d.id {
		t.Errorf("%s", got.body)
	}
	if all := f.all(opsToken, "locks", "prefix=stripe/several"); len(all) != 1 || all[0] != d.id {
		t.Errorf("the list has %v", all)
	}
	if own := f.want(200, "", "GET", "/v1/locks/stripe%2Fseveral?execution="+d.id, opsToken,
		""); own.json["executionId"] != d.id || own.json["of"] != 1.0 || own.json["executions"] != nil {
		t.Errorf("%s", own.body)
	}
	f.want(404, "lock_not_found", "GET", "/v1/locks/stripe%2Fother?execution="+d.id, opsToken, "")
	f.want(404, "lock_not_found", "GET", "/v1/locks/stripe%2Fseveral?execution="+
		strings.Replace(d.id, "exec_", "exec_a", 1)[:len(d.id)], opsToken, "")
	f.want(200, "", "DELETE", "/v1/locks/stripe%2Fseveral?execution="+d.id+"&reason=r", opsToken, "")
	f.want(404, "lock_not_found", "GET", "/v1/locks/stripe%2Fseveral", opsToken, "")
}
