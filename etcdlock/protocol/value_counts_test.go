package protocol

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hooklock/idem"
)

func TestCountsAreReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		chunk := &CountChunk{At: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC), Routes: map[string]*CountedRoute{}}
		for _, name := range rapid.SliceOfDistinct(rapid.String(), rapid.ID).Draw(rt, "routes") {
			r := &CountedRoute{Steps: map[int]*idem.Counts{}}
			if rapid.Bool().Draw(rt, "last") {
				r.Last = chunk.At.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(rt, "after")))
			}
			r.Took.Note(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(rt, "took")))
			for _, step := range rapid.SliceOfNDistinct(rapid.IntRange(0, 59), 0, 60, rapid.ID).Draw(rt, "steps") {
				r.Steps[step] = &idem.Counts{idem.CountDeliveries: rapid.Uint64().Draw(rt, "n"),
					idem.CountDeadLetters: 1}
			}
			chunk.Routes[name] = r
		}
		b := EncodeCounts(chunk)
		read, err := DecodeCounts(b, true)
		if err != nil || !reflect.DeepEqual(read, chunk) {
			rt.Fatalf("%+v, want %+v: %v", read, chunk, err)
		}
		older := &codec{data: []byte{countsVersion}}
		older.codeChunk(chunk)
		whole := []int{len(older.data)} // as earlier releases write it
		older.codeLongest(chunk)
		whole = append(whole, len(older.data))
		if cut := rapid.IntRange(0, len(b)-1).Draw(rt, "cut"); !slices.Contains(whole, cut) {
			if _, err := DecodeCounts(b[:cut], true); err == nil {
				rt.Fatal("a part was read")
			}
		}
		if short, err := DecodeCounts(b, false); err != nil || !reflect.DeepEqual(withoutSteps(chunk), short) {
			rt.Fatalf("without steps: %+v: %v", short, err)
		}
		if _, err := DecodeCounts(append(bytes.Repeat([]byte{countsVersion + 1}, 1), b[1:]...), true); err == nil {
			rt.Fatal("a newer version was read")
		}
	})
}

// withoutSteps returns what an earlier release, and a reader that does not ask for it, sees of a
// chunk.
func withoutSteps(chunk *CountChunk) *CountChunk {
	short := &CountChunk{At: chunk.At, Routes: map[string]*CountedRoute{}}
	for name, r := range chunk.Routes {
		one := *r
		one.StepTook = nil
		short.Routes[name] = &one
	}
	return short
}

// Releases before wrote no longest times, and read nothing behind the counts.
func TestCountsWithoutLongestTimesAreRead(t *testing.T) {
	chunk := &CountChunk{At: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC),
		Routes: map[string]*CountedRoute{"stripe": {Steps: map[int]*idem.Counts{}}}}
	chunk.Routes["stripe"].Took.Note(time.Second)
	older := &codec{data: []byte{countsVersion}}
	older.codeChunk(chunk)
	if !bytes.HasPrefix(EncodeCounts(chunk), older.data) {
		t.Error("an earlier release could not read it")
	}
	read, err := DecodeCounts(older.data, true)
	if err != nil {
		t.Fatal(err)
	}
	if p := read.Routes["stripe"].Took.Quantile(1); p < time.Second || p > 1500*time.Millisecond {
		t.Errorf("the longest of one second is %v", p)
	}
}

// A busy hour of a route, whose requests spread over a factor of ten in time, is kept for a day,
// and a day of it for 30.
func TestTheTimesOfEachMinuteTakeFewBytes(t *testing.T) {
	chunk := &CountChunk{At: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC), Routes: map[string]*CountedRoute{}}
	r := &CountedRoute{Last: chunk.At.Add(time.Hour), Steps: map[int]*idem.Counts{},
		StepTook: map[int]*idem.Durations{}}
	chunk.Routes["stripe"] = r
	for minute := range 60 {
		r.Steps[minute] = &idem.Counts{idem.CountDeliveries: 1000, idem.CountSucceeded: 1000}
		r.StepTook[minute] = new(idem.Durations)
		for n := range 1000 {
			r.StepTook[minute].Note(30*time.Millisecond + time.Duration(n)*271*time.Microsecond)
		}
		r.Took.Add(r.StepTook[minute])
	}
	with, without := len(EncodeCounts(chunk)), len(EncodeCounts(withoutSteps(chunk)))
	if t.Logf("%d bytes, %d without", with, without); with-without > 60*40 {
		t.Errorf("the times take %d bytes", with-without)
	}
}

// BenchmarkCountsOfAnHour codes what is written once a minute.
func BenchmarkCountsOfAnHour(b *testing.B) {
	chunk := &CountChunk{At: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC), Routes: map[string]*CountedRoute{}}
	for route := range 6 {
		r := &CountedRoute{Steps: map[int]*idem.Counts{}, StepTook: map[int]*idem.Durations{}}
		chunk.Routes[fmt.Sprint("route", route)] = r
		for minute := range 60 {
			r.Steps[minute], r.StepTook[minute] = &idem.Counts{idem.CountDeliveries: 1000, idem.CountSucceeded: 1000},
				new(idem.Durations)
			for n := range 1000 {
				r.StepTook[minute].Note(30*time.Millisecond + time.Duration(n)*271*time.Microsecond)
			}
		}
	}
	value := EncodeCounts(chunk)
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			EncodeCounts(chunk)
		}
	})
	for name, steps := range map[string]bool{"read": true, "read without times": false} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeCounts(value, steps); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestAnHourOfCountsTakesFewBytes: it is written once a minute.
func TestAnHourOfCountsTakesFewBytes(t *testing.T) {
	chunk := &CountChunk{At: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC), Routes: map[string]*CountedRoute{}}
	for route := range 100 {
		r := &CountedRoute{Last: chunk.At.Add(time.Hour), Steps: map[int]*idem.Counts{}}
		for bucket := range r.Took.Buckets {
			r.Took.Buckets[bucket] = 100_000
		}
		for minute := range 60 {
			r.Steps[minute] = new(idem.Counts)
			for kind := range r.Steps[minute] {
				r.Steps[minute][kind] = 10_000 // of each kind
			}
		}
		chunk.Routes[fmt.Sprintf("a route with a name %d", route)] = r
	}
	if b := EncodeCounts(chunk); len(b) > 256<<10 {
		t.Errorf("%d bytes", len(b))
	}
}
