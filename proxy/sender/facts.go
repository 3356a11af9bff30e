package sender

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"hooklock/idem"
)

// Facts says what a sender signs and how it reacts to answers, according to its documentation. A
// route cannot change them. A zero field means that nothing was established.
type Facts struct {
	// Timeout is how long the sender waits for an answer, or 0 if that is not established.
	Timeout time.Duration
	// Largest is the size of the longest body that the sender sends, in bytes, or 0 if that is not
	// established.
	Largest int64
	// Success lists the statuses that mean success to the sender. If empty, every 2xx does.
	Success []int
	// UsesAnswer reports whether the sender uses the answer to d beyond its status, such as showing
	// it to a person, so that only the service can give it. It is nil if the sender never does.
	UsesAnswer func(d *Delivery) bool
	// Answer is the text about that use for pages and explain. It is empty if UsesAnswer is nil.
	Answer string
	// Retries says after which answers the sender sends an event again; RetriesOn is the text about
	// those answers and the schedule, for pages.
	Retries   Retries
	RetriesOn string
	// RetriesFor is the time from the first attempt to the last automatic one, or 0 if there is
	// only one or that is not established.
	RetriesFor time.Duration
	// GivesUp is the text about what the sender does to an endpoint that fails too often, such as
	// "disabled after 4 failures in a row".
	GivesUp string
	// Limits lists the numbers in GivesUp that an endpoint can count itself.
	Limits []Limit
	// SignedTime says where the signed time is.
	SignedTime SignedTime
	// IDSigned reports whether the signature covers everything that event_id reads, so that a
	// captured delivery keeps its ID.
	IDSigned bool
	// States reports whether the newest event about a thing contains, or lets the receiver read,
	// all that earlier events said. Otherwise each event says something of its own, or that is not
	// established.
	States bool
	// Changes is the text about what differs between two attempts of an event.
	Changes string
}

// Limit says when a sender disables an endpoint. One of its fields is set.
type Limit struct {
	InRow int           // failures in a row
	For   time.Duration // time without a success
	Share float64       // share of failures in an hour, at most 1
}

// Fails reports whether the sender counts an answer with this status, after this time, as a
// failure.
func (f *Facts) Fails(status int, took time.Duration) bool {
	return !f.Accepts(status) || f.Timeout > 0 && took > f.Timeout
}

// Retries says after which answers a sender sends an event again.
type Retries uint8

// The values of Retries.
const (
	RetriesUnknown Retries = iota // not established, or different for each sender of this kind
	RetriesNever                  // after no answer: a refused event is lost
	RetriesSome                   // after the answers that RetriesOn names, which include the refusals of the preset
	RetriesAll                    // after every answer except success
)

// SignedTime says where a sender's signed time is. Without one a captured delivery stays valid.
type SignedTime uint8

// The values of SignedTime.
const (
	TimeUnsigned SignedTime = iota // no time is signed
	TimeInHeader                   // in a header: the same body can be signed again at another time
	TimeInBody                     // in the body or its envelope: it cannot change without the event
)

// accepted is the status for "received, not processed yet".
const accepted = 202

// AcceptStatus returns the status that tells the sender that its event was received: 202, or the
// first of Success if that lacks 202.
func (f *Facts) AcceptStatus() int {
	if len(f.Success) == 0 || slices.Contains(f.Success, accepted) {
		return accepted
	}
	return f.Success[0]
}

// AnswerIsUsed reports whether the sender uses the answer to d, so that only the service can
// answer.
func (f *Facts) AnswerIsUsed(d *Delivery) bool { return f.UsesAnswer != nil && f.UsesAnswer(d) }

// EventIsLost reports whether an event that is refused may never come again.
func (f *Facts) EventIsLost() bool { return f.Retries == RetriesNever || f.Retries == RetriesUnknown }

// SuccessText returns Success for messages.
func (f *Facts) SuccessText() string {
	if len(f.Success) == 0 {
		return "2xx"
	}
	var texts []string
	for _, status := range f.Success {
		texts = append(texts, strconv.Itoa(status))
	}
	return strings.Join(texts, ", ")
}

// usesEveryAnswer is UsesAnswer of senders that use every answer.
func usesEveryAnswer(*Delivery) bool { return true }

// Accepts reports whether status means success to the sender.
func (f *Facts) Accepts(status int) bool {
	return len(f.Success) == 0 && status >= 200 && status < 300 || slices.Contains(f.Success, status)
}

// parkSettings returns the park settings that suit the sender. None of them enables park.
func (f *Facts) parkSettings() map[string]string {
	s := map[string]string{"park.answer": strconv.Itoa(f.AcceptStatus())}
	if f.Timeout > 0 {
		s["park.after"] = idem.DurationText(f.Timeout - max(f.Timeout/5, time.Second)) // the rest is for the network
	}
	if f.EventIsLost() {
		s["park.on"] = "locked,slow,unreachable,unknown,failed"
	}
	return s
}

// NeverParks reports whether the sender uses every answer, so that only the service can answer.
func (f *Facts) NeverParks() bool { return f.UsesAnswer != nil && f.UsesAnswer(&Delivery{}) }
