package idem

import "time"

// BadSignature is a delivery whose signature was not valid. Nothing of the secret, of the signature
// or of the body is in it but the event ID, which anyone may have written. A field that is not
// known is "" or 0.
type BadSignature struct {
	At      time.Time `json:"at"`                // when it was received
	Route   string    `json:"route"`             // the name of the route
	From    string    `json:"from,omitempty"`    // the client's IP address
	Scheme  string    `json:"scheme,omitempty"`  // how the route's sender signs
	Reason  string    `json:"reason,omitempty"`  // missing, malformed, stale, mismatch …
	Part    string    `json:"part,omitempty"`    // what was wrong: the name of a header, or a source as in templates
	Detail  string    `json:"detail,omitempty"`  // what was found, and what to check
	EventID string    `json:"eventId,omitempty"` // not proven: it is from the unsigned delivery
	TraceID string    `json:"traceId,omitempty"` // of the delivery
	Status  int       `json:"status,omitempty"`  // sent in response
	// More is how many of the route came so soon after it that they are not listed, up to Until.
	More  int64     `json:"more,omitempty"`
	Until time.Time `json:"until,omitzero"`
}

// BadSignatureRetention is for how long a BadSignature is kept.
const BadSignatureRetention = 30 * 24 * time.Hour

// BadSignatureQuery selects those for which all holds that is given. The zero value is all of them.
type BadSignatureQuery struct {
	Route, EventID string    // "" = any
	Since, Until   time.Time // zero = unbounded
	PageSize       int       // at most so many on a page; 0 = 100
	Cursor         string    // of the page before; "" = the first page
}

// Matches reports whether the query asks for b.
func (q *BadSignatureQuery) Matches(b *BadSignature) bool {
	return (q.Route == "" || b.Route == q.Route) && (q.EventID == "" || b.EventID == q.EventID) &&
		(q.Since.IsZero() || !b.newestAt().Before(q.Since)) && (q.Until.IsZero() || !b.At.After(q.Until))
}

// newestAt returns when the newest came of those that b stands for.
func (b *BadSignature) newestAt() time.Time {
	if b.Until.After(b.At) {
		return b.Until
	}
	return b.At
}

// BadSignaturePage is a part of them, the newest first. It may be shorter than its limit, even
// empty, and not be the last: only an empty NextCursor says that.
type BadSignaturePage struct {
	BadSignatures []BadSignature // the newest first
	NextCursor    string         // asks for the next page; "" = this is the last one
}
