package idem

import (
	"math/bits"
	"time"
)

// CountKind is what is counted of a route.
type CountKind int

// The kinds. Succeeded, failed and errors are requests to the service: forwarded deliveries, and
// tries of parked events. The others but the dead letters are deliveries. Stored counts have these
// numbers, so a new kind is the last one.
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
	// duplicates by their event ID that were another request than the first delivery
	CountChanged

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

// tookBuckets is how many buckets Durations has: two for each doubling of the time, from a quarter
// of a millisecond to 17 minutes.
const (
	tookBuckets = 46
	tookFirst   = 250 * time.Microsecond
)

// Durations counts how long requests took. The zero value has none.
type Durations struct {
	// Buckets count requests by their time. Two neighbours differ by the factor √2.
	Buckets [tookBuckets]uint64
	// Longest is the time of the slowest request; 0 = not known: an older release has counted it.
	Longest time.Duration
}

// Note counts a request that took d.
func (h *Durations) Note(d time.Duration) {
	h.Buckets[bucketOf(d)]++
	h.Longest = max(h.Longest, d)
}

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
	for bucket, n := range more.Buckets {
		h.Buckets[bucket] += n
	}
	h.Longest = max(h.Longest, more.Longest)
}

// Forget takes a request away that took d and was noted before. Longest stays.
func (h *Durations) Forget(d time.Duration) { h.Buckets[bucketOf(d)]-- }

// LimitLongest sets Longest, where it is not known, to what it is at most.
func (h *Durations) LimitLongest() {
	for bucket, n := range h.Buckets {
		if n > 0 && h.Longest < limitBefore(bucket) {
			h.Longest = time.Duration(limitOf(bucket))
		}
	}
}

// limitBefore returns where a bucket begins.
func limitBefore(bucket int) time.Duration {
	if bucket == 0 {
		return 0
	}
	return time.Duration(limitOf(bucket - 1))
}

// Quantile estimates the time that the part q of the requests took no longer than; 0 = nothing was
// counted. It is less than √2 off, and never more than Longest, if that is known.
func (h *Durations) Quantile(q float64) time.Duration {
	estimate := h.estimateQuantile(q)
	if h.Longest > 0 {
		estimate = min(estimate, h.Longest)
	}
	return estimate
}

func (h *Durations) estimateQuantile(q float64) time.Duration {
	var all uint64
	for _, n := range h.Buckets {
		all += n
	}
	if all == 0 {
		return 0
	}
	rank, below := q*float64(all), 0.0
	for bucket, n := range h.Buckets {
		if n == 0 || below+float64(n) < rank {
			below += float64(n)
			continue
		}
		from := float64(limitBefore(bucket))
		return time.Duration(from + (limitOf(bucket)-from)*(rank-below)/float64(n))
	}
	return time.Duration(limitOf(tookBuckets - 1))
}

// CountSet is a set of kinds.
type CountSet uint32

// CountSetOf returns the set of kinds.
func CountSetOf(kinds ...CountKind) (set CountSet) {
	for _, kind := range kinds {
		set |= 1 << kind
	}
	return set
}

// hasKind reports whether a kind is in the set.
func (s CountSet) hasKind(kind CountKind) bool { return s>>kind&1 == 1 }

// isOfACall reports whether a request to the service is counted.
func (s CountSet) isOfACall() bool {
	return s.hasKind(CountSucceeded) || s.hasKind(CountFailed) || s.hasKind(CountErrors)
}

// Counted is what one delivery, or one try of a parked event, adds to the counts of its route.
type Counted struct {
	Route string        // the name of the route
	Kinds CountSet      // of each, one is counted
	Took  time.Duration // of the request to the service, if Kinds has its result
	Last  time.Time     // when the delivery ended; zero = it is no delivery
}

// AddTo adds one to what was counted of its route.
func (one *Counted) AddTo(c *Counts, took *Durations) {
	for kind := range CountKinds {
		if one.Kinds.hasKind(kind) {
			c[kind]++
		}
	}
	if one.Kinds.isOfACall() {
		took.Note(one.Took)
	}
}

// SubtractFrom takes one away that was added before.
func (one *Counted) SubtractFrom(c *Counts, took *Durations) {
	for kind := range CountKinds {
		if one.Kinds.hasKind(kind) {
			c[kind]--
		}
	}
	if one.Kinds.isOfACall() {
		took.Forget(one.Took)
	}
}

// RouteCounts is what was counted of one route in some time.
type RouteCounts struct {
	Route  string    // the name of the route
	Counts Counts    // by kind
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
)

// CountQuery asks for counts, over all replicas.
type CountQuery struct {
	// Since is rounded down to a whole Step, and is not longer ago than HourRetention.
	Since time.Time
	// Step is a whole number of minutes, or of hours where Since is longer ago than
	// MinuteRetention.
	Step time.Duration
	// Until bounds it: minutes, or hours, count that begin before it. Zero means now.
	Until time.Time
	// Times: with Took of each step. It costs more than all the rest.
	Times bool
}

// CountHistory is what was counted from Since to Until.
type CountHistory struct {
	Since, Until time.Time      // both are whole steps
	Step         time.Duration  // the length of each CountStep
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
	// Took is how long requests to the service took. It is zero where CountQuery.Times did not ask
	// for it, and where an earlier release has counted.
	Took Durations
}
