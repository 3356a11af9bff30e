package admin

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// audits are what the API says was asked for.
func (f *fleet) audits(token, query string) []map[string]any {
	f.t.Helper()
	var all []map[string]any
	for _, a := range f.want(200, "", "GET", "/v1/audit"+query, token, "").json["audits"].([]any) {
		all = append(all, a.(map[string]any))
	}
	return all
}

func TestEachChangeIsAuditedWithItsTokenAndReason(t *testing.T) {
	f := newFleet(t, nil)
	stripe, other := f.run("stripe/acme", "1"), f.run("github/acme", "2")
	f.want(202, "", "POST", "/v1/executions/"+stripe.id+"/cancel", stripeToken, `{"reason":"wrong amount"}`)
	f.want(412, "lock_lost", "DELETE", "/v1/locks/github%2Facme?execution="+anID+"&reason=stuck", opsToken, "")
	f.want(200, "", "DELETE", "/v1/locks/github%2Facme?execution="+other.id+"&reason=stuck", opsToken, "")
	f.want(403, "forbidden", "POST", "/v1/executions/"+stripe.id+"/cancel", readToken1, `{"reason":"r"}`)
	f.want(401, "unauthorized", "POST", "/v1/executions/"+stripe.id+"/cancel", "", `{"reason":"r"}`) // without a token
	// that is known
	f.want(401, "unauthorized", "POST", "/v1/executions/"+stripe.id+"/cancel", "guess", `{"reason":"r"}`)
	// all day long
	f.want(201, "", "POST", "/v1/locks/cron/acquire", opsToken, `{"holder":"me","ttl":"1m"}`)
	// of an upstream
	f.ask("POST", "/v1/executions/"+other.id+"/guard", callbackKey, bodyOf(other, ""))
	all := f.audits(readToken1, "")
	var got []string
	for _, a := range all {
		got = append(got, fmt.Sprint(a["who"], " ", a["what"], " ", a["result"], " ", a["code"], " ", a["why"]))
	}
	want := []string{
		"reader execution.cancel refused forbidden <nil>", "ops lock.force_release done <nil> stuck",
		"ops lock.force_release refused lock_lost stuck",
		"stripe execution.cancel done <nil> wrong amount",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	last := all[len(all)-1]
	if last["executionId"] != stripe.id || last["workflow"] != "stripe/acme" || last["before"] != "RUNNING" ||
		last["after"] != "CANCEL_REQUESTED" || last["remote"] == nil || last["at"] == nil {
		t.Errorf("%v", last)
	}
	for query, n := range map[string]int{"?who=ops": 2, "?what=execution.": 2, "?prefix=github%2F": 2,
		"?execution=" + stripe.id: 1, "?since=1h&until=10m": 0, "?limit=1": 1} {
		if all := f.audits(opsToken, query); len(all) != n {
			t.Errorf("%s: %v", query, all)
		}
	}
	if all := f.audits(stripeToken, ""); len(all) != 1 || all[0]["workflow"] != "stripe/acme" {
		t.Errorf("a token for stripe/* sees %v", all)
	}
	f.want(400, "bad_request", "GET", "/v1/audit?since=yesterday", opsToken, "")
	f.want(400, "bad_request", "GET", "/v1/audit?since=10m&until=1h", opsToken, "")
}

func TestACancelIsForTheStatusThatWasSeen(t *testing.T) {
	f := newFleet(t, nil)
	d := f.run("w", "1")
	body := func(status string) string { return `{"reason":"sent by mistake","ifStatus":"` + status + `"}` }
	a := f.want(412, "status_changed", "POST", "/v1/executions/"+d.id+"/cancel", opsToken, body("PENDING"))
	if a.text("executionStatus") != "RUNNING" || !strings.Contains(a.text("detail"), "RUNNING") ||
		f.execution(d.id).text("status") != "RUNNING" {
		t.Errorf("%s", a.body)
	}
	f.want(400, "bad_request", "POST", "/v1/executions/"+d.id+"/cancel", opsToken, body("SUCCESS"))
	f.want(202, "", "POST", "/v1/executions/"+d.id+"/cancel", opsToken, body("RUNNING"))
	f.want(412, "status_changed", "POST", "/v1/executions/"+d.id+"/cancel", opsToken, body("RUNNING"))
	f.settle(d, success())
	a = f.want(412, "status_changed", "POST", "/v1/executions/"+d.id+"/cancel", opsToken, body("RUNNING"))
	if a.text("executionStatus") != "SUCCESS" {
		t.Errorf("%s", a.body)
	}
	held := f.hold("w", "2", time.Minute)
	lock := f.want(200, "", "GET", "/v1/locks/w", opsToken, "")
	if lock.text("endsBy") != "hold" || lock.text("eventId") != "2" || lock.text("route") != "route" {
		t.Errorf("%s", lock.body)
	}
	f.post(200, "", held, "complete", bodyOf(held, `,"status":"SUCCESS"`))
}
