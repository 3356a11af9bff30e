package idem

import (
	"slices"
	"time"
)

// BeginStep returns the lock after its upstream has reported that a step begins: the step before is
// done, and plan, if it is not nil, is what the upstream means to do from now on. A step that runs
// already goes on; without a name none begins. l is not changed.
func (l *Lock) BeginStep(name string, plan []string, at time.Time) *Lock {
	next := *l
	if plan != nil {
		next.Plan = plan
	}
	if name == "" {
		return &next
	}
	next.Steps = slices.Clone(l.Steps)
	if n := len(next.Steps); n > 0 && next.Steps[n-1].Status == StepRunning {
		if next.Steps[n-1].Name == name {
			return &next
		}
		next.Steps[n-1].Status, next.Steps[n-1].FinishedAt = StepDone, at
	}
	next.Steps = append(next.Steps, Step{Name: name, Status: StepRunning, StartedAt: at})
	return &next
}

// EndSteps returns the steps of an execution that ends with this status. SUCCESS finishes the
// running step; with another status it stays as it is, because it is not known how far it came.
// Planned steps that have not begun are skipped if the execution was aborted.
func (l *Lock) EndSteps(status Status, at time.Time) []Step {
	steps := slices.Clone(l.Steps)
	if n := len(steps); n > 0 && status == Success && steps[n-1].Status == StepRunning {
		steps[n-1].Status, steps[n-1].FinishedAt = StepDone, at
	}
	if status != Aborted && l.Cancel == nil {
		return steps
	}
	for _, name := range l.Plan {
		if !slices.ContainsFunc(steps, func(s Step) bool { return s.Name == name }) {
			steps = append(steps, Step{Name: name, Status: StepSkipped})
		}
	}
	return steps
}

// AllSteps returns the execution's steps for operators, those that a cancel leaves out included.
func (f *Found) AllSteps() []Step {
	switch {
	case f.Record != nil:
		return f.Record.Steps
	case f.Lock == nil:
		return nil
	case f.Lock.Cancel != nil:
		return f.Lock.EndSteps(CancelRequested, time.Time{})
	}
	return f.Lock.Steps
}
