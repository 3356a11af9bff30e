package protocol

import (
	"path"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/idem"
)

type jobValue struct {
	Version int `json:"v"`
	idem.Job
}

// EncodeJob encodes a job.
func EncodeJob(j *idem.Job) []byte { return encodeJSON(jobValue{othersVersion, *j}) }

// JobAt reads a job and its key.
func (y Layout) JobAt(kv *mvccpb.KeyValue) (*idem.Job, error) {
	var v jobValue
	if err := decodeJSON("a job", kv.Value, othersVersion, &v); err != nil {
		return nil, err
	}
	v.ID, v.Revision, v.Asked = path.Base(string(kv.Key)), kv.ModRevision, kv.CreateRevision
	return &v.Job, nil
}

type jobRunValue struct {
	Version int `json:"v"`
	idem.JobRun
}

// JobRun returns the key and the value of an execution that a job follows.
func (y Layout) JobRun(id string, r *idem.JobRun) (key string, v Leased) {
	return y.JobRuns(id) + string(r.Execution), Leased{Value: encodeJSON(jobRunValue{othersVersion, *r})}
}

// JobRunAt reads what JobRun returns.
func (y Layout) JobRunAt(id string, kv *mvccpb.KeyValue) (idem.JobRun, error) {
	var v jobRunValue
	err := decodeJSON("a run of a job", kv.Value, othersVersion, &v)
	v.Execution = idem.ExecutionID(strings.TrimPrefix(string(kv.Key), y.JobRuns(id)))
	return v.JobRun, err
}
