package fault

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hooklock/admin/client"
	"hooklock/etcdlock/etcdtest"
	"hooklock/test/fault/cluster"
	"hooklock/test/testkit"
)

// jobStage is some replicas, and dead letters for a job.
type jobStage struct {
	t        *testing.T
	up       *cluster.Upstream
	config   cluster.Config
	replicas []*cluster.Replica
	asked    []*client.Client // of each replica
	events   []string
}

// startJobs lets n events end as dead letters, and then repairs the service.
func startJobs(t *testing.T, replicas, n int) *jobStage {
	t.Helper()
	etcd := etcdtest.Start(t)
	s := &jobStage{t: t, up: cluster.NewUpstream(t)}
	s.config = cluster.Config{
		Endpoints: []string{etcd.Endpoint}, Prefix: "/hooklock", Upstream: s.up.Addr,
		Routes: cluster.Route("hook",
			"lock: {release_delay: 0s}, park: {enabled: true, after: 0s, on_failure: skip, attempts: 1}"),
	}
	for range replicas {
		s.start()
	}
	s.up.Always(func(x *cluster.Exchange) bool {
		return x.ReadBody() == nil && x.Answer(500, "database is locked") == nil
	})
	sender := cluster.NewSender()
	for i := range n {
		event := fmt.Sprint("event-", i)
		s.events = append(s.events, event)
		a := sender.Send(t.Context(), s.replicas[0].Door,
			cluster.Delivery{Route: "hook", Workflow: fmt.Sprint("w", i%7), Event: event})
		if !a.Parked() {
			t.Fatalf("%s: %v", event, a)
		}
	}
	testkit.Until(t, "all are dead letters", func() bool {
		j, err := s.asked[0].StartJob(t.Context(),
			client.NewJob{Kind: client.JobRerun, Filter: client.BulkFilter{State: client.ParkDeadLetter}, DryRun: true})
		return err == nil && j.Matched == n
	})
	s.up.Always(cluster.Run)
	return s
}

// start starts one more replica.
func (s *jobStage) start() {
	s.t.Helper()
	c := s.config
	c.DataDir = filepath.Join(s.t.TempDir(), "data")
	r := cluster.StartReplica(s.t, programs, c)
	token, err := os.ReadFile(filepath.Join(c.DataDir, "admin.token"))
	if err != nil {
		s.t.Fatal(err)
	}
	asked, err := client.New(client.Options{URL: "http://" + r.Admin,
		Token: client.Token(strings.TrimSpace(string(token)))})
	if err != nil {
		s.t.Fatal(err)
	}
	s.replicas, s.asked = append(s.replicas, r), append(s.asked, asked)
}

// await asks the last replica for the job until it is as holds wants it.
func (s *jobStage) await(id, what string, holds func(*client.Job) bool) (j *client.Job) {
	s.t.Helper()
	testkit.Until(s.t, what, func() bool {
		ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
		defer cancel()
		next, err := s.asked[len(s.asked)-1].Job(ctx, id)
		if err == nil {
			j = next
		}
		return err == nil && holds(j)
	})
	return j
}

// owner returns the number of the replica that runs a job.
func (s *jobStage) owner(j *client.Job) int {
	s.t.Helper()
	for i, r := range s.replicas {
		if strings.Contains(j.Replica, fmt.Sprintf("/%d/", r.Pid())) {
			return i
		}
	}
	s.t.Fatalf("no replica is %q", j.Replica)
	return -1
}

// check compares a job that is done with what the service saw: each event has run as one execution
// since it was a dead letter.
func (s *jobStage) check(j *client.Job) {
	s.t.Helper()
	n := len(s.events)
	if j.Matched != n || j.Acted != n || j.Refused != 0 || j.Succeeded+j.Failed != n || j.Waiting != 0 {
		s.t.Errorf("of %d: %s", n, j.RawJSON())
	}
	effects := map[string]int{}
	for _, e := range s.up.Effects() {
		effects[e.Event]++
	}
	for _, event := range s.events {
		ran := map[string]bool{}
		for _, x := range s.up.Of(event) {
			ran[x.Execution] = true
		}
		if len(ran) != 2 || effects[event] == 0 {
			s.t.Errorf("%s ran as %d executions with the dead letter, and took effect %d times", event, len(ran),
				effects[event])
		}
	}
	steps := map[string]int{}
	for a, err := range s.asked[len(s.asked)-1].Audits(s.t.Context(), client.AuditQuery{What: "execution.rerun"}) {
		if err != nil {
			s.t.Fatal(err)
		}
		if a.Result == "done" && a.JobID == j.JobID {
			steps[a.ExecutionID]++
		}
	}
	if len(steps) != n {
		s.t.Errorf("%d executions have an audit of the job, and %d were rerun", len(steps), n)
	}
	for id, k := range steps {
		if k != 1 {
			s.t.Errorf("%s has %d audits", id, k)
		}
	}
}

func isOver(j *client.Job) bool { return j.Over() }

// TestAJobGoesOnWhereItsReplicaWasKilled kills the replica that runs a job, twice, at whatever
// moment: another one goes on, and the service's own records say that each event ran once.
func TestAJobGoesOnWhereItsReplicaWasKilled(t *testing.T) {
	t.Parallel()
	s := startJobs(t, 3, 60)
	j, err := s.asked[0].StartJob(t.Context(),
		client.NewJob{Kind: client.JobRerun, Reason: "repaired", Filter: client.BulkFilter{Route: "hook"}, Rate: 15})
	if err != nil {
		t.Fatal(err)
	}
	id := j.JobID
	for _, acted := range []int{10, 30} {
		j = s.await(id, fmt.Sprintf("%d are let run", acted), func(j *client.Job) bool { return j.Acted >= acted })
		if j.Over() {
			t.Fatalf("it was over before the kill: %s", j.RawJSON())
		}
		s.replicas[s.owner(j)].Kill()
		s.start() // also what is asked for the job
		dead := j.Replica
		s.await(id, "another replica goes on", func(j *client.Job) bool { return j.Replica != dead })
	}
	j = s.await(id, "the job is done", isOver)
	if !strings.HasPrefix(j.Result, "60 of 60 ran: ") {
		t.Errorf("%s", j.Result)
	}
	s.check(j)
}

// TestAFrozenReplicaDoesNothingMoreOfAJobThatAnotherOneTook freezes the replica that runs a job
// until another one has it, and lets it go on.
func TestAFrozenReplicaDoesNothingMoreOfAJobThatAnotherOneTook(t *testing.T) {
	t.Parallel()
	s := startJobs(t, 2, 40)
	j, err := s.asked[0].StartJob(t.Context(),
		client.NewJob{Kind: client.JobRerun, Reason: "repaired", Filter: client.BulkFilter{Route: "hook"}, Rate: 10})
	if err != nil {
		t.Fatal(err)
	}
	s.start()
	j = s.await(j.JobID, "some are let run", func(j *client.Job) bool { return j.Acted >= 5 })
	frozen := j.Replica
	r := s.replicas[s.owner(j)]
	r.Freeze(t)
	s.await(j.JobID, "another replica goes on", func(j *client.Job) bool { return j.Replica != frozen && j.Acted > 6 })
	r.Thaw(t)
	j = s.await(j.JobID, "the job is done", isOver)
	if j.Replica == frozen {
		t.Errorf("the frozen one took it back: %s", j.RawJSON())
	}
	s.check(j)
}
