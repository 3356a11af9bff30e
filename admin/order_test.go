package admin

import (
	"strings"
	"testing"

	"hooklock/idem"
)

func TestAnExecutionSaysWhereItStoodAndWhatSupersededIt(t *testing.T) {
	f := newFleet(t, nil)
	at := func(event, position string) *delivery {
		l := lockOf("w", event)
		l.Order = &idem.Order{ScopeKey: strings.Repeat("0", 32), Scope: "sub_1", At: position, Unit: idem.UnitSeconds}
		return f.start(l, 0)
	}
	newest := at("new", "1700000037")
	f.settle(newest, success())
	older := at("old", "1700000000")
	f.settle(older, idem.End{Status: idem.Aborted, Outcome: idem.NotExecuted, Abort: &idem.Cancel{
		By: "policy", Reason: "superseded", At: older.Lock().StartedAt, Successor: older.Lock().Stale.Than,
	}})
	a := f.execution(older.id)
	order := member(a, "order")
	if a.text("status") != "ABORTED" || a.text("supersededBy") != newest.id || order["scope"] != "sub_1" ||
		order["position"] != "1700000000" || order["stale"] != "37s" || order["newest"] != newest.id {
		t.Errorf("%s", a.body)
	}
	a = f.execution(newest.id)
	if order := member(a, "order"); a.text("supersededBy") != "" || order["position"] != "1700000037" ||
		order["stale"] != nil {
		t.Errorf("%s", a.body)
	}
	running := at("running", "1700000038")
	a = f.want(202, "", "POST", "/v1/executions/"+running.id+"/cancel", opsToken, `{"reason":"r"}`)
	if order := member(a, "order"); order["position"] != "1700000038" {
		t.Errorf("%s", a.body)
	}
}
