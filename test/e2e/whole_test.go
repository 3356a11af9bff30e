package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// auditsAt returns what a process knows of what people have done, the newest first.
func auditsAt(t *testing.T, h *testkit.Hooklock, what string) (all []map[string]any) {
	t.Helper()
	_, answer := asked(t, h, http.MethodGet, "/v1/audit?what="+what, "", "")
	list, _ := answer["audits"].([]any)
	for _, one := range list {
		a, _ := one.(map[string]any)
		all = append(all, a)
	}
	return all
}

// TestWhatAPersonHasDoneIsKnownAfterTheDeathOfItsProcess: the process is killed as soon as it has
// answered.
func TestWhatAPersonHasDoneIsKnownAfterTheDeathOfItsProcess(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "requests")
	config := strings.Replace(parkConfig(shared.up.URL, ownPrefix()), "{single_member: true}",
		fmt.Sprintf("{single_member: true, inline: 1KiB, dir: %q}", folder), 1)
	heir := own(t, config)
	path := at(t, "park-hold")
	event := func(name string) (id string) { // that waits for a person, in a queue of its own
		shared.on(t, path+name, answers(testkit.Reply(500, "broken")))
		id = acceptedAs(t, testkit.Post(t, heir.Addr, path+name, strings.Repeat(name, 1000), key(name)), 202)
		blockedOn(t, heir, id)
		return id
	}
	letter := func(name string) (id string) {
		id = event(name)
		if status, got := asked(t, heir, http.MethodPost, "/v1/executions/"+id+"/skip", localToken(t, heir),
			because); status != 200 && status != 202 {
			t.Fatalf("%d %v", status, got)
		}
		letters(t, heir, id)
		return id
	}
	cancelled, skipped, tried, forced, forgotten, again, many := event("a"), event("b"), event("c"), event("d"),
		letter("e"), letter("f"), letter("g")
	workflow := "ph" + strings.TrimPrefix(path, "/park-hold")
	for _, c := range []struct{ what, method, path, body, id string }{
		{"execution.cancel", "POST", "/v1/executions/" + cancelled + "/cancel", because, cancelled},
		{"execution.skip", "POST", "/v1/executions/" + skipped + "/skip", because, skipped},
		{"execution.run", "POST", "/v1/executions/" + tried + "/run", because, tried},
		{"lock.force_release", "DELETE", "/v1/locks/" + strings.ReplaceAll(workflow+"d", "/", "%2F") +
			"?reason=r&execution=" + forced, "", forced},
		{"execution.forget", "DELETE", "/v1/executions/" + forgotten + "?reason=r", "", forgotten},
		{"execution.rerun", "POST", "/v1/executions/" + again + "/rerun", because, again},
		{"executions.rerun", "POST", "/v1/executions/rerun", `{"reason":"r","filter":{"workflow":"` + workflow + `g"}}`,
			""},
		{"pause", "POST", "/v1/pauses", `{"scope":"route:park-now","reason":"r"}`, ""},
		{"resume", "DELETE", "/v1/pauses/route:park-now?reason=r", "", ""},
		{"seen", "POST", "/v1/seen", `{"concern":"blocked:park-hold","reason":"r"}`, ""},
		{"unseen", "DELETE", "/v1/seen/blocked:park-hold?reason=r", "", ""},
		{"config.reload", "POST", "/v1/config/reload", "", ""},
	} {
		dying := testkit.Serve(t, hooklockProgram, config)
		status, answer := asked(t, dying, c.method, c.path, localToken(t, dying), c.body)
		dying.Kill()
		all := auditsAt(t, heir, c.what)
		i := 0
		for i < len(all) && c.id != "" && all[i]["executionId"] != c.id {
			i++
		}
		if status > 299 || i == len(all) || all[i]["what"] != c.what || all[i]["result"] == "begun" {
			t.Errorf("%s: answered %d %v, and the audit has %v", c.what, status, answer, all)
		}
	}
	if one := auditsAt(t, heir, "execution.rerun"); len(one) != 2 || one[0]["executionId"] != many {
		t.Errorf("of the one of many: %v", one)
	}
	got := execution(t, heir, forgotten)
	_, list := asked(t, heir, http.MethodGet, "/v1/executions?event=e&workflow="+workflow+"e", "", "")
	found, _ := list["executions"].([]any)
	if len(found) != 1 || got["code"] != "execution_not_found" {
		t.Fatalf("after its forget: %v, %v", got, list)
	}
	event1, _ := found[0].(map[string]any)
	if released, _ := event1["released"].(map[string]any); event1["status"] != "RELEASED" ||
		released["executionId"] != forgotten || released["outcome"] != "executed" {
		t.Errorf("after its forget: %v", event1)
	}
	if _, list := asked(t, heir, http.MethodGet, "/v1/executions?status=RELEASED&since=1h", "",
		""); !strings.Contains(fmt.Sprint(list), forgotten) {
		t.Errorf("it is not in the list of all that were released: %v", list)
	}
	if _, err := os.Stat(filepath.Join(folder, forgotten)); !os.IsNotExist(err) {
		t.Errorf("its stored request is still there: %v", err)
	}
	for what, id := range map[string]string{"cancelled": cancelled, "taken by force": forced} {
		testkit.Until(t, "what was "+what+" to end", func() bool {
			return execution(t, heir, id)["status"] == "ABORTED"
		})
		if got := execution(t, heir, id); got["outcome"] != "executed" || got["tries"] != 1.0 {
			t.Errorf("%s after its only try was answered: %v", what, got)
		}
	}
}
