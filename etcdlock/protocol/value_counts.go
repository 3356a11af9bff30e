package protocol

import (
	"errors"
	"maps"
	"slices"
	"time"

	"hooklock/idem"
)

const countsVersion = 2

// CountChunk is what one process has counted in one span of time.
type CountChunk struct {
	At     time.Time                // its beginning
	Routes map[string]*CountedRoute // by name
}

// CountedRoute is one route in a CountChunk.
type CountedRoute struct {
	Last  time.Time            // when the newest delivery ended; zero = none has
	Took  idem.Durations       // how long requests to the service took
	Steps map[int]*idem.Counts // by the number of the step; nil where there was nothing
	// StepTook is Took by the number of the step; nil of a chunk of one step, or of an older
	// release.
	StepTook map[int]*idem.Durations
}

// EncodeCounts encodes a chunk: zeros take no byte.
func EncodeCounts(chunk *CountChunk) []byte {
	c := &codec{data: []byte{countsVersion}}
	c.codeChunk(chunk)
	c.codeLongest(chunk)
	for _, r := range chunk.Routes {
		if len(r.StepTook) > 0 {
			c.stepTook(chunk)
			break
		}
	}
	return c.data
}

// DecodeCounts reads a chunk. steps: with StepTook, which takes most of the time and memory.
func DecodeCounts(b []byte, steps bool) (*CountChunk, error) {
	c, chunk := newReader("counts", b, countsVersion), &CountChunk{Routes: map[string]*CountedRoute{}}
	c.codeChunk(chunk)
	if len(c.data) > 0 {
		c.codeLongest(chunk)
	}
	if len(c.data) > 0 && steps {
		c.stepTook(chunk)
	}
	if c.err != nil {
		return nil, c.err
	}
	for _, r := range chunk.Routes {
		r.Took.LimitLongest()
	}
	return chunk, nil
}

// stepTook codes how long requests took in each step, by route in their order. It is behind the
// rest, where earlier releases read nothing.
func (c *codec) stepTook(chunk *CountChunk) {
	for _, name := range slices.Sorted(maps.Keys(chunk.Routes)) {
		r := chunk.Routes[name]
		for _, step := range codeEach(c, slices.Sorted(maps.Keys(r.StepTook))) {
			if c.codeInt(&step); r.StepTook == nil {
				r.StepTook = map[int]*idem.Durations{}
			}
			took := r.StepTook[step]
			if took == nil {
				took = new(idem.Durations)
				r.StepTook[step] = took
			}
			c.codeSparse(took.Buckets[:])
			if c.codeDuration(&took.Longest); c.err != nil {
				return
			}
		}
	}
}

// codeLongest codes the longest times of the routes, in their order. They are behind the rest,
// where earlier releases read nothing.
func (c *codec) codeLongest(chunk *CountChunk) {
	for _, name := range slices.Sorted(maps.Keys(chunk.Routes)) {
		c.codeDuration(&chunk.Routes[name].Took.Longest)
	}
}

func (c *codec) codeChunk(chunk *CountChunk) {
	c.codeTime(&chunk.At, epoch)
	for _, name := range codeEach(c, slices.Sorted(maps.Keys(chunk.Routes))) {
		c.codeText(&name)
		r := chunk.Routes[name]
		if r == nil {
			r = &CountedRoute{Steps: map[int]*idem.Counts{}}
			chunk.Routes[name] = r
		}
		c.codeRoute(r, chunk.At)
		if c.err != nil {
			return
		}
	}
}

func (c *codec) codeRoute(r *CountedRoute, base time.Time) {
	some := !r.Last.IsZero()
	if c.codeFlags(&some); some {
		c.codeTime(&r.Last, base)
	}
	c.codeSparse(r.Took.Buckets[:])
	for _, step := range codeEach(c, slices.Sorted(maps.Keys(r.Steps))) {
		c.codeInt(&step)
		counts := r.Steps[step]
		if counts == nil {
			counts = new(idem.Counts)
			r.Steps[step] = counts
		}
		if c.codeSparse(counts[:]); c.err != nil {
			return
		}
	}
}

// codeSparse codes numbers of which most are zero.
func (c *codec) codeSparse(numbers []uint64) {
	var set []int
	for i, n := range numbers {
		if n != 0 {
			set = append(set, i)
		}
	}
	for _, i := range codeEach(c, set) {
		if c.codeInt(&i); i < 0 || i >= len(numbers) {
			c.fail(errors.New("a count is not known"))
			return
		}
		c.codeUint(&numbers[i])
	}
}

// codeEach returns what a loop writes, or as many zero values as it has to read.
func codeEach[T any](c *codec, all []T) []T {
	n := uint64(len(all))
	if c.codeUint(&n); !c.reads {
		return all
	}
	if n > uint64(len(c.data)) { // each takes a byte at least
		c.fail(errShort)
		n = 0
	}
	if n == 0 {
		return nil
	}
	return make([]T, n)
}
