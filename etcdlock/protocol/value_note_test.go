package protocol

import (
	"testing"
	"time"

	"hooklock/idem"
)

// Whatever is in etcd, a list goes on.
func FuzzWhatIsForPeople(f *testing.F) {
	h := idem.History{Scope: idem.Scope{Workflow: "w", Key: "k"}, Route: "r", EventID: "e"}
	h.Add(idem.Arrival{At: time.Unix(0, 0).UTC(), Decision: idem.DecisionLocked, Status: 409, Differs: []string{"body"}})
	f.Add(EncodeHistory(&h))
	f.Add(EncodeLease(ListedLease{Chain: "c", At: time.Unix(0, 0), Open: 1}))
	f.Add(EncodeAudit(&idem.Audit{At: time.Unix(0, 0).UTC(), Who: "ops", What: "execution.cancel", Result: "done"}))
	f.Add([]byte(`{"v":1,"newest":[{}]}`))
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
		if l, ok := DecodeLease(b); ok && l.Version != leaseVersion {
			t.Fatalf("%+v", l)
		}
	})
}
