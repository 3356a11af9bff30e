package sender

import "time"

// age checks a signed timestamp.
type age struct {
	tolerance time.Duration // 0 = no check
	// pastOnly accepts any timestamp in the future, as Stripe's own library does.
	pastOnly bool
}

// checkAge compares a signed timestamp with now. It accepts a zero stamp, which was not signed.
func (a age) checkAge(scheme, part string, stamp, now time.Time) error {
	if a.tolerance == 0 || stamp.IsZero() {
		return nil
	}
	if now.Sub(stamp) > a.tolerance {
		return &SignatureError{scheme, TooOld, part, "signed more than " + a.tolerance.String() +
			" ago: a replay, or this machine's clock is ahead"}
	}
	if stamp.Sub(now) > a.tolerance && !a.pastOnly {
		return &SignatureError{scheme, TooNew, part, "signed more than " + a.tolerance.String() +
			" ahead: this machine's clock is behind"}
	}
	return nil
}

// unixTime parses a timestamp in decimal digits, in seconds or milliseconds as unit says. It
// rejects signs, spaces and times after the year 33658.
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
