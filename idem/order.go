package idem

import (
	"bytes"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// OnStale says what happens to an event that is older than the newest of its scope that went
// through.
type OnStale string

// The choices.
const (
	StaleAnnotate OnStale = "annotate" // it runs, and a header says to the upstream by how much it is older
	StaleSkip     OnStale = "skip"     // it does not run, and its sender need not send it again: 200
	StaleReject   OnStale = "reject"   // it does not run: 409
)

// Choices lists the values of a configuration.
func (OnStale) Choices() []string { return asStrings(StaleAnnotate, StaleSkip, StaleReject) }

// OrderUnit is the unit of a position that is a number.
type OrderUnit string

// The units. The zero value is UnitNone.
const (
	UnitNone         OrderUnit = "none" // not known: a version, a sequence
	UnitSeconds      OrderUnit = "s"
	UnitMilliseconds OrderUnit = "ms"
)

// Choices lists the units.
func (OrderUnit) Choices() []string { return asStrings(UnitNone, UnitSeconds, UnitMilliseconds) }

// OrderPolicy is what a route does about events that come out of order. A nil one checks no order.
type OrderPolicy struct {
	OnStale OnStale // what happens to an event that is older than the newest
	By      string  // the template, for operators
}

// Order is the position of an event in its scope, as its sender gives it. The ledger keeps a
// high-water mark for each scope inside of a workflow: the newest event that went through.
type Order struct {
	ScopeKey string    `json:"mark"`           // the key of the scope in its workflow: 32 hex digits
	Scope    string    `json:"scope"`          // printable, for operators
	At       string    `json:"at"`             // as the sender wrote it; ParsePosition reads it
	Unit     OrderUnit `json:"unit,omitempty"` // of At, if that is a number; "" = UnitNone
}

// HighWaterMark is the newest event of a scope that went through.
type HighWaterMark struct {
	At        Position    // where it is in the order
	Execution ExecutionID // the one that went through
}

// Stale says that an event is older than the newest of its scope that went through.
type Stale struct {
	// By is how much older: "37s" where the two are times, or numbers whose unit is known; else the
	// bare difference.
	By   string      `json:"by"`
	Than ExecutionID `json:"than"` // the newest
}

// Against compares o with the newest event of its scope; nil = it is not older, or the two cannot
// be compared.
func (o *Order) Against(newest *HighWaterMark) *Stale {
	at, ok := ParsePosition(o.At)
	if !ok || newest == nil || !at.Before(newest.At) {
		return nil
	}
	return &Stale{By: at.lagBehind(newest.At, o.Unit), Than: newest.Execution}
}

// Abort returns the reason with which an execution ends that did not run because of s.
func (s *Stale) Abort(now time.Time) *Cancel {
	return &Cancel{By: "policy", Reason: s.Reason(), At: now, Successor: s.Than}
}

// Reason says for operators why an execution did not run because of s.
func (s *Stale) Reason() string {
	return "superseded: " + s.By + " older than " + string(s.Than) + ", which went through"
}

// StalenessOf returns what p says of an event; stale is nil if no newer one went through.
func (p *Policy) StalenessOf(stale *Stale) Staleness {
	switch {
	case stale == nil || p.Order == nil || p.Order.OnStale == StaleAnnotate:
		return 0
	case p.Order.OnStale == StaleReject:
		return StaleRefused
	}
	return StaleSkipped
}

// Position is a number or a time, spelled so that the order of the bytes is the order of the
// values: "n" and digits, or "t" and a time. Equal values have equal spellings.
type Position string

// Bounds of a number: digits before and behind its point. A longer text is not a position.
const (
	wholeDigits = 40
	tailDigits  = 20
)

// ParsePosition reads a number, in decimal digits as JSON spells it, or a time of RFC 3339. ok is
// false for everything else. No digit is lost: a number is not taken through a float. Of a time, a
// billionth of a second is the finest.
func ParsePosition(text string) (p Position, ok bool) {
	if n, ok := parseNumber(text); ok {
		return n, true
	}
	// RFC 3339, section 5.6: "t" and "z" may be lower case
	at, err := time.Parse(time.RFC3339Nano, strings.ToUpper(text))
	if err != nil {
		return "", false
	}
	if at = at.UTC(); at.Year() < 0 || at.Year() > 9999 {
		return "", false
	}
	return Position("t" + at.Format(positionTime)), true
}

// positionTime has all its digits, so that later is larger.
const positionTime = "2006-01-02T15:04:05.000000000Z"

// parseNumber makes "n1" and all digits; of a number below zero, "n0" and the digits' complements
// to nine.
func parseNumber(text string) (Position, bool) {
	digits, below := strings.CutPrefix(text, "-")
	exponent := 0
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(digits[i+1:]); err != nil || exponent < -99 || exponent > 99 {
			return "", false
		}
		digits = digits[:i]
	}
	whole, tail, point := strings.Cut(digits, ".")
	if whole == "" || point && tail == "" || strings.Trim(whole+tail, "0123456789") != "" {
		return "", false
	}
	digits, exponent = strings.TrimRight(whole+tail, "0"), exponent+len(whole)
	for strings.HasPrefix(digits, "0") {
		digits, exponent = digits[1:], exponent-1
	}
	if digits == "" {
		below, exponent = false, 0
	}
	if exponent > wholeDigits || len(digits)-exponent > tailDigits {
		return "", false
	}
	b := append(bytes.Repeat([]byte{'0'}, wholeDigits-exponent), digits...)
	b = append(b, bytes.Repeat([]byte{'0'}, wholeDigits+tailDigits-len(b))...)
	sign := "n1"
	if below {
		sign = "n0"
		for i := range b {
			b[i] = '0' + '9' - b[i]
		}
	}
	return Position(sign + string(b)), true
}

// Kind returns "n" of a number, "t" of a time. The two cannot be compared.
func (p Position) Kind() string {
	if p == "" {
		return ""
	}
	return string(p[:1])
}

// Before reports whether p is older than q; false for two kinds.
func (p Position) Before(q Position) bool { return p.Kind() == q.Kind() && p < q }

// lagBehind returns by how much p is before q.
func (p Position) lagBehind(q Position, unit OrderUnit) string {
	if p.Kind() == "t" {
		older, _ := time.Parse(positionTime, string(p[1:]))
		newer, _ := time.Parse(positionTime, string(q[1:]))
		apart := big.NewInt(newer.Unix() - older.Unix()) // a Duration ends after 292 years
		apart.Mul(apart, big.NewInt(int64(time.Second)))
		apart.Add(apart, big.NewInt(int64(newer.Nanosecond()-older.Nanosecond())))
		return decimalText(apart, 9) + "s"
	}
	apart := new(big.Int).Sub(q.scaledNumber(), p.scaledNumber())
	switch unit {
	case UnitSeconds:
		return decimalText(apart, tailDigits) + "s"
	case UnitMilliseconds:
		return decimalText(apart, tailDigits+3) + "s"
	}
	return decimalText(apart, tailDigits)
}

// scaledNumber returns the number p without its point.
func (p Position) scaledNumber() *big.Int {
	digits := []byte(p[2:])
	below := p[1] == '0'
	if below {
		for i := range digits {
			digits[i] = '0' + '9' - digits[i]
		}
	}
	n, _ := new(big.Int).SetString(string(digits), 10)
	if below {
		n.Neg(n)
	}
	return n
}

// decimalText writes n, which is not below zero, with the point before its last digits, and no
// zeros behind it.
func decimalText(n *big.Int, tail int) string {
	text := n.String()
	if lacks := tail + 1 - len(text); lacks > 0 {
		text = strings.Repeat("0", lacks) + text
	}
	point := len(text) - tail
	return strings.TrimSuffix(text[:point]+"."+strings.TrimRight(text[point:], "0"), ".")
}
