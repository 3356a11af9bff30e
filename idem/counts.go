package idem

import (
	"math/bits"
	"time"
)

// CountKind is what is counted of a route.
type CountKind int

// The kinds. Succeeded, failed and errors are requests to the service: forwarded deliveries, and tries of parked events. The others but the dead
// letters are deliveries. Stored counts have these numbers, so a new kind is the last one.
const (
	CountDeliveries    CountKind = iota // all of them
	CountSucceeded                      // the service answered with a 2xx
	CountFailed                         // it answered with another status
	CountErrors                         // no whole answer came
	CountParked                         // accepted, to run later
	CountDuplicates                     // answered without running, because the event is settled or runs
	CountBusy                           // another event of the workflow ran
	CountBadSignatures                  // the signature was not valid
	CountRefused                        // refused for another reason
	CountDeadLetters                    // accepted events that were given up
	CountChanged                        // duplicates by their event ID that were another request than the first delivery

	CountKinds // how many there are
)

// Counts is a number for each kind.
type Counts [CountKinds]uint64

// Add adds more to c.
func (c *Counts) Add(more *Counts) {
	for kind, n := range more {
		c[kind] += n
	}
}

// tookBuckets is how many buckets Durations has: two for each doubling of the time, from a quarter of a millisecond to 17 minutes.
const (
	tookBuckets = 46
	tookFirst   = 250 * time.Microsecond
)

// Durations counts how long requests took, in buckets. Two neighbours differ by the factor √2.
type Durations [tookBuckets]uint64

// Note counts a request that took d.
func (h *Durations) Note(d time.Duration) { h[bucketOf(d)]++ }

func bucketOf(d time.Duration) int {
	if d < tookFirst {
		return 0
	}
	octave := bits.Len64(uint64(d/tookFirst)) - 1 //nolint:gosec // it is not negative
	bucket := 2*octave + 1
	if float64(d) >= float64(tookFirst<<octave)*sqrt2 {
		bucket++
	}
	return min(bucket, tookBuckets-1)
}

const sqrt2 = 1.4142135623730951

// limitOf returns where a bucket ends.
func limitOf(bucket int) float64 {
	limit := float64(tookFirst) * float64(uint64(1)<<(bucket/2))
	if bucket%2 == 1 {
		limit *= sqrt2
	}
	return limit
}

// Add adds more to h.
func (h *Durations) Add(more *Durations) {
	for bucket, n := range more {
		h[bucket] += n
	}
}

// Quantile estimates the time that the part q of the requests took no longer than; 0 = nothing was counted. It is less than √2 off.
func (h *Durations) Quantile(q float64) time.Duration {
	var all uint64
	for _, n := range h {
		all += n
	}
	if all == 0 {
		return 0
	}
	rank, below := q*float64(all), 0.0
	for bucket, n := range h {
		if n == 0 || below+float64(n) < rank {
			below += float64(n)
			continue
		}
		from := 0.0
		if bucket > 0 {
			from = limitOf(bucket - 1)
		}
		return time.Duration(from + (limitOf(bucket)-from)*(rank-below)/float64(n))
	}
	return time.Duration(limitOf(tookBuckets - 1))
}

// RouteCounts is what was counted of one route in some time.
type RouteCounts struct {
	Route  string
	Counts Counts
	Took   Durations // of requests to the service
	Last   time.Time // when the newest delivery ended; zero = none has arrived
}

// Add adds more of the same route.
func (c *RouteCounts) Add(more *RouteCounts) {
	c.Counts.Add(&more.Counts)
	c.Took.Add(&more.Took)
	if more.Last.After(c.Last) {
		c.Last = more.Last
	}
}

const (
	// MinuteRetention is how long counts by the minute are kept.
	MinuteRetention = 24 * time.Hour
	// HourRetention is how long counts by the hour are kept.
	HourRetention = 30 * 24 * time.Hour
	// MaxCountSteps bounds the steps of one answer.
	MaxCountSteps = 1440
)

// CountQuery asks for counts, over all replicas.
type CountQuery struct {
	// Since is rounded down to a whole Step, and is not longer ago than HourRetention.
	Since time.Time
	// Step is a whole number of minutes, or of hours where Since is longer ago than MinuteRetention.
	Step time.Duration
}

// CountHistory is what was counted from Since to Until.
type CountHistory struct {
	Since, Until time.Time
	Step         time.Duration
	Routes       []RouteHistory // by name
}

// RouteHistory is what was counted of one route.
type RouteHistory struct {
	RouteCounts
	Steps []CountStep // those with something, the oldest first
}

// CountStep is what was counted in one step of time.
type CountStep struct {
	At time.Time // its beginning
	Counts
}
