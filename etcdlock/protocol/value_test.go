package protocol

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"hooklock/idem"
)

func sampleLock() *idem.Lock {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000000, time.UTC)
	return &idem.Lock{
		ExecutionFacts: idem.ExecutionFacts{
			Execution: "exec_a", Scope: idem.Scope{Workflow: "w/\"1\"", Key: "k", PerEvent: true}, Route: "r",
			EventID:     "e",
			Fingerprint: idem.Fingerprint{1, 2}, Parts: idem.Parts{1, 2}, Credentials: "c", CallbackHash: "h",
			TraceParent: "t", Attempt: 3,
			Earlier: []idem.Attempt{{Execution: "exec_b", Status: idem.Failed, Outcome: idem.Unknown, StartedAt: at,
				FinishedAt: at}},
			StartedAt: at, Retention: time.Minute, Holder: "host/1/s",
			Steps: []idem.Step{{Name: "one", Status: idem.StepDone, StartedAt: at, FinishedAt: at}},
		},
		MaxDuration: time.Hour, ReleaseDelay: time.Second,
		Cancel:     &idem.Cancel{By: "ops", Reason: "why", At: at, Final: true},
		ReplayBody: 5, Plan: []string{"one", "two"}, Held: true, HoldTTL: time.Minute, Cooling: true, CoolUntil: at,
		Alive: "sessions/s",
	}
}

func sampleRecord() *idem.Record {
	l := sampleLock()
	r := RecordOf(l, idem.End{Status: idem.Success, Outcome: idem.Executed, FinishedAt: l.StartedAt, Remembered: true,
		Answer: &idem.Answer{
			Status: 200, Bytes: 5, Whole: true, Header: []idem.HeaderField{{Name: "content-Type", Value: "a"}},
			Body: []byte("a\nb\x00\xff"),
		}})
	r.Token = 7
	return r
}

func TestALockComesBackAsItWasWritten(t *testing.T) {
	b, err := EncodeLock(sampleLock())
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeLock(b)
	if err != nil || !reflect.DeepEqual(got, sampleLock()) {
		t.Fatalf("%+v %v", got, err)
	}
	if bytes.ContainsRune(b, '\n') || !bytes.HasPrefix(b, []byte(`{"v":1,`)) {
		t.Fatalf("not one line with its version first: %s", b)
	}
}

func TestALockThatIsTooLargeIsRefused(t *testing.T) {
	l := sampleLock()
	l.EventID = strings.Repeat("e", MaxLockBytes)
	if _, err := EncodeLock(l); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("got %v", err)
	}
}

func TestAValueOfANewerReleaseSaysSo(t *testing.T) {
	newer := []byte(`{"v":4,"fingerprint":17}` + "\n")
	var want *NewerError
	if _, err := DecodeLock(newer); !errors.As(err, &want) {
		t.Errorf("lock: %v", err)
	}
	if !strings.Contains(want.Error(), "upgrade") {
		t.Errorf("%v does not say what to do", want)
	}
}

func TestAForeignValueIsRefused(t *testing.T) {
	for _, b := range []string{"", "x", "{}", `{"v":0}`, `{"v":1}`, `{"v":1,"fingerprint":"00"}`, `[]`, "null"} {
		if _, err := DecodeLock([]byte(b)); !errors.Is(err, errCorrupt) {
			t.Errorf("lock %q: %v", b, err)
		}
	}
}

func TestACancelThatWasAskedIsWhyAnUnknownExecutionEnded(t *testing.T) {
	l := sampleLock()
	failed := idem.End{Status: idem.Failed, Outcome: idem.Unknown, Error: &idem.Failure{Code: "x"}}
	if r := RecordOf(l, failed); r.Status != idem.Aborted || r.Error != nil || r.Abort == nil || !r.Abort.Final {
		t.Errorf("unknown: %+v", r)
	}
	if r := RecordOf(l, idem.End{Status: idem.Success, Outcome: idem.Executed}); r.Status != idem.Success ||
		r.Abort != nil {
		t.Errorf("executed: %+v", r)
	}
	l.Cancel = nil
	if r := RecordOf(l, failed); r.Status != idem.Failed || r.Error == nil {
		t.Errorf("no cancel: %+v", r)
	}
}

func FuzzDecodeLock(f *testing.F) {
	b, _ := EncodeLock(sampleLock())
	f.Add(b)
	f.Add([]byte(`{"v":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := DecodeLock(b)
		if err != nil {
			return
		}
		again, err := EncodeLock(l)
		if err != nil {
			return // larger than what we would write
		}
		if l2, err := DecodeLock(again); err != nil || l2.Execution != l.Execution || l2.Fingerprint != l.Fingerprint {
			t.Fatalf("%q became %q: %v", b, again, err)
		}
	})
}

func TestTheFingerprintInALockOfAnEarlierReleaseIsTheSame(t *testing.T) {
	got, err := DecodeLock([]byte(`{"v":1,"executionId":"exec_a","fingerprint":"01020000000000000000000000000000` +
		strings.Repeat("f", 32) + `"}`))
	if err != nil || got.Fingerprint != (idem.Fingerprint{1, 2}) {
		t.Errorf("%+v %v", got, err)
	}
}
