package operate_test

import (
	"errors"
	"testing"
	"time"

	"hooklock/idem"
)

// auditOf is the audit of a step: the job as it is after it.
func auditOf(j *idem.Job) *idem.Audit {
	done := j.Clone()
	done.Acted++
	return &idem.Audit{At: time.Now(), Who: "ops", What: "execution.run", Step: &idem.JobStep{Job: done, Follow: true}}
}

func TestAStepOfAJobIsMadeOnceAndByTheProcessThatHasTheJob(t *testing.T) {
	e, a, b := replicas(t)
	l := parkedLock("w", "event")
	mustPark(t, b, l, 0)
	h := takeNext(t, b).Running
	p := *h.Lock().Parked
	p.NextAttempt = time.Now().Add(time.Hour)
	if err := h.RecordTry(within(t, patience), p); err != nil {
		t.Fatal(err)
	}
	job := &idem.Job{ID: "job_a", Kind: "run", Who: "ops", Rate: 1, StartedAt: time.Now(), Until: 1, Matched: 1}
	if err := a.BeginJob(within(t, patience), job, nil); err != nil {
		t.Fatal(err)
	}
	mine := job.Clone()
	if err := a.TakeJob(within(t, patience), mine); err != nil {
		t.Fatal(err)
	}
	theirs := mine.Clone()
	if err := b.TakeJob(within(t, patience), theirs); !errors.Is(err, idem.ErrJobMoved) {
		t.Fatalf("it was taken from a process that lives: %v", err)
	}
	endSession(t, e, sessionOf(t, e, a))
	if err := b.TakeJob(within(t, patience), theirs); err != nil {
		t.Fatal(err)
	}
	before := mustFind(t, b, l.Execution).Lock.Revision
	eventually(t, "the first process has a session again", func() bool { return a.Ready() == nil })
	if _, err := a.RunNow(within(t, patience), l.Execution, auditOf(mine)); !errors.Is(err, idem.ErrJobMoved) {
		t.Errorf("a step of a process that has lost the job: %v", err)
	}
	if now := mustFind(t, b, l.Execution).Lock.Revision; now != before {
		t.Error("it was made all the same")
	}
	step := auditOf(theirs)
	if _, err := b.RunNow(within(t, patience), l.Execution, step); err != nil || step.Step.Applied == 0 ||
		step.Step.Run.Execution != l.Execution {
		t.Fatalf("%+v %v", step.Step, err)
	}
	if _, err := b.RunNow(within(t, patience), l.Execution, auditOf(theirs)); !errors.Is(err, idem.ErrJobMoved) {
		t.Errorf("the same step again: %v", err)
	}
	j, err := a.Job(within(t, patience), job.ID)
	if err != nil || j.Acted != 1 || j.Revision != step.Step.Applied {
		t.Errorf("%+v %v", j, err)
	}
	if runs, err := a.JobRuns(within(t, patience), job.ID); err != nil || len(runs) != 1 ||
		runs[0].Execution != l.Execution {
		t.Errorf("%v %v", runs, err)
	}
}
