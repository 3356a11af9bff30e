package idem

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ConcernKind is a kind of thing that needs attention.
type ConcernKind string

// The kinds of concerns. The first six are about events, the others about routes.
const (
	ConcernDeadLetters   ConcernKind = "dead_letters"
	ConcernBlocked       ConcernKind = "blocked"
	ConcernUnknown       ConcernKind = "unknown"
	ConcernExhausted     ConcernKind = ConcernKind(DecisionExhausted)
	ConcernReused        ConcernKind = "reused"
	ConcernLost          ConcernKind = "lost"
	ConcernBadSignatures ConcernKind = "bad_signatures"
	ConcernSilent        ConcernKind = "silent"
	ConcernChanged       ConcernKind = "changed"
	ConcernEventIDs      ConcernKind = "event_ids"
)

// Choices lists the kinds of concerns.
func (ConcernKind) Choices() []string {
	return asStrings(ConcernDeadLetters, ConcernBlocked, ConcernUnknown, ConcernExhausted, ConcernReused, ConcernLost,
		ConcernBadSignatures, ConcernSilent, ConcernChanged, ConcernEventIDs)
}

// Concern is what needs attention of one kind on one route.
type Concern struct {
	Kind  ConcernKind // what is wrong
	Route string      // the name of the route
}

// String is what ParseConcern reads.
func (c Concern) String() string { return string(c.Kind) + ":" + c.Route }

var errConcern = errors.New("give KIND:ROUTE")

// ParseConcern reads KIND:ROUTE. Its error says what to give.
func ParseConcern(text string) (Concern, error) {
	const longest = 512 // bytes: it is a part of a key
	kind, route, _ := strings.Cut(text, ":")
	all := ConcernKind("").Choices()
	if !slices.Contains(all, kind) || route == "" || len(text) > longest || strings.ToValidUTF8(text, "") != text {
		return Concern{}, fmt.Errorf("%q: %w, where KIND is one of %s", cutText(text), errConcern,
			strings.Join(all, ", "))
	}
	return Concern{ConcernKind(kind), route}, nil
}

// ErrNotAcknowledged says that nothing of a concern is marked as looked at.
var ErrNotAcknowledged = errors.New("nothing of it is marked as looked at")

// Acknowledgement says that a person has looked at a concern, at what happened up to Until. What is
// newer needs attention.
type Acknowledgement struct {
	Concern `json:"-"`
	Until   time.Time `json:"until"`  // the time up to which a person has looked
	By      string    `json:"by"`     // the name of that person's token
	Reason  string    `json:"reason"` // as that person wrote it
	At      time.Time `json:"at"`     // when it was written
}

// Text says until when the concern is looked at, and who says so.
func (s *Acknowledgement) Text() string {
	return "looked at until " + s.Until.Format(time.RFC3339) + " by " + s.By
}

// Covers reports whether something that happened at that time was looked at. The zero value covers
// nothing.
func (s *Acknowledgement) Covers(at time.Time) bool {
	return !at.Truncate(time.Millisecond).After(s.Until)
}

// ConcernedAt is when something came to need attention: it ended, its latest try failed, a delivery
// got the decision of the query, or it was found to be possibly lost.
func (f *Found) ConcernedAt(q *ExecutionQuery) (at time.Time) {
	d := q.Decision
	switch {
	case q.Lost:
		at = f.Arrivals.Lost
	case d != "" && f.Arrivals != nil:
		for _, a := range append([]Arrival{f.Arrivals.First}, f.Arrivals.Newest...) {
			if (a.Decision == d || a.Would == d) && a.At.After(at) {
				at = a.At
			}
		}
	case f.Record != nil:
		at = f.Record.FinishedAt
	case f.Lock != nil && f.Lock.Parked != nil && f.Lock.Parked.Last != nil:
		at = f.Lock.Parked.Last.At
	case f.Lock != nil:
		at = f.Lock.StartedAt
	}
	return at
}
