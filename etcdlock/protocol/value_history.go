package protocol

import (
	"maps"
	"slices"
	"time"

	"hooklock/idem"
)

const historyVersion = 2

// EncodeHistory encodes how an event arrived at one process.
func EncodeHistory(h *idem.History) []byte {
	c := &codec{data: []byte{historyVersion}}
	c.codeHistory(h)
	return c.data
}

// DecodeHistory returns nil for a value that this release cannot read: histories are for operators
// only.
func DecodeHistory(b []byte) *idem.History {
	c, h := newReader("arrivals", b, historyVersion), &idem.History{}
	if c.codeHistory(h); c.err != nil || h.Empty() || h.Counts != nil && len(h.Newest) == 0 {
		return nil
	}
	return h
}

func (c *codec) codeHistory(h *idem.History) {
	arrived, forgotten, labelled, lost := h.Counts != nil, h.Forgotten != nil, len(h.Labels) > 0, !h.Lost.IsZero()
	explained := len(h.Newest) > 0 && h.Newest[0].Detail != ""
	c.codeFlags(&h.PerEvent, &arrived, &forgotten, &labelled, &lost, &explained)
	c.codeText(&h.Workflow)
	codeTextOf(c, &h.Key)
	c.codeText(&h.Route)
	c.codeText(&h.EventID)
	if labelled {
		c.codeLabels(&h.Labels)
	}
	if forgotten {
		c.codeJSON(&h.Forgotten)
	}
	if lost {
		c.codeMicros(&h.Lost, epoch)
	}
	if arrived {
		c.codeArrivals(h, explained)
	}
}

func (c *codec) codeArrivals(h *idem.History, explained bool) {
	counts, all := map[idem.Decision]int64{}, int64(0)
	for _, decision := range codeEach(c, slices.Sorted(maps.Keys(h.Counts))) {
		n := h.Counts[decision]
		codeTextOf(c, &decision)
		c.codeNumber(&n)
		counts[decision] = n
		all += n
	}
	h.Counts, h.Newest = counts, codeEach(c, h.Newest)
	for i := range h.Newest {
		c.codeArrival(&h.Newest[i])
	}
	if explained && len(h.Newest) > 0 {
		c.codeText(&h.Newest[0].Detail)
	}
	if n := len(h.Newest); n > 0 && int64(n) == all {
		h.First = h.Newest[n-1]
	} else {
		c.codeArrival(&h.First)
	}
	c.codeDurations(h)
	c.codeTwins(h)
}

// codeTwins codes the event IDs of arrivals that came with another one than their event's, behind
// the durations: a release before does not read on there.
func (c *codec) codeTwins(h *idem.History) {
	of := []*idem.Arrival{&h.First}
	for i := range h.Newest {
		of = append(of, &h.Newest[i])
	}
	if c.reads && len(c.data) == 0 || !c.reads && !slices.ContainsFunc(of, func(a *idem.Arrival) bool {
		return a.EventID != ""
	}) {
		return
	}
	for _, a := range of {
		c.codeText(&a.EventID)
	}
}

// codeDurations codes how long the deliveries took, behind all else: a release before ends its
// reading there, and what it has written ends there, too.
func (c *codec) codeDurations(h *idem.History) {
	if c.reads && len(c.data) == 0 {
		return
	}
	one := func(a *idem.Arrival) {
		ms := a.Took.Milliseconds()
		c.codeNumber(&ms)
		a.Took = time.Duration(ms) * time.Millisecond
	}
	one(&h.First)
	for i := range h.Newest {
		one(&h.Newest[i])
	}
}

func (c *codec) codeArrival(a *idem.Arrival) {
	c.codeMicros(&a.At, epoch)
	codeTextOf(c, &a.Decision)
	codeTextOf(c, &a.Would)
	c.codeInt(&a.Status)
	codeTextOf(c, &a.Execution)
	c.codeText(&a.From)
	c.codeText(&a.TraceID)
	a.Differs = codeEach(c, a.Differs)
	for i := range a.Differs {
		c.codeText(&a.Differs[i])
	}
}
