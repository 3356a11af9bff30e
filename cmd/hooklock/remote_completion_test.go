package main

import (
	"strings"
	"testing"

	"hooklock/cmd/hooklock/cli"
)

func TestStatusNamesAreCompleted(t *testing.T) {
	code, out, _ := command(t, nil, "__complete", "executions", "list", "--status", "")
	if code != cli.ExitFine || !strings.HasPrefix(out, "PENDING\nRUNNING\nCANCEL_REQUESTED\nSUCCESS\nFAILED\nABORTED\n") {
		t.Errorf("%d %s", code, out)
	}
	if _, out, _ = command(t, nil, "__complete", "locks", "list", "-o", ""); !strings.HasPrefix(out,
		"table\nwide\njson\nyaml\n") {
		t.Errorf("got %s", out)
	}
}

func TestWhatTheServerHasIsCompleted(t *testing.T) {
	api := serveAPI(t, map[string]string{
		"GET /v1/locks?limit=50&prefix=s":           `200 {"locks":[` + lockJSON + "," + staleJSON + `],"nextCursor":""}`,
		"GET /v1/locks/stripe%2Facme":               "200 " + lockJSON,
		"GET /v1/executions?limit=200":              `200 {"executions":[` + endedJSON + `],"nextCursor":""}`,
		"GET /v1/executions?limit=50&text=evt":      `200 {"executions":[` + endedJSON + `],"nextCursor":""}`,
		"GET /v1/executions?id=exec&limit=200":      `200 {"executions":[` + endedJSON + `],"nextCursor":""}`,
		"GET /v1/executions?id=exec_none&limit=200": `200 {"executions":[],"nextCursor":""}`,
		"GET /v1/locks?limit=50&prefix=no":          `503 {"code":"store_unavailable"}`,
	})
	for args, want := range map[string]string{
		"locks get s":                            "stripe/acme\trunning\n:4\n",
		"locks release s":                        "stripe/acme\trunning\n:4\n",
		"locks release stripe/acme --execution ": id + "\n:4\n",
		"executions cancel exec":                 id + "\tFAILED stripe/acme evt_1\n:4\n",
		"executions get exec_none":               ":4\n",
		"show evt":                               "evt_1\tFAILED stripe/acme\n:4\n",
		"show exec":                              id + "\tFAILED stripe/acme evt_1\n:4\n",
		"executions get " + id + " ":             ":4\n",
		"locks get no":                           ":4\n",
	} {
		code, out, _ := command(t, []string{"HOOKLOCK_ADMIN=" + api.url},
			append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if code != cli.ExitFine || out != want {
			t.Errorf("%s: %d %q, want %q", args, code, out, want)
		}
	}
}

// The server finds it by its index: a command that reads the whole list waits for minutes where
// there are a million.
func TestAnIDThatIsCutShortIsSearchedAndNotReadFromTheWholeList(t *testing.T) {
	api := serveAPI(t, map[string]string{
		"GET /v1/executions?id=exec_7hq3p2&limit=200": `200 {"executions":[` + endedJSON + `],"nextCursor":""}`,
		"POST /v1/executions/" + id + "/cancel":       "202 " + endedJSON,
		"POST /v1/executions/" + id + "/run":          "200 " + endedJSON,
		"POST /v1/executions/" + id + "/skip":         "200 " + endedJSON,
		"POST /v1/executions/" + id + "/rerun":        "200 " + endedJSON,
		"DELETE /v1/executions/" + id + "?reason=r":   "200 " + endedJSON,
		"*": `503 {"code":"store_unavailable"}`,
	})
	for _, what := range []string{"cancel", "forget", "run", "skip", "rerun"} {
		if code, _, problems := command(t, nil, "executions", what, "exec_7hq3p2", "--reason", "r", "--admin",
			api.url); code != cli.ExitFine {
			t.Errorf("%s: %d %s", what, code, problems)
		}
	}
}

// As logs and the attempts of an event name it; a list has the event's last one.
func TestTheIDOfAnEarlierAttemptMayBeCutShortToo(t *testing.T) {
	earlier := "exec_" + strings.Repeat("a", 32)
	api := serveAPI(t, map[string]string{
		"GET /v1/executions?id=exec_aaaaaa&limit=200": `200 {"executions":[` + endedJSON + `],"nextCursor":""}`,
		"GET /v1/executions/exec_aaaaaa":              "200 " + strings.Replace(endedJSON, id, earlier, 1),
		"GET /v1/executions/" + earlier:               "200 " + strings.Replace(endedJSON, id, earlier, 1),
		"*":                                           `404 {"code":"execution_not_found"}`,
		"GET /v1/executions?id=exec_bbbbbb&limit=200": `200 {"executions":[],"nextCursor":""}`,
	})
	if code, out, problems := command(t, nil, "executions", "get", "exec_aaaaaa", "--admin",
		api.url); code != cli.ExitFine || !strings.Contains(out, earlier) {
		t.Errorf("%d %s%s", code, out, problems)
	}
	if code, _, problems := command(t, nil, "executions", "get", "exec_bbbbbb", "--admin",
		api.url); code != cli.ExitNotFound || !strings.Contains(problems, "begins with exec_bbbbbb") {
		t.Errorf("%d %s", code, problems)
	}
}

// Its last ID is not the one in hand, and the earlier attempt of another event may be the one that
// was meant.
func TestABeginningThatAnEarlierAttemptSharesIsNoID(t *testing.T) {
	other := strings.Replace(endedJSON, id, "exec_"+strings.Repeat("o", 32), 1) // found by an attempt before it
	api := serveAPI(t, map[string]string{
		"GET /v1/executions?id=exec_7hq3p2&limit=200": `200 {"executions":[` + endedJSON + "," + other + `],"nextCursor":""}`,
		"GET /v1/executions/exec_7hq3p2":              `400 {"code":"bad_request","detail":"several executions have an ID that begins so"}`,
		"*":                                           "200 " + endedJSON,
	})
	for _, what := range []string{"cancel", "forget", "run", "skip", "rerun"} {
		if code, out, problems := command(t, nil, "executions", what, "exec_7hq3p2", "--reason", "r", "--admin",
			api.url); code == cli.ExitFine || !strings.Contains(problems, "several") {
			t.Errorf("%s: %d %s%s", what, code, out, problems)
		}
	}
}
