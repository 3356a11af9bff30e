package sender

import "time"

// age is the check of a signed timestamp.
type age struct {
	tolerance time.Duration // 0 = no check
	// pastOnly accepts timestamps of the future, however far: Stripe's own library does.
	pastOnly bool
}

// check compares a signed timestamp with now. A zero stamp was not signed and is not checked.
func (a age) check(scheme, part string, stamp, now time.Time) error {
	if a.tolerance == 0 || stamp.IsZero() {
		return nil
	}
	if now.Sub(stamp) > a.tolerance {
		return &SignatureError{scheme, TooOld, part, "signed more than " + a.tolerance.String() + " ago: a replay, or this machine's clock is ahead"}
	}
	if stamp.Sub(now) > a.tolerance && !a.pastOnly {
		return &SignatureError{scheme, TooNew, part, "signed more than " + a.tolerance.String() + " ahead: this machine's clock is behind"}
	}
	return nil
}

// unixTime reads a timestamp in decimal digits: seconds, or milliseconds when unit says so. Signs, spaces and numbers
// beyond the year 33658 are no timestamps.
func unixTime(digits []byte, unit time.Duration) (time.Time, bool) {
	const longest = 15
	if len(digits) == 0 || len(digits) > longest {
		return time.Time{}, false
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return time.Time{}, false
		}
		n = n*10 + int64(c-'0')
	}
	if unit == time.Millisecond {
		return time.UnixMilli(n), true
	}
	if n > 1e12 {
		return time.Time{}, false
	}
	return time.Unix(n, 0), true
}
