package protocol

import (
	"reflect"
	"testing"
	"time"

	"hooklock/idem"
)

func aProof() *Proof {
	at := time.Unix(1_800_000_000, 123_456_789).UTC()
	return &Proof{
		Execution: idem.NewExecutionID("orders", idem.MakeKey(7, [16]byte{1}), [4]byte{0, 0, 0, 1}),
		End: idem.End{Status: idem.Failed, Outcome: idem.Executed, FinishedAt: at, Remembered: true, ProvenAt: at,
			Error: &idem.Failure{Code: "upstream_failed", Detail: "no"}},
		Status: 500, Bytes: 1 << 40, Counts: []idem.Counted{
			{Route: "hook", Kinds: idem.CountSetOf(idem.CountFailed), Took: time.Millisecond, Last: at},
			{Route: "other"},
		},
	}
}

func TestAProofComesBackAsItWas(t *testing.T) {
	plain := &Proof{Execution: aProof().Execution, Status: 200}
	plain.End = idem.End{Status: idem.Success, Outcome: idem.Executed, FinishedAt: aProof().End.FinishedAt}
	for _, p := range []*Proof{aProof(), plain} {
		b, err := EncodeProof(p)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeProof(b); err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%+v, %v, want %+v", got, err, p)
		}
	}
}

func FuzzDecodeProof(f *testing.F) {
	b, err := EncodeProof(aProof())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := DecodeProof(b)
		if err != nil {
			return
		}
		again, err := EncodeProof(p)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeProof(again); err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%+v, %v, want %+v", got, err, p)
		}
	})
}
