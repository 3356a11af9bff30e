package protocol

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"hooklock/idem"
)

// rowsFor are rows as a lease has them: a few workflows, and events with and without parts.
func rowsFor(n int) (rows []Row) {
	for i := range n {
		event := fmt.Sprintf("evt_%016x", rand.Uint64())
		switch i % 10 {
		case 3:
			event = fmt.Sprintf("Order/%d/%s", i, event)
		case 5:
			event = "größe/" + event
		case 7:
			event = ""
		case 9:
			event = strings.Repeat("a/", 20) + event
		}
		r := &idem.Record{ExecutionFacts: idem.ExecutionFacts{
			Scope: idem.Scope{Workflow: fmt.Sprintf("stripe/cus_%d", rand.IntN(n)),
				Key: idem.MakeKey(rand.Uint64(), [16]byte{byte(i)})}, EventID: event, Route: fmt.Sprint("r", i%3),
			TraceParent: idem.NewTrace().String(),
		}, End: idem.End{Status: idem.Success, Outcome: idem.Executed, FinishedAt: time.Unix(int64(i), 7)}}
		r.Execution = idem.NewExecutionID(r.Workflow, r.Key, [4]byte{byte(i), byte(i >> 8)})
		if i%20 == 0 {
			r.Earlier = []idem.Attempt{{Execution: "exec_before" + idem.ExecutionID(fmt.Sprint(i)),
				TraceParent: idem.NewTrace().String()}}
		}
		rows = append(rows, RowOf(r))
	}
	return rows
}

func (p Probe) in(t *testing.T, fields map[Field][]byte) (found []int) {
	t.Helper()
	if err := p.Search(fields[p.Field], func(row int) { found = append(found, row) }); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAnIndexFindsEachRowByAllThatItIsCalled(t *testing.T) {
	rows := rowsFor(1000)
	_, fields := EncodeLeaseIndex(rows)
	for i := range rows {
		r := &rows[i]
		probes := []Probe{ProbeWorkflow(r.Workflow), ProbeHash16(Hash16(r.Workflow)[:3]),
			ProbeHash16(Hash16(r.Workflow)), ProbeName(r.Workflow[:1+rand.IntN(len(r.Workflow))])}
		for _, trace := range r.Traces {
			probes = append(probes, ProbeTrace(idem.ParseTrace(trace).TraceID()))
		}
		for part := range strings.SplitSeq(r.EventID, "/") {
			if part != "" {
				probes = append(probes, ProbeEvent(part), ProbeEvent(strings.ToUpper(part[:1+rand.IntN(len(part))])))
			}
		}
		if r.EventID != "" {
			probes = append(probes, ProbeEvent(r.EventID))
		}
		for _, p := range probes {
			if !slices.Contains(p.in(t, fields), i) {
				t.Fatalf("%+v does not find %+v", p, r)
			}
		}
	}
}

func TestAnIndexFindsHardlyAnythingElse(t *testing.T) {
	var all int
	for range 20 {
		rows := slices.DeleteFunc(rowsFor(1000), func(r Row) bool {
			return strings.Count(r.EventID, "/") > maxParts || strings.Contains(r.EventID, "ö")
		})
		_, fields := EncodeLeaseIndex(rows)
		for _, p := range []Probe{ProbeWorkflow("nobody"), ProbeTrace(strings.Repeat("f", 32)),
			ProbeName("stripe/nobody"), ProbeEvent("evt_nothing"), ProbeEvent("nothing")} {
			all += len(p.in(t, fields))
		}
	}
	if all > 2 {
		t.Errorf("%d rows of 20,000 in five searches", all)
	}
}

func TestTheSizeOfAnIndexIsBounded(t *testing.T) {
	rows := rowsFor(1000)
	_, fields := EncodeLeaseIndex(rows)
	for field, most := range map[Field]int{FieldRows: 17, FieldWorkflow: 4, FieldTrace: 7, FieldNames: 9,
		FieldEvents: 11} {
		if got := len(fields[field]) / len(rows); got > most {
			t.Errorf("%s: %d B for each row, want %d", field, got, most)
		}
	}
}

func TestTheRowsOfAnIndexAreReadAsTheyWereWritten(t *testing.T) {
	rows := rowsFor(1000)
	index, fields := EncodeLeaseIndex(rows)
	got, err := index.DecodeRows(fields[FieldRows])
	if err != nil || len(got) != len(rows) || len(index.Classes) != 3 {
		t.Fatalf("%d rows, %d classes, %v", len(got), len(index.Classes), err)
	}
	for i := range rows {
		if r := got[i]; r.Name != rows[i].Name[:RowBytes] || r.At.Unix() != rows[i].At.Unix() ||
			*r.Class != rows[i].Class {
			t.Fatalf("%+v, want %+v", r, rows[i])
		}
	}
	if !index.From.Equal(rows[0].At) || !index.To.Equal(rows[999].At) {
		t.Errorf("from %v to %v", index.From, index.To)
	}
	for i := range rows {
		rows[i].Class.Route = fmt.Sprint(i)
	}
	if index, fields = EncodeLeaseIndex(rows); index.Classes != nil {
		t.Errorf("%d classes are told", len(index.Classes))
	}
	if got, err = index.DecodeRows(fields[FieldRows]); err != nil || got[7].Class != nil {
		t.Errorf("%+v %v", got[7], err)
	}
}

func FuzzWhatIsNoIndexIsRefusedAndReadNowhereElse(f *testing.F) {
	_, fields := EncodeLeaseIndex(rowsFor(10))
	for _, field := range fields {
		f.Add(field)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		index := &LeaseIndex{Version: rowsVersion, Classes: make([]Class, 3)}
		rows, err := index.DecodeRows(b)
		if err == nil && len(rows) > len(b) {
			t.Errorf("%d rows in %d bytes", len(rows), len(b))
		}
		for _, p := range []Probe{ProbeWorkflow("w"), ProbeName("w"), ProbeEvent("e"), ProbeTrace("t")} {
			_ = p.Search(b, func(int) {})
		}
	})
}
