package protocol

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"testing"
	"time"

	"hooklock/idem"
)

// Whatever is in etcd, a list goes on.
func FuzzWhatIsForPeople(f *testing.F) {
	h := idem.History{Scope: idem.Scope{Workflow: "w", Key: "k"}, Route: "r", EventID: "e"}
	h.Add(idem.Arrival{At: time.Unix(0, 0).UTC(), Decision: idem.DecisionLocked, Status: 409,
		Differs: []string{"body"}})
	f.Add(EncodeHistory(&h))
	f.Add(EncodeLease(ListedLease{Chain: "c", At: time.Unix(0, 0), Open: 1}))
	f.Add(EncodeAudit(&idem.Audit{At: time.Unix(0, 0).UTC(), Who: "ops", What: "execution.cancel", Result: "done"}))
	f.Add([]byte{historyVersion, 2})
	f.Add([]byte(`{"v":99}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h := DecodeHistory(b); h != nil {
			var all idem.History
			all.Merge(h)
			if len(all.Newest) == 0 || len(all.Newest) > idem.MaxArrivals {
				t.Fatalf("%+v", all)
			}
			if again := DecodeHistory(EncodeHistory(h)); again == nil || len(again.Newest) != len(h.Newest) {
				t.Fatalf("%+v", again)
			}
		}
		if a := DecodeAudit(b); a != nil {
			if again := DecodeAudit(EncodeAudit(a)); again == nil || again.What != a.What {
				t.Fatalf("%+v", again)
			}
		}
		if l, ok := DecodeLease(b); ok && l.Version != othersVersion {
			t.Fatalf("%+v", l)
		}
	})
}

func TestArrivalsComeBackAsTheyWereWritten(t *testing.T) {
	key := idem.MakeKey(idem.HashEventID("evt_1PqR0000000000000001"), [16]byte{1, 2, 3})
	event := idem.Scope{Workflow: "stripe/cus_1", Key: key}
	for name, c := range map[string]struct{ arrivals, most int }{"one": {1, 200},
		"as many as are kept": {idem.MaxArrivals, 1500}, "more": {40, 1600}, "none": {0, 250}} {
		h := idem.History{Scope: event, Route: "stripe", EventID: "evt_1PqR0000000000000001"}
		for n := range c.arrivals {
			h.Add(idem.Arrival{
				At:       time.UnixMilli(1_800_000_000_000 + int64(n)).UTC(),
				Decision: []idem.Decision{idem.DecisionReplayed, idem.DecisionMismatch}[n%2], Status: 200,
				Execution: idem.NewExecutionID(event.Workflow, key, [4]byte{1}), From: "203.0.113.7",
				TraceID: "0102030405060708090a0b0c0d0e0f10", Took: time.Duration(n) * time.Second,
			})
		}
		if c.arrivals == 0 {
			h.Labels = idem.Labels{{Name: "order", Value: "1042"}}
			h.Forgotten = &idem.Forgotten{Execution: "exec_a", Status: idem.Failed, Outcome: idem.Unknown, By: "ops",
				Reason: "why", At: time.UnixMilli(1).UTC()}
		} else {
			h.Newest[0].Would, h.Newest[0].Differs, h.Newest[0].Detail = idem.DecisionLocked,
				[]string{"body", "a query"}, "x509: unknown authority"
			h.First = h.Newest[len(h.Newest)-1]
		}
		b := EncodeHistory(&h)
		if got := DecodeHistory(b); !reflect.DeepEqual(got, &h) || len(b) > c.most {
			t.Errorf("%s: %d bytes\n%+v and not\n%+v", name, len(b), got, h)
		}
		var took []byte // as EncodeHistory ends it: what a release before neither writes nor reads
		for _, a := range append([]idem.Arrival{h.First}, h.Newest...) {
			if c.arrivals > 0 {
				took = binary.AppendVarint(took, a.Took.Milliseconds())
			}
		}
		before := bytes.TrimSuffix(b, took)
		got := DecodeHistory(before)
		for i := range h.Newest {
			h.Newest[i].Took, h.First.Took = 0, 0
		}
		if !reflect.DeepEqual(got, &h) {
			t.Errorf("%s of a release before: %+v and not\n%+v", name, got, h)
		}
		for n := range b {
			if got := DecodeHistory(b[:n]); got != nil && n != len(before) {
				t.Fatalf("%s: %d bytes of it: %+v", name, n, got)
			}
		}
	}
}
