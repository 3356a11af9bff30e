package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/testkit"
)

// blockedOn waits until a parked execution waits for a person.
func blockedOn(t *testing.T, h *testkit.Hooklock, id string) {
	t.Helper()
	testkit.Until(t, id+" to wait for a person", func() bool {
		parked, _ := execution(t, h, id)["parked"].(map[string]any)
		return parked["blocked"] != nil
	})
}

// word lets a person say something about an execution, or about many.
func word(t *testing.T, h *testkit.Hooklock, status int, path, body string) map[string]any {
	t.Helper()
	got, answer := asked(t, h, http.MethodPost, "/v1/executions/"+path, localToken(t, h), body)
	if got != status {
		t.Fatalf("%s %s: %d %v", path, body, got, answer)
	}
	return answer
}

const because = `{"reason":"a person says so"}`

// letters waits until an execution is a dead letter.
func letters(t *testing.T, h *testkit.Hooklock, ids ...string) {
	t.Helper()
	for _, id := range ids {
		testkit.Until(t, id+" to be a dead letter", func() bool { return execution(t, h, id)["requestKept"] == true })
	}
}

// bodies are what reached the upstream at a path, in its order.
func bodies(path string) (all []string) {
	for _, r := range shared.up.Received(path) {
		all = append(all, r.Body)
	}
	return all
}

func TestABlockedEventRunsWhenAnOperatorSaysSoAndThenTheNextOne(t *testing.T) {
	t.Parallel()
	h := parking(t)
	path := at(t, "park-hold")
	shared.on(t, path, answers(testkit.Reply(500, "broken"), testkit.OK("repaired"), testkit.OK("next")))
	id := acceptedAs(t, testkit.Post(t, h.Addr, path, "1", key("1")), 202)
	acceptedAs(t, testkit.Post(t, h.Addr, path, "2", key("2")), 202)
	blockedOn(t, h, id)
	word(t, h, 200, id+"/run", because)
	settles(t, h.Addr, path, "1", "1", 200, "repaired")
	settles(t, h.Addr, path, "2", "2", 200, "next")
	if got := bodies(path); !slices.Equal(got, []string{"1", "1", "2"}) {
		t.Errorf("ran %v", got)
	}
	if got := execution(t, h, id); got["status"] != "SUCCESS" || got["tries"] != 2.0 || got["parked"] != nil {
		t.Errorf("%v", got)
	}
}

func TestASkippedEventIsADeadLetterAndTheNextOneRuns(t *testing.T) {
	t.Parallel()
	h := parking(t)
	path := at(t, "park-hold")
	shared.on(t, path, answers(testkit.Reply(500, "broken"), testkit.OK("next"), testkit.OK("again")))
	id := acceptedAs(t, testkit.Post(t, h.Addr, path, "1", key("1")), 202)
	acceptedAs(t, testkit.Post(t, h.Addr, path, "2", key("2")), 202)
	blockedOn(t, h, id)
	if status, got := asked(t, h, http.MethodPost, "/v1/executions/"+id+"/skip", localToken(t, h),
		because); status != 200 && status != 202 {
		t.Fatalf("%d %v", status, got)
	}
	settles(t, h.Addr, path, "2", "2", 200, "next")
	letters(t, h, id)
	again := word(t, h, 201, id+"/rerun", because)
	if again["executionId"] == id || again["attempt"] != 2.0 {
		t.Errorf("%v", again)
	}
	settles(t, h.Addr, path, "1", "1", 200, "again")
	if got := bodies(path); !slices.Equal(got, []string{"1", "2", "1"}) {
		t.Errorf("ran %v", got)
	}
}

func TestADeadLetterWhoseBytesAreGoneSaysSo(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "requests")
	config := strings.Replace(parkConfig(shared.up.URL, ownPrefix()), "{single_member: true}",
		fmt.Sprintf("{single_member: true, dir: %q}", folder), 1)
	h := own(t, config)
	path := at(t, "park-skip")
	shared.on(t, path, answers(testkit.Reply(422, "never")))
	id := acceptedAs(t, testkit.Post(t, h.Addr, path, strings.Repeat("long ", 200<<10), key("1")), 202)
	testkit.Until(t, "it to be a dead letter", func() bool { return execution(t, h, id)["requestKept"] == true })
	if err := os.Remove(filepath.Join(folder, id)); err != nil {
		t.Fatal(err)
	}
	if status, got := asked(t, h, http.MethodPost, "/v1/executions/"+id+"/rerun", localToken(t, h),
		because); status != 404 || got["code"] != "request_not_kept" {
		t.Errorf("%d %v", status, got)
	}
}

func TestDeadLettersRunAgainInTheOrderOfTheirQueue(t *testing.T) {
	t.Parallel()
	h := parking(t)
	path := at(t, "park-skip")
	replies := []string{}
	for range 3 {
		replies = append(replies, testkit.Reply(422, "never"))
	}
	shared.on(t, path, answers(append(replies, testkit.OK("at last"), testkit.OK("at last"), testkit.OK("at last"))...))
	var ids []string
	for i := range 3 {
		ids = append(ids, acceptedAs(t, testkit.Post(t, h.Addr, path, fmt.Sprint(i), key(fmt.Sprint(i))), 202))
	}
	letters(t, h, ids...)
	workflow := "ps/" + path[strings.LastIndex(path, "/")+1:]
	filter := `"filter":{"workflow":"` + workflow + `","state":"dead_letter"}`
	dry := word(t, h, 200, "rerun", `{"dryRun":true,`+filter+`}`)
	if dry["matched"] != 3.0 || dry["done"] != 0.0 || len(bodies(path)) != 3 {
		t.Errorf("a dry run did %v", dry)
	}
	if one := word(t, h, 200, "rerun", `{"dryRun":true,"filter":{"label":"number=1","workflow":"`+workflow+
		`"}}`); one["matched"] != 1.0 || !strings.Contains(fmt.Sprint(one), ids[1]) {
		t.Errorf("of a label: %v", one)
	}
	if done := word(t, h, 200, "rerun", `{"reason":"repaired","rate":1000,`+filter+`}`); done["done"] != 3.0 ||
		done["nextCursor"] != "" {
		t.Errorf("%v", done)
	}
	settles(t, h.Addr, path, "2", "2", 200, "at last")
	if got := bodies(path); !slices.Equal(got, []string{"0", "1", "2", "0", "1", "2"}) {
		t.Errorf("ran %v", got)
	}
}

func TestAParkedEventCanBeCancelledWhileItWaitsAndWhileItIsBlocked(t *testing.T) {
	t.Parallel()
	h := parking(t)
	path := at(t, "park-hold")
	shared.on(t, path, answers(testkit.Reply(500, "broken"), testkit.OK("third")))
	blocked := acceptedAs(t, testkit.Post(t, h.Addr, path, "1", key("1")), 202)
	waiting := acceptedAs(t, testkit.Post(t, h.Addr, path, "2", key("2")), 202)
	acceptedAs(t, testkit.Post(t, h.Addr, path, "3", key("3")), 202)
	blockedOn(t, h, blocked)
	for _, id := range []string{waiting, blocked} {
		word(t, h, 202, id+"/cancel", because)
		testkit.Until(t, id+" to end", func() bool { return execution(t, h, id)["status"] == "ABORTED" })
		if got := execution(t, h, id); got["requestKept"] != nil || got["parked"] != nil {
			t.Errorf("%v", got)
		}
		if status, _ := asked(t, h, http.MethodGet, "/v1/executions/"+id+"/request", localToken(t, h),
			""); status != 404 {
			t.Errorf("the request of %s: %d", id, status)
		}
	}
	settles(t, h.Addr, path, "3", "3", 200, "third")
	if got := bodies(path); !slices.Equal(got, []string{"1", "3"}) {
		t.Errorf("ran %v", got)
	}
}

func TestABlockedEventCanBeCancelledAfterItsProcessHasLostItsSession(t *testing.T) {
	t.Parallel()
	prefix := ownPrefix()
	h := own(t, parkConfig(shared.up.URL, prefix))
	path := at(t, "park-hold")
	shared.on(t, path, answers(testkit.Reply(500, "broken"), testkit.OK("next")))
	blocked := acceptedAs(t, testkit.Post(t, h.Addr, path, "1", key("1")), 202)
	acceptedAs(t, testkit.Post(t, h.Addr, path, "2", key("2")), 202)
	blockedOn(t, h, blocked)
	client := etcdtest.Dial(t, strings.TrimPrefix(shared.etcd.Endpoint, "http://"))
	if _, err := client.Delete(t.Context(), prefix+"/v1/sessions/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the next session to have it", func() bool {
		return strings.Contains(h.Stderr.String(), `"adopting":1`)
	})
	if status, got := asked(t, h, http.MethodPost, "/v1/executions/"+blocked+"/cancel", localToken(t, h),
		because); status != 200 && status != 202 {
		t.Fatalf("%d %v", status, got)
	}
	testkit.Until(t, blocked+" to end", func() bool { return execution(t, h, blocked)["status"] == "ABORTED" })
	settles(t, h.Addr, path, "2", "2", 200, "next")
}

func TestARequestIsShownAsItCameToATokenThatMaySeeIt(t *testing.T) {
	t.Parallel()
	config := strings.Replace(parkConfig(shared.up.URL, ownPrefix()), `admin: {listen: "127.0.0.1:0"}`,
		`admin: {listen: "127.0.0.1:0", tokens: [{name: ops, token_env: OPS, scopes: [read, write]}, {name: eye, token_env: EYE, scopes: [bodies]}]}`, 1)
	h := own(t, config, "OPS=ops-secret-ops-secret", "EYE=eye-secret-eye-secret")
	path := at(t, "park-hold")
	shared.on(t, path, answers(testkit.Reply(500, "broken")))
	request := testkit.Request(path, "\x00\xff a body\r\n", key("1"), "X-odd:  spaced  ", "x-ODD: again")
	id := acceptedAs(t, testkit.Exchange(t, h.Addr, request), 202)
	get := func(token string) *testkit.Answer {
		return testkit.Exchange(t, h.Admin, "GET /v1/executions/"+id+
			"/request HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+token+"\r\nConnection: close\r\n\r\n")
	}
	if a := get("eye-secret-eye-secret"); a.Status != 200 || string(a.Body) != request {
		t.Errorf("got\n%q\nand sent\n%q", a.Body, request)
	}
	if a := get("ops-secret-ops-secret"); a.Status != 403 || strings.Contains(string(a.Body), "a body") {
		t.Errorf("%v", a)
	}
	testkit.Until(t, "the audit lines", func() bool {
		text := h.Stderr.String()
		return strings.Contains(text, `"what":"execution.request"`) && strings.Contains(text, `"who":"eye"`) &&
			strings.Contains(text, `"result":"refused"`)
	})
	if strings.Contains(h.Stderr.String(), "a body") {
		t.Error("the body is in the log")
	}
}

func TestObserveCountsWhatWouldHaveBeenParked(t *testing.T) {
	t.Parallel()
	config := strings.Replace(parkConfig(shared.up.URL, ownPrefix()), "{name: park, path",
		"{name: park, mode: observe, path", 1)
	h := own(t, config)
	path := at(t, "park")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, h.Addr, path, "1", key("1"))
	work.await(t)
	second := testkit.GoPost(t, h.Addr, path, "2", key("2"))
	work.await(t)
	work.answer <- testkit.OK("one")
	work.answer <- testkit.OK("two")
	testkit.Receive(t, "the first answer", first)
	if a := testkit.Receive(t, "the second answer", second); a.Status != 200 ||
		!strings.Contains(a.Header.Get("Hooklock-Decision"), "parked") {
		t.Errorf("%v", a)
	}
	if text := h.Metrics(t); !strings.Contains(text, `would="parked"`) {
		t.Error("nothing is counted as would=parked")
	}
}

func TestExplainSaysWhenADeliveryIsParked(t *testing.T) {
	t.Parallel()
	h := parking(t)
	p := testkit.Start(t, testkit.Command{Program: hooklockProgram,
		Args: []string{"explain", "--config", h.Config, "--path", "/park-now/x", "-H", "Idempotency-Key: 1", "-d",
			"{}"}})
	if code := p.ExitCode(t); code != 0 || !strings.Contains(p.Stdout.String(), "204") ||
		!strings.Contains(p.Stdout.String(), "park") {
		t.Errorf("%d %s%s", code, p.Stdout, p.Stderr)
	}
}

func TestAParkedEventWaitsForItsRouteToComeBack(t *testing.T) {
	t.Parallel()
	config := parkConfig(shared.up.URL, ownPrefix())
	h := own(t, config)
	path := at(t, "park-hold")
	shared.on(t, path, answers(testkit.Reply(500, "broken"), testkit.OK("repaired")))
	id := acceptedAs(t, testkit.Post(t, h.Addr, path, "1", key("1")), 202)
	blockedOn(t, h, id)
	reloadTo(t, h, strings.Replace(config, "name: park-hold, path: \"/park-hold", "name: other, path: \"/other", 1))
	word(t, h, 200, id+"/run", because)
	if got := execution(t, h, id); got["status"] != "RUNNING" {
		t.Errorf("without its route it is %v", got)
	}
	if n := len(shared.up.Received(path)); n != 1 {
		t.Errorf("%d calls without a route", n)
	}
	reloadTo(t, h, config)
	testkit.Until(t, "it to run", func() bool { return execution(t, h, id)["status"] == "SUCCESS" })
}

// reloadTo gives a process another configuration, and waits until it is in force.
func reloadTo(t *testing.T, h *testkit.Hooklock, config string) {
	t.Helper()
	reloads := strings.Count(h.Stderr.String(), "config.reloaded")
	write(t, h.Config, config)
	h.Signal(t, syscall.SIGHUP)
	testkit.Until(t, "the reload", func() bool { return strings.Count(h.Stderr.String(), "config.reloaded") > reloads })
}

func TestARouteThatBeginsToObserveRunsWhatItHasAccepted(t *testing.T) {
	t.Parallel()
	config := parkConfig(shared.up.URL, ownPrefix())
	h := own(t, config)
	path := at(t, "park-hold")
	shared.on(t, path, answers(testkit.Reply(500, "broken"), testkit.OK("repaired")))
	id := acceptedAs(t, testkit.Post(t, h.Addr, path, "1", key("1")), 202)
	blockedOn(t, h, id)
	reloadTo(t, h, strings.Replace(config, "{name: park-hold,", "{name: park-hold, mode: observe,", 1))
	word(t, h, 200, id+"/run", because)
	testkit.Until(t, "it to run", func() bool { return execution(t, h, id)["status"] == "SUCCESS" })
}

// Whatever a trial decides, each delivery is forwarded, so nothing of it may be left that runs it
// again when the trial is over.
func TestATrialKeepsNothing(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"fail_fast", "wait", "latest"} {
		for _, after := range []string{"0s", "300ms"} {
			config := strings.Replace(parkConfig(shared.up.URL, ownPrefix()), "{name: park-wait,",
				"{name: trial, path: \"/trial/{w}\", workflow: \"trial/{path.w}\", mode: observe, lock: {strategy: "+
					strategy+", wait_timeout: 30s}, park: {after: "+after+"}}\n  - {name: park-wait,", 1)
			h := own(t, config)
			path := at(t, "trial") + "-" + strategy + after
			work := shared.holds(t, path)
			answers := []<-chan *testkit.Answer{testkit.GoPost(t, h.Addr, path, "1", key("1"))}
			work.await(t)
			for _, id := range []string{"2", "3"} {
				answers = append(answers, testkit.GoPost(t, h.Addr, path, id, key(id)))
				work.await(t) // it is forwarded although the first one runs
			}
			for range answers {
				work.answer <- testkit.OK("done")
			}
			for _, answer := range answers {
				if a := testkit.Receive(t, "an answer", answer); a.Status != 200 {
					t.Errorf("%s, after %s: %v", strategy, after, a)
				}
			}
			if out := cli(t, h, "executions", "list", "--parked"); strings.Contains(out, "trial") {
				t.Errorf("%s, after %s: it keeps\n%s", strategy, after, out)
			}
		}
	}
}

// A dozen dead letters with one cause name it.
func TestADeadLetterSaysWhatTheServiceSaid(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(r *testkit.Received) string {
		if r.Body == "long" {
			return testkit.Reply(500, strings.Repeat("x", 2000))
		}
		return testkit.Reply(500, "database\nis locked\n")
	})
	h := own(t, bare(up.URL, `
routes:
  - {name: skips, path: /skips, park: {enabled: true, after: 0s, attempts: 1, on_failure: skip}}
  - {name: holds, path: /holds, park: {enabled: true, on: [failed], attempts: 1, on_failure: hold}}
  - {name: quiet, path: /quiet, park: {enabled: true, after: 0s, attempts: 1, on_failure: skip, failed_answers: false}}
`))
	dead := acceptedAs(t, testkit.Post(t, h.Addr, "/skips", "{}", key("1")), 202)
	long := acceptedAs(t, testkit.Post(t, h.Addr, "/skips", "long", key("2")), 202)
	quiet := acceptedAs(t, testkit.Post(t, h.Addr, "/quiet", "{}", key("3")), 202)
	held := acceptedAs(t, testkit.Post(t, h.Addr, "/holds", "{}", key("4")), 202)
	for _, id := range []string{dead, long, quiet} {
		testkit.Until(t, "it to be a dead letter", func() bool { return execution(t, h, id)["status"] == "FAILED" })
	}
	said := func(id, token string) (status any, text string) {
		_, x := asked(t, h, http.MethodGet, "/v1/executions/"+id, token, "")
		failed, _ := x["failedAnswers"].([]any)
		if len(failed) != 1 {
			t.Fatalf("%v", x)
		}
		last := failed[0].(map[string]any)
		text, _ = last["text"].(string)
		return last["status"], text
	}
	token := localToken(t, h)
	if status, text := said(dead, token); status != 500.0 || text != "database\nis locked" {
		t.Errorf("%v %q", status, text)
	}
	if _, text := said(long, token); len(text) != 512 {
		t.Errorf("%d bytes are kept", len(text))
	}
	for id, token := range map[string]string{quiet: token, dead: ""} {
		if status, text := said(id, token); status != 500.0 || text != "" {
			t.Errorf("%v %q", status, text)
		}
	}
	if list := cli(t, h, "executions", "list", "--dead-letters", "-o", "wide"); !strings.Contains(list,
		"the upstream answered 500: database is locked") {
		t.Errorf("the list says\n%s", list)
	}
	testkit.Until(t, "the other one to be blocked", func() bool {
		return strings.Contains(cli(t, h, "executions", "list", "--blocked", "-o", "wide"), held) &&
			strings.Contains(cli(t, h, "executions", "list", "--blocked", "-o", "wide"), "database is locked")
	})
}
