package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes. Its text is a whole number and B, KiB, MiB or GiB.
type Size int64

// The units of a Size.
const (
	Byte Size = 1
	KiB       = 1024 * Byte
	MiB       = 1024 * KiB
	GiB       = 1024 * MiB
)

var sizeUnits = []struct {
	name string
	size Size
}{{"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}, {"B", Byte}}

// String returns the size in the largest unit that needs no fraction, so that it can be read back.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalText returns String.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads 512B, 64KiB, 8MiB or 1GiB, and nothing else: MB and M may mean 1000 or 1024
// times.
func (s *Size) UnmarshalText(text []byte) error {
	number := strings.TrimRight(string(text), lowerCase+upperCase)
	n, err := parseDigits(number)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%q is not a size: write a whole number and a unit, e.g. 64KiB", text)
	}
	unit := string(text)[len(number):]
	for _, u := range sizeUnits {
		if u.name != unit {
			continue
		}
		if err != nil || n > math.MaxInt64/int64(u.size) {
			return tooLarge{string(text), Size(math.MaxInt64)}
		}
		*s = Size(n) * u.size
		return nil
	}
	return fmt.Errorf("%q: %s, e.g. %s", text, sizeHint(unit), number+sizeGuess(unit))
}

func sizeHint(unit string) string {
	if unit == "" {
		return "give a unit"
	}
	return "the units are B, KiB, MiB and GiB"
}

// sizeGuess returns the unit that was most likely meant by unit.
func sizeGuess(unit string) string {
	switch strings.ToLower(unit + " ")[0] {
	case 'b':
		return "B"
	case 'm':
		return "MiB"
	case 'g', 't':
		return "GiB"
	}
	return "KiB"
}

func parseDigits(s string) (int64, error) {
	if s == "" || !madeOf(s, digits) {
		return 0, errors.New("not a whole number")
	}
	return strconv.ParseInt(s, 10, 64)
}

// durationForm is that of a duration, also of one that is too long.
var durationForm = regexp.MustCompile(`^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)

// parseDuration reads a Go duration such as 15s, 1h30m or 200ms. It refuses a bare number, which
// may mean seconds or milliseconds, and anything negative.
func parseDuration(text string) (time.Duration, error) {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return 0, fmt.Errorf("%s: give a unit, e.g. %ss", text, strings.TrimLeft(text, "-+"))
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		if durationForm.MatchString(text) {
			return 0, tooLarge{text, time.Duration(math.MaxInt64)}
		}
		if days, found := strings.CutSuffix(text, "d"); found {
			if n, err := parseDigits(days); err == nil && n <= 100000 {
				return 0, fmt.Errorf("%q: the largest unit is the hour, e.g. %dh", text, n*24)
			}
		}
		return 0, fmt.Errorf("%q is not a duration: write e.g. 200ms, 15s, 10m or 168h", text)
	}
	if d < 0 {
		return 0, fmt.Errorf("%s is negative", text)
	}
	return d, nil
}

// parseDays is parseDuration that also reads whole days of 24 hours, as 7d.
func parseDays(text string) (time.Duration, error) {
	if days, found := strings.CutSuffix(text, "d"); found {
		if n, err := parseDigits(days); err == nil && n <= 100000 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	return parseDuration(text)
}

// StatusRange is the HTTP statuses from Low to High, both included. Its text is 2xx, 404 or
// 200-299.
type StatusRange struct {
	Low, High int // 100 to 599
}

// String returns the shortest text that reads back as r.
func (r StatusRange) String() string {
	switch {
	case r.Low == r.High:
		return strconv.Itoa(r.Low)
	case r.Low%100 == 0 && r.High == r.Low+99:
		return strconv.Itoa(r.Low/100) + "xx"
	}
	return strconv.Itoa(r.Low) + "-" + strconv.Itoa(r.High)
}

// MarshalText returns String.
func (r StatusRange) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads 2xx, 404 or 200-299.
func (r *StatusRange) UnmarshalText(text []byte) error {
	s := string(text)
	if class, found := strings.CutSuffix(s, "xx"); found && len(class) == 1 && class[0] >= '1' && class[0] <= '5' {
		r.Low = int(class[0]-'0') * 100
		r.High = r.Low + 99
		return nil
	}
	low, high, isRange := strings.Cut(s, "-")
	if !isRange {
		high = low
	}
	lowest, errLow := parseStatus(low)
	highest, errHigh := parseStatus(high)
	if errLow != nil || errHigh != nil {
		return fmt.Errorf("%q is not a status: write e.g. 2xx, 404 or 200-299", s)
	}
	if lowest > highest {
		return fmt.Errorf("%q runs backwards", s)
	}
	r.Low, r.High = lowest, highest
	return nil
}

func parseStatus(s string) (int, error) {
	n, err := parseDigits(s)
	if err != nil || len(s) != 3 || n < 100 || n > 599 {
		return 0, errors.New("not an HTTP status")
	}
	return int(n), nil
}

// Reuse says whether a connection to the upstream is used again after it carried a body.
type Reuse string

// The values of reuse_after_body.
const (
	ReuseAuto   Reuse = "auto"
	ReuseAlways Reuse = "true"
	ReuseNever  Reuse = "false"
)

// Choices lists the values.
func (Reuse) Choices() []string {
	return []string{string(ReuseAuto), string(ReuseAlways), string(ReuseNever)}
}
