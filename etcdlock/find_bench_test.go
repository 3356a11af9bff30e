package etcdlock

import (
	"fmt"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// BenchmarkFind is what a person waits for who looks for something among 1,000,000 records (100,000 with -short), each in a workflow of its own.
func BenchmarkFind(b *testing.B) {
	n := 1_000_000
	if testing.Short() {
		n = 100_000
	}
	e := etcdtest.Start(b)
	s := openStore(b, Options{Endpoints: []string{e.Endpoint}})
	began := time.Now()
	record := func(i int) *idem.Record {
		event := fmt.Sprintf("evt_%07d", i)
		l := lockFor(fmt.Sprintf("customer/%07d", i), event)
		l.Scope.Key = idem.MakeKey(idem.EventHalf(event), [16]byte{byte(i)})
		l.Execution = idem.NewExecutionID(l.Workflow, l.Key, [4]byte{})
		l.Holder, l.TraceParent, l.Retention = "host/1/session", idem.NewTrace().String(), 168*time.Hour
		return protocol.RecordOf(&l, success(`{"ok":true}`))
	}
	putRecords(b, e, s, n, record)
	b.Logf("%d records in %v", n, time.Since(began))
	middle := record(n / 2)
	page := func(b *testing.B, q idem.ExecutionQuery) idem.ExecutionPage {
		page, err := s.Executions(within(b, patience), q)
		if err != nil {
			b.Fatal(err)
		}
		return page
	}
	second := page(b, idem.ExecutionQuery{Limit: 50}).NextCursor
	for name, c := range map[string]struct {
		q    idem.ExecutionQuery
		want int
		all  bool // to the end of the search, and not the first page alone
	}{
		"the first page of 50":                {idem.ExecutionQuery{Limit: 50}, 50, false},
		"the second page of 50":               {idem.ExecutionQuery{Limit: 50, Cursor: second}, 50, false},
		"the first page of 50, with filters":  {idem.ExecutionQuery{Limit: 50, Since: began, Route: "r", Status: idem.Success, Outcome: idem.Executed, Prefix: "customer/"}, 50, false},
		"by event ID":                         {idem.ExecutionQuery{EventID: middle.EventID}, 1, true},
		"by the beginning of an execution ID": {idem.ExecutionQuery{Beginning: string(middle.Execution[:20])}, 1, true},
		"by workflow":                         {idem.ExecutionQuery{Workflow: middle.Workflow}, 1, true},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				found, q := 0, c.q
				for {
					p := page(b, q)
					found += len(p.Executions)
					if q.Cursor = p.NextCursor; !c.all || q.Cursor == "" {
						break
					}
				}
				if found != c.want {
					b.Fatalf("%d executions", found)
				}
			}
		})
	}
}
