package cli

import (
	"fmt"
	"strings"
	"time"
)

// Zone writes times for readers. The zero value writes them as the API does, in UTC.
type Zone struct{ place *time.Location }

// ZoneNamed returns the zone with an IANA name, "UTC", or "Local" for this machine's.
func ZoneNamed(name string) (Zone, error) {
	place, err := time.LoadLocation(name)
	if err != nil {
		return Zone{}, Misuse(fmt.Errorf("--tz %s: give the name of a time zone, such as Europe/Berlin, UTC or "+
			"Local: %w", Plain(name), err))
	}
	return Zone{place}, nil
}

// Stamp returns a whole time.
func (z Zone) Stamp(at time.Time) string {
	if z.place == nil {
		return at.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return at.In(z.place).Format("2006-01-02 15:04:05.000 MST")
}

// Clock returns what a list shows of a time: its clock, and its date if that is not today's. Head
// names the zone.
func (z Zone) Clock(at, now time.Time) string {
	if z.place == nil {
		return z.Stamp(at)
	}
	at, now = at.In(z.place), now.In(z.place)
	switch {
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
		return at.Format(time.TimeOnly)
	case at.Year() == now.Year():
		return at.Format("01-02 15:04")
	}
	return at.Format(time.DateOnly)
}

// Head returns the head of a column of clocks.
func (z Zone) Head(now time.Time) string {
	if z.place == nil {
		return "TIME"
	}
	return "TIME " + now.In(z.place).Format("MST")
}

// Moment returns a time that a user wrote ("02:13", "yesterday 22:00", "2026-11-26 02:13") as the
// API takes it. A clock without a date is the latest one before now. Any other text is returned as
// it is.
func (z Zone) Moment(text string, now time.Time) string {
	now = now.In(z.place)
	day, clock, both := strings.Cut(strings.Replace(text, "T", " ", 1), " ")
	date, err := time.ParseInLocation(time.DateOnly, day, z.place)
	latest := false
	switch {
	case err == nil:
	case day == "today":
		date = now
	case day == "yesterday":
		date = now.AddDate(0, 0, -1)
	default:
		date, clock, latest = now, text, true
	}
	of := time.Time{}
	if both || latest {
		if of, err = time.Parse("15:04", clock); err != nil {
			of, err = time.Parse(time.TimeOnly, clock)
		}
		if err != nil {
			return text
		}
	}
	at := func(back int) time.Time {
		return time.Date(date.Year(), date.Month(), date.Day()-back, of.Hour(), of.Minute(), of.Second(), 0, z.place)
	}
	moment := at(0)
	if latest && moment.After(now) {
		moment = at(1)
	}
	return moment.UTC().Format(time.RFC3339)
}
