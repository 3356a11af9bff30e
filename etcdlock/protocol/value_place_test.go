package protocol

import (
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/idem"
)

func TestAQueueEntrySaysWhetherItTakesTheLockWithoutBeingDecoded(t *testing.T) {
	l := &idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_a",
		Scope: idem.Scope{Workflow: `w,"takes":9}`, Key: "k"}}}
	handed, err := EncodePlace(l, 7)
	if err != nil {
		t.Fatal(err)
	}
	itself, err := EncodeLock(l)
	if err != nil {
		t.Fatal(err)
	}
	place := func(value []byte, modified int64) *mvccpb.KeyValue {
		return &mvccpb.KeyValue{Key: []byte("place"), CreateRevision: 5, ModRevision: modified, Value: value}
	}
	got := CandidateAt(place(handed, 5))
	if got == nil || got.Key != "place" || got.Revision != 5 || got.Prev != 7 || got.Lock() == nil ||
		got.Lock().Scope != l.Scope {
		t.Errorf("%+v", got)
	}
	for name, kv := range map[string]*mvccpb.KeyValue{"it is to take it itself": place(itself, 5),
		"it was parked since": place(handed, 6)} {
		if got := CandidateAt(kv); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func FuzzTakesIsWhatThePlaceSays(f *testing.F) {
	for _, seed := range []string{`{"v":1,"executionId":"x","takes":5}`, `{"v":1,"executionId":",\"takes\":5}"}`,
		`{"v":1,"executionId":"x","plan":{"a":1,"takes":5}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		prev, ok := parseSeenRecord(value)
		v, err := decodeLock(value)
		if ok && err == nil && (v.Takes == nil || *v.Takes != prev) {
			t.Errorf("%q takes %d, and says %v", value, prev, v.Takes)
		}
	})
}
