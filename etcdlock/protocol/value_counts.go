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
	c.chunk(chunk)
	c.longest(chunk)
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
	c, chunk := reader("counts", b, countsVersion), &CountChunk{Routes: map[string]*CountedRoute{}}
	c.chunk(chunk)
	if len(c.data) > 0 {
		c.longest(chunk)
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
		for _, step := range each(c, slices.Sorted(maps.Keys(r.StepTook))) {
			if c.int(&step); r.StepTook == nil {
				r.StepTook = map[int]*idem.Durations{}
			}
			took := r.StepTook[step]
			if took == nil {
				took = new(idem.Durations)
				r.StepTook[step] = took
			}
			c.sparse(took.Buckets[:])
			if c.duration(&took.Longest); c.err != nil {
				return
			}
		}
	}
}

// longest codes the longest times of the routes, in their order. They are behind the rest, where
// earlier releases read nothing.
func (c *codec) longest(chunk *CountChunk) {
	for _, name := range slices.Sorted(maps.Keys(chunk.Routes)) {
		c.duration(&chunk.Routes[name].Took.Longest)
	}
}

func (c *codec) chunk(chunk *CountChunk) {
	c.time(&chunk.At, epoch)
	for _, name := range each(c, slices.Sorted(maps.Keys(chunk.Routes))) {
		c.text(&name)
		r := chunk.Routes[name]
		if r == nil {
			r = &CountedRoute{Steps: map[int]*idem.Counts{}}
			chunk.Routes[name] = r
		}
		c.route(r, chunk.At)
		if c.err != nil {
			return
		}
	}
}

func (c *codec) route(r *CountedRoute, base time.Time) {
	some := !r.Last.IsZero()
	if c.flags(&some); some {
		c.time(&r.Last, base)
	}
	c.sparse(r.Took.Buckets[:])
	for _, step := range each(c, slices.Sorted(maps.Keys(r.Steps))) {
		c.int(&step)
		counts := r.Steps[step]
		if counts == nil {
			counts = new(idem.Counts)
			r.Steps[step] = counts
		}
		if c.sparse(counts[:]); c.err != nil {
			return
		}
	}
}

// sparse codes numbers of which most are zero.
func (c *codec) sparse(numbers []uint64) {
	var set []int
	for i, n := range numbers {
		if n != 0 {
			set = append(set, i)
		}
	}
	for _, i := range each(c, set) {
		if c.int(&i); i < 0 || i >= len(numbers) {
			c.fail(errors.New("a count is not known"))
			return
		}
		c.uint(&numbers[i])
	}
}

// each returns what a loop writes, or as many zero values as it has to read.
func each[T any](c *codec, all []T) []T {
	n := uint64(len(all))
	if c.uint(&n); !c.reads {
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
