package idem

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAQuantileIsLessThanTheRootOfTwoOff(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		took := rapid.SliceOfN(rapid.Int64Range(int64(tookFirst), int64(15*time.Minute)), 1, 40).Draw(rt, "took")
		var h Durations
		for _, d := range took {
			h.Note(time.Duration(d))
		}
		for _, q := range []float64{0.5, 0.95, 1} {
			got, below, upTo := float64(h.Quantile(q)), 0, 0
			for _, d := range took {
				if float64(d) < got/sqrt2 {
					below++
				}
				if float64(d) < got*sqrt2*1.000001 {
					upTo++
				}
			}
			if rank := q * float64(len(took)); float64(below) > rank || float64(upTo) < rank-0.000001 {
				rt.Fatalf("%v of %v: %v", q, took, h.Quantile(q))
			}
		}
	})
}

func TestAQuantileOfNothingIsZero(t *testing.T) {
	var h Durations
	if d := h.Quantile(0.5); d != 0 {
		t.Error(d)
	}
	h.Note(0)
	h.Note(24 * time.Hour)
	if d := h.Quantile(1); d < 15*time.Minute {
		t.Errorf("what took longer than all buckets: %v", d)
	}
}

func TestAQuantileIsNeverAboveTheLongest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var h, more Durations
		var longest time.Duration
		for i, d := range rapid.SliceOfN(rapid.Int64Range(1, int64(time.Hour)), 1, 50).Draw(rt, "took") {
			longest = max(longest, time.Duration(d))
			if i%2 == 0 {
				h.Note(time.Duration(d))
			} else {
				more.Note(time.Duration(d))
			}
		}
		h.Add(&more)
		for _, q := range []float64{0.5, 0.95, 1} {
			if got := h.Quantile(q); got > longest {
				rt.Fatalf("%v of what took %v at most: %v", q, longest, got)
			}
		}
	})
}
