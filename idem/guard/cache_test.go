package guard

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"time"

	"hooklock/idem"
)

func cached(i int) *idem.Record {
	key := idem.Key(fmt.Sprintf("%016x-%032x", i+1, i+1))
	return &idem.Record{
		ExecutionFacts: idem.ExecutionFacts{Execution: idem.NewExecutionID("w", key, [4]byte{1}),
			Scope: idem.Scope{Workflow: "w", Key: key}},
		End: idem.End{Remembered: true, Outcome: idem.Executed,
			Answer: &idem.Answer{Status: 200, Whole: true, Body: []byte("answer")}},
	}
}

// cachedSize is what one of them weighs.
const cachedSize = rememberedSize + blockSize

func TestCacheForgetsWhatIsForgotten(t *testing.T) {
	c := NewCache(0)
	rec := cached(1)
	c.add(rec, c.beginRead(noon), time.Hour)
	if got := c.get(rec.Scope.Key, noon); got == nil || got.Execution != rec.Execution ||
		!reflect.DeepEqual(got.Answer, rec.Answer) || !got.Settled() {
		t.Fatal("not found")
	}
	c.Forget(rec.Execution)
	if c.get(rec.Scope.Key, noon) != nil {
		t.Error("still there")
	}
}

func TestRecordThatWasReadBeforeAForgetDoesNotComeInAfterIt(t *testing.T) {
	c := NewCache(0)
	rec := cached(1)
	for name, forget := range map[string]func(){"forget": func() { c.Forget(rec.Execution) }, "reset": c.Reset} {
		seenAt := c.beginRead(noon)
		forget()
		c.add(rec, seenAt, time.Hour)
		if c.get(rec.Scope.Key, noon) != nil {
			t.Errorf("%s: came in after it", name)
		}
	}
}

func TestForgettingAnotherExecutionOfTheKeyKeepsTheRecord(t *testing.T) {
	c := NewCache(0)
	rec := cached(1)
	c.add(rec, c.beginRead(noon), time.Hour)
	c.Forget(idem.NewExecutionID("w", rec.Scope.Key, [4]byte{2}))
	if c.get(rec.Scope.Key, noon) == nil {
		t.Error("dropped")
	}
}

func TestForgedHalfOfAKeyFindsNothing(t *testing.T) {
	c := NewCache(0)
	rec := cached(1)
	c.add(rec, c.beginRead(noon), time.Hour)
	if c.get(rec.Scope.Key[:17]+idem.Key(fmt.Sprintf("%032x", 99)), noon) != nil {
		t.Error("found a record of another key with the same XXH64")
	}
}

func TestCacheDropsExpiredAndOldestRecords(t *testing.T) {
	c := NewCache(3 * cachedSize)
	for i := range 4 {
		c.add(cached(i), c.beginRead(noon), time.Hour)
		c.get(cached(0).Scope.Key, noon) // the first one stays in use
	}
	for i, want := range []bool{true, false, true, true} {
		if got := c.get(cached(i).Scope.Key, noon) != nil; got != want {
			t.Errorf("record %d there: %v, want %v", i, got, want)
		}
	}
	if c.get(cached(0).Scope.Key, later) != nil {
		t.Error("expired record answers")
	}
	if c.bytes != 2*cachedSize || len(c.byHalf) != 2 {
		t.Errorf("%d bytes, %d entries", c.bytes, len(c.byHalf))
	}
}

func TestCacheKnowsTheTraceOfAnExecution(t *testing.T) {
	for _, trace := range []string{
		"", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
	} {
		c := NewCache(0)
		rec := cached(1)
		rec.TraceParent = trace
		c.add(rec, c.beginRead(noon), time.Hour)
		if got := c.get(rec.Scope.Key, noon).TraceParent; got != trace {
			t.Errorf("%q, want %q", got, trace)
		}
	}
	c := NewCache(0)
	rec := cached(1)
	rec.TraceParent = "no trace"
	c.add(rec, c.beginRead(noon), time.Hour)
	if got := c.get(rec.Scope.Key, noon).TraceParent; got != "" {
		t.Errorf("%q", got)
	}
}

func BenchmarkCacheMemory(b *testing.B) {
	const n = 100_000
	c := NewCache(1 << 30)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range n {
		c.add(cached(i), c.beginRead(noon), time.Hour)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	key := cached(1).Scope.Key
	for b.Loop() {
		c.get(key, noon)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/record")
}

// TestEventsThatAreCalledTheSameInTwoWorkflowsAreBothRemembered: the short half of a key is the
// event ID's alone.
func TestEventsThatAreCalledTheSameInTwoWorkflowsAreBothRemembered(t *testing.T) {
	c := NewCache(0)
	var all []*idem.Record
	for i, workflow := range []string{"a", "b", "c"} {
		key := idem.MakeKey(idem.HashEventID("1"), [16]byte{15: byte(i)})
		rec := &idem.Record{
			ExecutionFacts: idem.ExecutionFacts{Execution: idem.NewExecutionID(workflow, key, [4]byte{byte(i)}),
				Scope: idem.Scope{Workflow: workflow, Key: key}},
			End: idem.End{Status: idem.Success, Outcome: idem.Executed, Remembered: true,
				Answer: &idem.Answer{Status: 200}},
		}
		c.add(rec, c.beginRead(noon), time.Hour)
		all = append(all, rec)
	}
	for _, rec := range all {
		if got := c.get(rec.Scope.Key, noon); got == nil || got.Execution != rec.Execution {
			t.Errorf("%s is not remembered: %+v", rec.Execution, got)
		}
	}
	c.Forget(all[1].Execution)
	for i, rec := range all {
		if there := c.get(rec.Scope.Key, noon) != nil; there != (i != 1) {
			t.Errorf("after the second was forgotten, %d is remembered: %v", i, there)
		}
	}
}
