package operate

import (
	"cmp"
	"context"
	"errors"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// jobBatch is how many jobs, or runs of one, are read at a time.
const jobBatch = 500

// Jobs returns all jobs, the newest first. It returns idem.ErrStoreUnavailable.
func (op *Operator) Jobs(ctx context.Context) ([]idem.Job, error) {
	open, err := op.OpenJobs(ctx)
	if err != nil {
		return nil, err
	}
	ended, err := op.jobsBelow(ctx, protocol.KindEndedJobs)
	if err != nil {
		return nil, err
	}
	all := append(open, ended...)
	slices.SortStableFunc(all, func(a, b idem.Job) int { // the newest first
		return cmp.Or(b.StartedAt.Compare(a.StartedAt), cmp.Compare(a.ID, b.ID), cmp.Compare(b.Revision, a.Revision))
	})
	// one that ended between the reads
	return slices.CompactFunc(all, func(a, b idem.Job) bool { return a.ID == b.ID }), nil
}

// OpenJobs returns the jobs that have not ended and are not stopped. It returns
// idem.ErrStoreUnavailable.
func (op *Operator) OpenJobs(ctx context.Context) ([]idem.Job, error) {
	return op.jobsBelow(ctx, protocol.KindOpenJobs)
}

func (op *Operator) jobsBelow(ctx context.Context, kind string) (all []idem.Job, err error) {
	for kv, err := range op.options.Pool.All(ctx, link.Below(op.options.Layout.All(kind), jobBatch)) {
		if err != nil {
			return nil, commit.Unavailable(err)
		}
		if j, err := op.options.Layout.JobAt(kv); err == nil { // else of a newer release, whose processes run it
			all = append(all, *j)
		}
	}
	return all, nil
}

// Job returns one job. It returns idem.ErrNoJob or idem.ErrStoreUnavailable.
func (op *Operator) Job(ctx context.Context, id string) (*idem.Job, error) {
	answers, _, err := op.options.Pool.Read(ctx,
		clientv3.OpGet(op.options.Layout.Job(id, idem.JobRunning)),
		clientv3.OpGet(op.options.Layout.Job(id, idem.JobDone)))
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	for _, a := range answers {
		if kv := protocol.First(a); kv != nil {
			if j, err := op.options.Layout.JobAt(kv); err == nil {
				return j, nil
			}
		}
	}
	return nil, idem.ErrNoJob
}

// JobRuns returns what a job follows: the executions that it has let run, and whose ends it has not
// counted. It returns idem.ErrStoreUnavailable.
func (op *Operator) JobRuns(ctx context.Context, id string) (all []idem.JobRun, err error) {
	for kv, err := range op.options.Pool.All(ctx, link.Below(op.options.Layout.JobRuns(id), jobBatch)) {
		if err != nil {
			return nil, commit.Unavailable(err)
		}
		r, err := op.options.Layout.JobRunAt(id, kv)
		if err != nil {
			return nil, commit.Unavailable(err)
		}
		all = append(all, r)
	}
	return all, nil
}

// maxEndedJobs is how many jobs are kept that have ended or are stopped: the newest.
const maxEndedJobs = 100

// BeginJob stores a new job, which no process runs before TakeJob. It returns idem.ErrTooManyJobs
// or idem.ErrStoreUnavailable.
func (op *Operator) BeginJob(ctx context.Context, j *idem.Job, audit *idem.Audit) error {
	all, err := op.Jobs(ctx)
	if err != nil {
		return err
	}
	over := slices.DeleteFunc(slices.Clone(all), func(j idem.Job) bool { return j.State == idem.JobRunning })
	if len(all)-len(over) >= idem.MaxOpenJobs {
		return idem.ErrTooManyJobs
	}
	for i := range over[min(maxEndedJobs-1, len(over)):] {
		op.dropJob(ctx, &over[maxEndedJobs-1+i]) // else the next one does
	}
	j.State = idem.JobRunning
	key, value := op.options.Layout.Job(j.ID, j.State), protocol.EncodeJob(j)
	return op.changeJob(ctx, j, audit,
		commit.NewRequest(key, protocol.PutJob(key, 0, protocol.Leased{Value: value}, "", protocol.Leased{}, nil),
			len(value)))
}

func (op *Operator) dropJob(ctx context.Context, j *idem.Job) {
	key := op.options.Layout.Job(j.ID, j.State)
	_ = op.options.Sender.Do(ctx, commit.NewRequest(key,
		protocol.DropJob(key, j.Revision, op.options.Layout.JobRuns(j.ID)), 0))
}

// changeJob sends a transaction about a job once, and sets its Revision. It returns
// idem.ErrJobMoved if that was refused, and idem.ErrStoreUnavailable if its result is not known.
func (op *Operator) changeJob(ctx context.Context, j *idem.Job, audit *idem.Audit, r *commit.Request) error {
	t := op.newTrail(audit)
	t.audit.Result = idem.AuditDone
	answer, applied, err := t.sendWithAudit(ctx, r)
	switch {
	case err != nil && errors.Is(err, idem.ErrStoreUnavailable):
		return err
	case err != nil:
		return commit.Unavailable(err)
	case !applied:
		return idem.ErrJobMoved
	}
	j.Revision = answer.Revision
	return t.finishAction(ctx, nil)
}

// TakeJob makes this process the owner of a job that has none, or whose owner is gone. A process
// takes its own job again, which it must not run already. It returns idem.ErrJobMoved if the job
// has an owner or has changed since it was read, and idem.ErrStoreUnavailable.
func (op *Operator) TakeJob(ctx context.Context, j *idem.Job) error {
	s, err := op.options.Session()
	if err != nil {
		return commit.Unavailable(err)
	}
	before := ""
	if j.Session != "" && j.Session != s.Name {
		before = op.options.Layout.Alive(protocol.SessionAlive(j.Session))
	}
	next := j.Clone()
	next.Session, next.Holder = s.Name, s.Holder()
	next.TakenAt, next.TakenActed = op.options.Clock.Now().UTC().Round(0), j.Acted
	key, value := op.options.Layout.Job(j.ID, idem.JobRunning), protocol.EncodeJob(next)
	err = op.changeJob(ctx, next, nil,
		commit.NewRequest(key, protocol.TakeJob(key, j.Revision, before, protocol.Leased{Value: value}), len(value)))
	if err == nil {
		*j = *next
	}
	return err
}

// PutJob stores the progress of an open job, which nothing has changed since its Revision. It
// follows run from now on, nil = none, and ended no more: idem.MaxJobEnds of them at most. It
// returns idem.ErrJobMoved or idem.ErrStoreUnavailable.
func (op *Operator) PutJob(ctx context.Context, j *idem.Job, run *idem.JobRun, ended []idem.JobRun) error {
	var runKey string
	var runValue protocol.Leased
	if run != nil {
		runKey, runValue = op.options.Layout.JobRun(j.ID, run)
	}
	var gone []string
	for i := range ended {
		key, _ := op.options.Layout.JobRun(j.ID, &ended[i])
		gone = append(gone, key)
	}
	key, value := op.options.Layout.Job(j.ID, idem.JobRunning), protocol.EncodeJob(j)
	r := commit.NewRequest(key, protocol.PutJob(key, j.Revision, protocol.Leased{Value: value}, runKey, runValue, gone),
		len(value)+len(runKey)+len(runValue.Value))
	return op.changeJob(ctx, j, nil, r)
}

// MoveJob stores a job whose State has changed since its Revision: an open one is done or stopped,
// or a stopped one goes on. It returns idem.ErrJobMoved or idem.ErrStoreUnavailable.
func (op *Operator) MoveJob(ctx context.Context, j *idem.Job, audit *idem.Audit) error {
	from, to, runs := op.options.Layout.Job(j.ID, idem.JobRunning), op.options.Layout.Job(j.ID, idem.JobDone), ""
	switch j.State {
	case idem.JobRunning:
		from, to = to, from
	case idem.JobDone:
		runs = op.options.Layout.JobRuns(j.ID)
	}
	value := protocol.EncodeJob(j)
	r := commit.NewRequest(from, protocol.MoveJob(from, j.Revision, to, protocol.Leased{Value: value}, runs),
		len(value))
	r.Slots = append(r.Slots, to)
	return op.changeJob(ctx, j, audit, r)
}
