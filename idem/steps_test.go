package idem

import (
	"reflect"
	"testing"
	"time"
)

func TestAStepEndsTheOneBeforeIt(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2030, 1, 2, 3, 4, s, 0, time.UTC) }
	first := (&Lock{}).BeginStep("a", []string{"a", "b"}, at(1))
	if want := []Step{{Name: "a", Status: StepRunning, StartedAt: at(1)}}; !reflect.DeepEqual(first.Steps, want) ||
		!reflect.DeepEqual(first.Plan, []string{"a", "b"}) {
		t.Fatalf("%+v, plan %v", first.Steps, first.Plan)
	}
	if again := first.BeginStep("a", nil, at(2)); !reflect.DeepEqual(again.Steps, first.Steps) || len(again.Plan) != 2 {
		t.Errorf("a step that runs began again: %+v", again.Steps)
	}
	second := first.BeginStep("b", []string{}, at(3))
	if want := []Step{{Name: "a", Status: StepDone, StartedAt: at(1), FinishedAt: at(3)},
		{Name: "b", Status: StepRunning, StartedAt: at(3)}}; !reflect.DeepEqual(second.Steps, want) ||
		len(second.Plan) != 0 {
		t.Errorf("%+v, plan %v", second.Steps, second.Plan)
	}
	if first.Steps[0].Status != StepRunning {
		t.Error("the lock before it has changed")
	}
	if planned := second.BeginStep("", []string{"c"}, at(4)); !reflect.DeepEqual(planned.Steps, second.Steps) ||
		!reflect.DeepEqual(planned.Plan, []string{"c"}) {
		t.Errorf("a plan alone: %+v, %v", planned.Steps, planned.Plan)
	}
	ended := &Lock{ExecutionFacts: ExecutionFacts{Steps: []Step{{Name: "a", Status: StepDone, StartedAt: at(1),
		FinishedAt: at(2)}}}}
	if next := ended.BeginStep("b", nil, at(5)); !next.Steps[0].FinishedAt.Equal(at(2)) || len(next.Steps) != 2 {
		t.Errorf("a step that had ended: %+v", next.Steps)
	}
}

func TestTheEndOfAnExecutionEndsItsStepsAsFarAsIsKnown(t *testing.T) {
	begun, at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2030, 1, 2, 3, 5, 0, 0, time.UTC)
	running, done := Step{Name: "a", Status: StepRunning, StartedAt: begun},
		Step{Name: "a", Status: StepDone, StartedAt: begun, FinishedAt: at}
	skipped := Step{Name: "b", Status: StepSkipped}
	cancelled := &Cancel{By: "ops"}
	for name, c := range map[string]struct {
		steps  []Step
		cancel *Cancel
		status Status
		want   []Step
	}{
		"none":                     {nil, nil, Success, nil},
		"a success":                {[]Step{running}, nil, Success, []Step{done}},
		"a failure":                {[]Step{running}, nil, Failed, []Step{running}},
		"aborted":                  {[]Step{running}, nil, Aborted, []Step{running, skipped}},
		"cancelled, and a success": {[]Step{running}, cancelled, Success, []Step{done, skipped}},
		"cancelled, and a failure": {[]Step{running}, cancelled, Failed, []Step{running, skipped}},
		"aborted before it began":  {nil, nil, Aborted, []Step{{Name: "a", Status: StepSkipped}, skipped}},
		"a success, done by itself": {[]Step{{Name: "a", Status: StepDone, FinishedAt: begun}}, nil, Success,
			[]Step{{Name: "a", Status: StepDone, FinishedAt: begun}}},
	} {
		l := &Lock{ExecutionFacts: ExecutionFacts{Steps: c.steps}, Plan: []string{"a", "b"}, Cancel: c.cancel}
		if got := l.EndSteps(c.status, at); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if running.Status != StepRunning {
		t.Error("the lock's own steps have changed")
	}
}

func TestTheStepsOfAnExecutionFollowItsState(t *testing.T) {
	running, skipped := Step{Name: "a", Status: StepRunning}, Step{Name: "b", Status: StepSkipped}
	lock := func(c *Cancel) *Lock {
		return &Lock{ExecutionFacts: ExecutionFacts{Steps: []Step{running}}, Plan: []string{"a", "b"}, Cancel: c}
	}
	for name, c := range map[string]struct {
		found Found
		want  []Step
	}{
		"it runs":         {Found{Lock: lock(nil)}, []Step{running}},
		"it is cancelled": {Found{Lock: lock(&Cancel{By: "ops"})}, []Step{running, skipped}},
		"it has ended": {Found{Record: &Record{ExecutionFacts: ExecutionFacts{Steps: []Step{skipped}}},
			Lock: lock(nil)},
			[]Step{skipped}},
		"it has only arrived": {Found{Arrivals: &History{}}, nil},
	} {
		if got := c.found.AllSteps(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
