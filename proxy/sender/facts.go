package sender

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"hooklock/idem"
)

// Facts is what one sender does with the answers it gets, and what it signs, as its documentation says. Nothing of it is a setting: a
// route cannot change a sender. The zero value says that nothing was established.
type Facts struct {
	// Patience is how long the sender waits for an answer; 0 = not documented, or not established.
	Patience time.Duration
	// Largest is the longest body that the sender sends, in bytes; 0 = not documented, or not established.
	Largest int64
	// Success are the statuses that the sender takes for received; empty: every 2xx, or no narrower list is documented.
	Success []int
	// UsesAnswer reports whether the sender does something with the answer to d beside reading its status, such as showing it to a
	// person: no other answer can then stand in for the service's. nil: it never does.
	UsesAnswer func(d *Delivery) bool
	// Answer says in a page for what the answer is used. Empty where UsesAnswer is nil.
	Answer string
	// Retries is after which answers the event comes again; RetriesOn says in a page what RetriesSome and a known schedule are.
	Retries   Retries
	RetriesOn string
	// RetriesFor is how long after the first attempt the last automatic one comes; 0 = none, or not established.
	RetriesFor time.Duration
	// GivesUp says what becomes of an endpoint that refuses too often, such as "disabled after 4 failures in a row"; empty: not established.
	GivesUp string
	// Limits are the numbers in GivesUp; none: no number is established, or none that an endpoint can count itself.
	Limits []Limit
	// SignedTime is where the time is that the signature covers.
	SignedTime SignedTime
	// IDSigned: the signature covers all that event_id is read from, so that whoever captured a delivery can send it only under its own ID.
	IDSigned bool
	// States: an event says, or lets the receiver read, all that those before it about the same thing said. false: each says something of its own, or
	// that is not established.
	States bool
	// Changes says what differs between two attempts of one event; empty: not established.
	Changes string
}

// Limit says when a sender switches an endpoint off. One of its fields is set.
type Limit struct {
	InRow int           // failures in a row
	For   time.Duration // nothing but failures for so long
	Share float64       // of the deliveries of an hour that fail; up to 1
}

// Fails reports whether the sender takes a delivery for failed that was answered so, after that time.
func (f *Facts) Fails(status int, took time.Duration) bool {
	return !f.Accepts(status) || f.Patience > 0 && took > f.Patience
}

// Retries says after which answers a sender sends the same event again. The zero value is RetriesUnknown.
type Retries uint8

// The values of Retries.
const (
	RetriesUnknown Retries = iota // not established, or each sender of this kind decides: do not rely on it
	RetriesNever                  // no answer brings an event back: what is refused is lost
	RetriesSome                   // after some answers, which RetriesOn names; a preset's refusals are among them
	RetriesAll                    // after every answer but success
)

// SignedTime says where a sender's signed time is. Without one a captured delivery stays valid. The zero value is TimeUnsigned.
type SignedTime uint8

// The values of SignedTime.
const (
	TimeUnsigned SignedTime = iota // no time is signed
	TimeInHeader                   // in a header: who has the secret can sign the same body again at another time
	TimeInBody                     // in the body or its envelope: it cannot be changed without changing the event
)

// accepted is the status of an answer that says "received, not done yet".
const accepted = 202

// AcceptStatus is the 2xx that tells this sender that its event was received: 202, or where it does not take that the first of Success.
func (f *Facts) AcceptStatus() int {
	if len(f.Success) == 0 || slices.Contains(f.Success, accepted) {
		return accepted
	}
	return f.Success[0]
}

// AnswerIsUsed reports whether the sender uses the answer to d; then nothing but the service can answer.
func (f *Facts) AnswerIsUsed(d *Delivery) bool { return f.UsesAnswer != nil && f.UsesAnswer(d) }

// EventIsLost reports whether an event that is refused may never come again.
func (f *Facts) EventIsLost() bool { return f.Retries == RetriesNever || f.Retries == RetriesUnknown }

// SuccessText is Success for people.
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

// always is UsesAnswer of senders that act on every answer.
func always(*Delivery) bool { return true }

// Accepts reports whether the sender takes status for received.
func (f *Facts) Accepts(status int) bool {
	return len(f.Success) == 0 && status >= 200 && status < 300 || slices.Contains(f.Success, status)
}

// park are the settings of a route's park that suit the sender; none turns it on.
func (f *Facts) park() map[string]string {
	s := map[string]string{"park.answer": strconv.Itoa(f.AcceptStatus())}
	if f.Patience > 0 {
		s["park.after"] = idem.DurationText(f.Patience - max(f.Patience/5, time.Second)) // what is left is for the way there and back
	}
	if f.EventIsLost() {
		s["park.on"] = "locked,slow,unreachable,unknown,failed"
	}
	return s
}

// NeverParks reports whether the sender uses every answer, so that none but the service can give one.
func (f *Facts) NeverParks() bool { return f.UsesAnswer != nil && f.UsesAnswer(&Delivery{}) }
