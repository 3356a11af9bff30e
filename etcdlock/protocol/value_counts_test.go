package protocol

import (
	"bytes"
	"fmt"
	"reflect"
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
		read, err := DecodeCounts(b)
		if err != nil || !reflect.DeepEqual(read, chunk) {
			rt.Fatalf("%+v, want %+v: %v", read, chunk, err)
		}
		older := &codec{b: []byte{countsVersion}}
		older.chunk(chunk)
		if cut := rapid.IntRange(0, len(b)-1).Draw(rt, "cut"); cut != len(older.b) {
			if _, err := DecodeCounts(b[:cut]); err == nil {
				rt.Fatal("a part was read")
			}
		}
		if _, err := DecodeCounts(append(bytes.Repeat([]byte{countsVersion + 1}, 1), b[1:]...)); err == nil {
			rt.Fatal("a newer version was read")
		}
	})
}

// Releases before wrote no longest times, and read nothing behind the counts.
func TestCountsWithoutLongestTimesAreRead(t *testing.T) {
	chunk := &CountChunk{At: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC),
		Routes: map[string]*CountedRoute{"stripe": {Steps: map[int]*idem.Counts{}}}}
	chunk.Routes["stripe"].Took.Note(time.Second)
	older := &codec{b: []byte{countsVersion}}
	older.chunk(chunk)
	if !bytes.HasPrefix(EncodeCounts(chunk), older.b) {
		t.Error("an earlier release could not read it")
	}
	read, err := DecodeCounts(older.b)
	if err != nil {
		t.Fatal(err)
	}
	if p := read.Routes["stripe"].Took.Quantile(1); p < time.Second || p > 1500*time.Millisecond {
		t.Errorf("the longest of one second is %v", p)
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
