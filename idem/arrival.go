package idem

import (
	"slices"
	"time"
)

// Arrival is one delivery of an event with another decision than executed: it was refused, answered
// as a copy, parked, forwarded without a lock, or broke off.
type Arrival struct {
	At time.Time `json:"at"` // when it was received
	// Took is how long its sender waited for the response, in whole milliseconds; 0 = that is not
	// known.
	Took     time.Duration `json:"took,omitzero"`
	Decision Decision      `json:"decision"`
	// Would is the decision that a delivery would have got if it had not been forwarded all the
	// same.
	Would  Decision `json:"would,omitempty"`
	Status int      `json:"status"` // the status sent in response
	// the execution that stood in the way or gave the answer, or the delivery's own
	Execution ExecutionID `json:"executionId,omitempty"`
	// the event ID that it came with, if it was taken for the event because of its body (twins:
	// same_event); "" = that of the event
	EventID string `json:"eventId,omitempty"`
	From    string `json:"from,omitempty"` // the client's IP address
	// of a mismatch: what differs from the first delivery of the event
	Differs []string `json:"differs,omitempty"`
	TraceID string   `json:"traceId,omitempty"`
	// Detail is the error of the call or of etcd, where that was the reason; of the newest arrival
	// of a History alone, and at most 160 bytes.
	Detail string `json:"detail,omitempty"`
	// Labels are those of its event; its History has them.
	Labels Labels `json:"-"`
}

// MaxArrivals bounds the newest arrivals of an event that are kept.
const MaxArrivals = 16

// History is how an event arrived, but for the deliveries that were executed.
type History struct {
	Scope
	Route   string             `json:"route"`             // of the newest arrival
	EventID string             `json:"eventId,omitempty"` // the sender's; "" = the payload is the event
	Labels  Labels             `json:"labels,omitempty"`  // of the newest arrival that has some
	Counts  map[Decision]int64 `json:"counts"`            // arrivals by their decision; nil = none
	First   Arrival            `json:"first"`             // the oldest arrival
	Newest  []Arrival          `json:"newest"`            // the newest first, at most MaxArrivals
	// Forgotten is the latest execution of the event whose record a person removed, so that it runs
	// again; nil = none.
	Forgotten *Forgotten `json:"forgotten,omitempty"`
	// Lost is when the event was found to be possibly lost: its newest delivery before that was
	// refused, and it did not come again in time. Zero = it was not.
	Lost time.Time `json:"lost,omitzero"`
}

// Forgotten is an execution whose record was removed, and how that execution had ended.
type Forgotten struct {
	Execution ExecutionID `json:"executionId"` // the one whose record is gone
	Status    Status      `json:"status"`      // that it had ended with
	Outcome   Outcome     `json:"outcome"`     // that it had ended with
	By        string      `json:"by"`          // the name of the token that removed the record
	Reason    string      `json:"reason"`      // as the owner of the token wrote it
	At        time.Time   `json:"at"`          // when the record was removed
}

// Empty reports whether h holds nothing: neither counts nor a forgotten execution, and not that the
// event is possibly lost.
func (h *History) Empty() bool { return h.Counts == nil && h.Forgotten == nil && h.Lost.IsZero() }

// Add notes one more arrival, which is the newest.
func (h *History) Add(a Arrival) {
	a.Detail = clipDetail(a.Detail)
	if h.Counts == nil {
		h.Counts, h.First = map[Decision]int64{}, a
	}
	if len(a.Labels) > 0 {
		h.Labels, a.Labels = a.Labels, nil
	}
	h.Counts[a.Decision]++
	h.Newest = slices.Insert(h.Newest, 0, a)
	h.trimArrivals()
}

// trimArrivals drops what is too much of older arrivals.
func (h *History) trimArrivals() {
	h.Newest = h.Newest[:min(len(h.Newest), MaxArrivals)]
	for i := range h.Newest {
		if i > 0 {
			h.Newest[i].Detail, h.First.Detail = "", ""
		}
	}
}

// Merge adds the history of the same event that another process has.
func (h *History) Merge(other *History) {
	if other.Forgotten != nil && (h.Forgotten == nil || other.Forgotten.At.After(h.Forgotten.At)) {
		h.Forgotten = other.Forgotten
	}
	if other.Lost.After(h.Lost) {
		h.Lost = other.Lost
	}
	h.Scope, h.Route, h.EventID = other.Scope, other.Route, other.EventID
	if len(other.Labels) > 0 {
		h.Labels = other.Labels
	}
	if other.Counts == nil {
		return
	}
	if h.Counts == nil || other.First.At.Before(h.First.At) {
		h.First = other.First
	}
	counts := map[Decision]int64{}
	for _, c := range []map[Decision]int64{h.Counts, other.Counts} {
		for decision, n := range c {
			counts[decision] += n
		}
	}
	h.Counts = counts
	h.Newest = slices.Concat(h.Newest, other.Newest)
	slices.SortStableFunc(h.Newest, func(a, b Arrival) int { return b.At.Compare(a.At) })
	h.trimArrivals()
}
