package main

import (
	"strings"
	"testing"
)

func TestALockOfAParkedEventIsNotSaidToRun(t *testing.T) {
	lock := func(parked string) string {
		return strings.Replace(lockJSON, `"new":1`,
			`"parked":{"since":"2026-11-21T10:00:00.000Z","on":"failed","tries":1,"failures":1`+parked+`}`, 1)
	}
	api := serveAPI(t, map[string]string{"*": `200 {"locks":[` + lock("") + "," +
		lock(`,"blocked":"attempts_exhausted"`) + `],"nextCursor":""}`})
	_, out, _ := command(t, nil, "locks", "list", "--admin", api.url)
	if !strings.Contains(out, "\nstripe/acme  parked ") || !strings.Contains(out, "\nstripe/acme  blocked ") {
		t.Errorf("%s", out)
	}
}

func TestAnEventThatNeverRunsAgainIsSaidToBeSo(t *testing.T) {
	api := serveAPI(t, map[string]string{"*": `200 {"executionId":"` + id +
		`","workflow":"w","status":"ABORTED","outcome":"unknown","startedAt":"2026-11-21T10:00:00.000Z","finishedAt":"2026-11-21T10:00:01.500Z",` +
		`"abortedAt":"2026-11-21T10:00:01.500Z","abortedBy":"ops","abortReason":"refunded","final":true,"steps":[],"duplicates":0}`})
	if _, out, _ := command(t, nil, "executions", "get", id, "--admin", api.url); !strings.Contains(out,
		"\nfinal       its event never runs again, unless this is forgotten\n") {
		t.Errorf("%s", out)
	}
}

// What has no execution may have been forwarded, and what was not executed at once may have run
// since: neither is said to have been refused.
func TestWhatBecameOfArrivalsIsNotTakenForARefusal(t *testing.T) {
	const arrivals = `"arrivals":{"counts":{"bypassed":1,"parked":2},"first":{"at":"2026-01-31T12:00:00Z","decision":"parked","status":202},"newest":[{"at":"2026-01-31T12:00:01Z","decision":"bypassed","would":"locked","status":200}]}}`
	api := serveAPI(t, map[string]string{
		"GET /v1/executions?limit=200": `200 {"executions":[{"executionId":"","workflow":"w","eventId":"evt_1","status":"REFUSED","steps":[],"duplicates":0,` + arrivals + `],"nextCursor":""}`,
		"GET /v1/executions/" + id:     "200 " + strings.TrimSuffix(endedJSON, "}") + "," + arrivals,
	})
	_, out, _ := command(t, nil, "executions", "list", "--admin", api.url)
	if want := "evt_1  bypassed (would be locked): 200 at 2026-01-31T12:00:01.000Z\n"; !strings.Contains(out, want) {
		t.Errorf("no %q in\n%s", want, out)
	}
	_, out, _ = command(t, nil, "executions", "get", id, "--admin", api.url)
	if want := "\narrived with another decision than executed: 1 bypassed, 2 parked\n"; !strings.Contains(out, want) {
		t.Errorf("no %q in\n%s", want, out)
	}
}

// A server of another release may say less than this one.
func TestWhatWasRefusedIsListedWithoutItsArrivals(t *testing.T) {
	api := serveAPI(t,
		map[string]string{"*": `200 {"executions":[{"executionId":"","workflow":"w","eventId":"evt_1","status":"REFUSED","steps":[],"duplicates":0}],"nextCursor":""}`})
	if code, out, stderr := command(t, nil, "executions", "list", "--admin", api.url); code != 0 ||
		!strings.Contains(out, "REFUSED") {
		t.Errorf("%d: %s%s", code, out, stderr)
	}
}

func TestABlockedEventSaysInEachListWhatItWaitsFor(t *testing.T) {
	api := serveAPI(t, map[string]string{"*": `200 {"executions":[{"executionId":"` + id +
		`","workflow":"w","eventId":"evt_1","status":"RUNNING","steps":[],"duplicates":0,` +
		`"parked":{"since":"2026-01-31T12:00:00Z","on":"failed","tries":1,"failures":1,"blocked":"attempts_exhausted"}}],"nextCursor":""}`})
	for _, args := range [][]string{{"list"}, {"find", "evt_1"}} {
		if _, out, _ := command(t, nil, append(append([]string{"executions"}, args...), "--admin",
			api.url)...); !strings.HasSuffix(out, "evt_1  blocked: attempts_exhausted\n") {
			t.Errorf("%v: %s", args, out)
		}
	}
}

// Somebody who asks why nothing goes on begins with the event, and not with its workflow's lock.
func TestAnExecutionIsShownWithTheLockThatItHasOrWaitsFor(t *testing.T) {
	at := func(status, lock string) string {
		t.Helper()
		api := serveAPI(t, map[string]string{
			"GET /v1/executions/" + id: `200 {"executionId":"` + id + `","workflow":"w","status":"` + status +
				`","startedAt":"2026-11-21T10:00:00.000Z","steps":[],"duplicates":0}`,
			"GET /v1/locks/w": lock,
		})
		_, out, _ := command(t, nil, "executions", "get", id, "--admin", api.url)
		return out
	}
	const of = `200 {"workflow":"w","executionId":"`
	for want, out := range map[string]string{
		"\nlock        held, until 2026-11-21T10:00:30.000Z (in 29s); waiting behind it: 2\n": at("RUNNING",
			of+id+`","held":true,"expiresAt":"2026-11-21T10:00:30.000Z","expiresIn":29,"waiting":2}`),
		"\nlock        exec_other has it; waiting: 3\n": at("PENDING",
			of+`exec_other","waiting":3}`),
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out := at("SUCCESS", of+`exec_other","waiting":0}`); strings.Contains(out, "\nlock ") {
		t.Errorf("the lock is another's:\n%s", out)
	}
}

// Whoever greps in a list looks for the end of a reason as well as for its beginning.
func TestWhatGoesToAFileHasEachReasonWhole(t *testing.T) {
	reason := strings.Repeat("dial tcp ", 10) + "connection refused"
	execution := `{"executionId":"` + id +
		`","workflow":"w","status":"FAILED","steps":[],"duplicates":0,"startedAt":"2026-11-21T10:00:00.000Z","error":{"code":"upstream_unreachable","detail":"` + reason + `"}}`
	api := serveAPI(t, map[string]string{
		"GET /v1/audit?limit=200": `200 {"audits":[{"at":"2026-11-21T10:00:00.000Z","who":"ops","what":"pause","result":"done","why":"` + reason + `"}],"nextCursor":""}`,
		"POST /v1/jobs": "201 " +
			jobJSON("done", `"refused":1,"succeeded":0,"failed":0,"failures":[{"executionId":"`+id+
				`","workflow":"w","why":"`+reason+`"}],"result":"r"`),
		"*": `200 {"executions":[` + execution + `],"nextCursor":""}`,
	})
	for _, args := range [][]string{
		{"executions", "list"}, {"executions", "list", "--dead-letters"}, {"audit", "list"},
		{"executions", "rerun", "--dead-letters", "--reason", "r"},
	} {
		if _, out, problems := command(t, nil, append(args, "--admin", api.url)...); !strings.Contains(out,
			reason+"\n") {
			t.Errorf("%v: %s%s", args, out, problems)
		}
	}
}
