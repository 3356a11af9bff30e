package fault

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/fault/cluster"
	"hooklock/test/testkit"
)

// saidStep is a moment at which the process dies that a person tells what is to become of an event.
type saidStep struct {
	verb   string // of the API
	letter bool   // the event is a dead letter. Otherwise it is blocked, at the healthy replica
	lost   bool   // what the person wants is committed, and etcd's answer lost. Otherwise it did not reach etcd
	again  string // what saying it again gets, at the healthy replica: where it was committed, after its end
	more   int    // calls of the upstream, in all
	status string // of the event's last execution, at its end
}

var saidSteps = []saidStep{
	{verb: "run", again: "200", more: 1, status: "SUCCESS"},
	{verb: "run", lost: true, again: "409 already_finished", more: 1, status: "SUCCESS"},
	{verb: "skip", again: "202", status: "FAILED"},
	{verb: "skip", lost: true, again: "200", status: "FAILED"},
	{verb: "cancel", again: "202", status: "ABORTED"},
	{verb: "cancel", lost: true, again: "200", status: "ABORTED"},
	{verb: "rerun", letter: true, again: "201", more: 1, status: "SUCCESS"},
	{verb: "rerun", letter: true, lost: true, again: "409 execution_superseded", more: 1, status: "SUCCESS"},
}

func TestAProcessKilledDuringAnOperatorsCommandDoesItOnceOrNotAtAll(t *testing.T) {
	etcd := etcdtest.Start(t)
	tabled(t, "parked-said", "Said of | Killed when | Left in etcd | Said again | Sent since | Ends as", saidSteps,
		func(t *testing.T, st saidStep) string { return killSaid(t, etcd, st) })
}

func killSaid(t *testing.T, etcd *etcdtest.Etcd, st saidStep) (row string) {
	s := arranged(t, etcd, "park")
	of, policy := "a blocked event", ""
	if st.letter {
		of, policy = "a dead letter", ", on_failure: skip"
	}
	s.config.Routes = cluster.Route("hook", "lock: {release_delay: 0s}, park: {enabled: true, after: 0s, attempts: 1"+
		policy+"}")
	healthyData := filepath.Join(t.TempDir(), "data")
	s.config.DataDir = healthyData
	s.startHealthy()
	s.up.Next(func(x *cluster.Exchange) bool { return x.ReadBody() == nil && x.Answer(500, "broken") == nil })
	accepted := s.sender.Send(t.Context(), s.healthy.Door, s.delivery)
	if !accepted.Parked() {
		t.Fatalf("the event got %v", accepted)
	}
	s.journal.Await("the event waits for a person", func(c cluster.Change) bool {
		if st.letter {
			return cluster.RecordOf(s.delivery.Event)(c)
		}
		return cluster.LockOf(s.delivery.Event)(c) && c.Value.Parked.Blocked != ""
	})
	s.config.DataDir = filepath.Join(t.TempDir(), "data")
	s.victim = cluster.StartReplica(t, programs, s.config)
	moment := s.commits(st)
	var answered string
	heard := when(func() { answered = say(t, s.victim, s.config.DataDir, accepted.Execution, st.verb) })
	await(t, st.verb+" is on its way", moment)
	s.victim.Kill()
	<-heard
	if answered != "cut" {
		t.Errorf("the person got %s of a process that is dead", answered)
	}
	if st.lost {
		s.awaitEnd(st)
	}
	left := s.whereItIs()
	again := say(t, s.healthy, healthyData, accepted.Execution, st.verb)
	if again != st.again {
		t.Errorf("said again it got %s, not %s", again, st.again)
	}
	s.awaitEnd(st)
	if later := s.neighbour("later-event"); !later.Parked() {
		t.Errorf("a later event got %v", later)
	}
	s.journal.Await("the end of the later event", cluster.RecordOf("later-event"))
	calls := len(s.up.Of(s.delivery.Event)) - 1
	if calls != st.more {
		t.Errorf("the event was sent %d times more, not %d", calls, st.more)
	}
	s.up.CheckFence()
	when := "it did not reach etcd"
	if st.lost {
		when = "it is in etcd, etcd's answer lost"
	}
	return cells("`"+st.verb+"` of "+of, when, left, again, fmt.Sprint(calls), st.status)
}

// commits is when what a person says reaches etcd, or would.
func (s *stage) commits(st saidStep) <-chan struct{} {
	s.t.Helper()
	if !st.lost {
		return s.wire.SwallowRequest(locksNow)
	}
	before := s.journal.All()
	kind := map[string]string{"run": "locks/", "skip": "cancels/", "cancel": "cancels/", "rerun": "queue/"}[st.verb]
	s.wire.SwallowAnswer(locksNow)
	return when(func() {
		s.journal.Await(st.verb+" in etcd", func(c cluster.Change) bool {
			return strings.HasPrefix(c.Key, kind) && !c.Deleted && c.Revision > before[len(before)-1].Revision
		})
	})
}

// awaitEnd waits for the record of the event's last execution.
func (s *stage) awaitEnd(st saidStep) {
	s.t.Helper()
	s.journal.Await("the end of what was said", func(c cluster.Change) bool {
		return cluster.RecordOf(s.delivery.Event)(c) && c.Value.Status == st.status
	})
}

// say asks r's API, as a person would: the status and the code of its answer, or "cut".
func say(t *testing.T, r *cluster.Replica, data, id, verb string) string {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(data, "admin.token"))
	if err != nil {
		t.Error(err)
		return ""
	}
	q, err := http.NewRequest(http.MethodPost, "http://"+r.Admin+"/v1/executions/"+id+"/"+verb,
		strings.NewReader(`{"reason":"a person says so"}`))
	if err != nil {
		t.Error(err)
		return ""
	}
	q.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	client := &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	a, err := client.Do(q)
	if err != nil {
		return "cut"
	}
	defer a.Body.Close()
	var problem struct{ Code string }
	_ = json.NewDecoder(a.Body).Decode(&problem)
	return strings.TrimSpace(fmt.Sprint(a.StatusCode, " ", problem.Code))
}
