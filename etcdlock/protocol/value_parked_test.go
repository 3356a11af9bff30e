package protocol

import (
	"reflect"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/idem"
)

func parkedLock() *idem.Lock {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000000, time.UTC)
	return &idem.Lock{
		ExecutionFacts: idem.ExecutionFacts{Execution: "exec_c", Scope: idem.Scope{Workflow: "w", Key: "k"}, Attempt: 1,
			StartedAt: at,
			Token:     11},
		Created: 9,
		Parked: &idem.Parked{
			Since: at, On: idem.ParkSlow, Bytes: 7, Tries: 2, Failures: 1, Trying: true, NextAttempt: at,
			Pause: time.Minute, Pauses: 3, Blocked: "b", MaxAge: time.Hour,
			Last: &idem.Evidence{Outcome: idem.Executed, Status: 500, Code: "c", Detail: "d", At: at},
		},
	}
}

func TestTheTokenOfALockIsWhereItsValueSays(t *testing.T) {
	l := parkedLock()
	fresh, err := EncodeFresh(l)
	if err != nil {
		t.Fatal(err)
	}
	spelled, err := EncodeLock(l)
	if err != nil {
		t.Fatal(err)
	}
	l.Token = l.Created
	plain, err := EncodeLock(l)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		value []byte
		want  int64
	}{"that of its creation": {plain, 9}, "one of its own": {spelled, 11}, "that of the put": {fresh, 20}} {
		got, err := LockAt(&mvccpb.KeyValue{Value: c.value, CreateRevision: 9, ModRevision: 20})
		if err != nil || got.Token != c.want || got.Created != 9 || got.Revision != 20 {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

func TestARecordOfASkippedExecutionKeepsItsRequest(t *testing.T) {
	l := parkedLock()
	l.Cancel = &idem.Cancel{By: "ops", Reason: "why", Skip: true}
	for _, outcome := range []idem.Outcome{idem.Unknown, idem.NotExecuted} {
		r := RecordOf(l, idem.End{Status: idem.Failed, Outcome: outcome, Error: &idem.Failure{Code: "x"}})
		if r.Check() != nil || r.Status != idem.Failed || r.Error.Code != CodeSkipped || !r.RequestKept ||
			r.Tries != 2 || r.Final {
			t.Errorf("%s: %+v", outcome, r)
		}
	}
	if r := RecordOf(l, idem.End{Status: idem.Success, Outcome: idem.Executed}); r.Status != idem.Success ||
		r.RequestKept {
		t.Errorf("what succeeded: %+v", r)
	}
	l.Cancel.Skip = false
	if r := RecordOf(l, idem.End{Status: idem.Aborted, Outcome: idem.Executed, Abort: l.Cancel}); r.Check() != nil ||
		r.RequestKept {
		t.Errorf("a cancel after a try that failed: %+v %v", r, r.Check())
	}
}

func FuzzDecodeIndex(f *testing.F) {
	f.Add(EncodeIndex(IndexOf(parkedLock())))
	f.Add([]byte(`{"v":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := DecodeIndex(b)
		if err != nil {
			return
		}
		if again, err := DecodeIndex(EncodeIndex(p)); err != nil || again.Key != p.Key || again.State != p.State ||
			!again.Since.Equal(p.Since) {
			t.Fatalf("%q became %+v, %v", b, again, err)
		}
	})
}

func TestAnIndexEntryComesBackAsItWasWritten(t *testing.T) {
	want := IndexOf(parkedLock())
	got, err := DecodeIndex(EncodeIndex(want))
	if err != nil {
		t.Fatal(err)
	}
	got.Execution = want.Execution // its key has it
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestAnEventThatIsSkippedOrCancelledHasTheOutcomeOfItsTries(t *testing.T) {
	for skip, want := range map[bool]idem.Status{true: idem.Failed, false: idem.Aborted} {
		l := sampleLock()
		l.Parked = &idem.Parked{Tries: 1, Effect: idem.Executed,
			Last: &idem.Evidence{Outcome: idem.Executed, Status: 500}}
		l.Cancel = &idem.Cancel{By: "ops", Skip: skip}
		r := RecordOf(l, idem.End{Status: idem.Aborted, Outcome: l.Parked.Outcome(), Abort: l.Cancel,
			FinishedAt: time.Now()})
		if r.Status != want || r.Outcome != idem.Executed || r.RequestKept != skip || r.Check() != nil {
			t.Errorf("skip %v: %s, %s, request kept %v: %v", skip, r.Status, r.Outcome, r.RequestKept, r.Check())
		}
	}
}
