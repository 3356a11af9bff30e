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
	c.history(h)
	return c.data
}

// DecodeHistory returns nil for a value that this release cannot read: histories are for operators
// only.
func DecodeHistory(b []byte) *idem.History {
	c, h := reader("arrivals", b, historyVersion), &idem.History{}
	if c.history(h); c.err != nil || h.Empty() || h.Counts != nil && len(h.Newest) == 0 {
		return nil
	}
	return h
}

func (c *codec) history(h *idem.History) {
	arrived, forgotten, labelled, lost := h.Counts != nil, h.Forgotten != nil, len(h.Labels) > 0, !h.Lost.IsZero()
	explained := len(h.Newest) > 0 && h.Newest[0].Detail != ""
	c.flags(&h.PerEvent, &arrived, &forgotten, &labelled, &lost, &explained)
	c.text(&h.Workflow)
	textOf(c, &h.Key)
	c.text(&h.Route)
	c.text(&h.EventID)
	if labelled {
		c.labels(&h.Labels)
	}
	if forgotten {
		c.json(&h.Forgotten)
	}
	if lost {
		c.micros(&h.Lost, epoch)
	}
	if arrived {
		c.arrivals(h, explained)
	}
}

func (c *codec) arrivals(h *idem.History, explained bool) {
	counts, all := map[idem.Decision]int64{}, int64(0)
	for _, decision := range each(c, slices.Sorted(maps.Keys(h.Counts))) {
		n := h.Counts[decision]
		textOf(c, &decision)
		c.number(&n)
		counts[decision] = n
		all += n
	}
	h.Counts, h.Newest = counts, each(c, h.Newest)
	for i := range h.Newest {
		c.arrival(&h.Newest[i])
	}
	if explained && len(h.Newest) > 0 {
		c.text(&h.Newest[0].Detail)
	}
	if n := len(h.Newest); n > 0 && int64(n) == all {
		h.First = h.Newest[n-1]
	} else {
		c.arrival(&h.First)
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
		c.text(&a.EventID)
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
		c.number(&ms)
		a.Took = time.Duration(ms) * time.Millisecond
	}
	one(&h.First)
	for i := range h.Newest {
		one(&h.Newest[i])
	}
}

func (c *codec) arrival(a *idem.Arrival) {
	c.micros(&a.At, epoch)
	textOf(c, &a.Decision)
	textOf(c, &a.Would)
	c.int(&a.Status)
	textOf(c, &a.Execution)
	c.text(&a.From)
	c.text(&a.TraceID)
	a.Differs = each(c, a.Differs)
	for i := range a.Differs {
		c.text(&a.Differs[i])
	}
}
