package admin

import (
	"net/http"
	"time"
)

// report says what the routes of this process have found. It is over all workflows, so a token that is limited to some does not get it.
func (c *call) report() error {
	if err := c.unlimited("the report"); err != nil {
		return err
	}
	since, err := parseSince(c.query("since"), c.api.o.Now())
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, c.api.o.Report(since))
}

// parseSince reads a time, or how long ago it was.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, refuse("bad_request", "since="+quote(text)+`: give a time such as 2026-01-31T12:00:00Z (a + is %2B), or how long ago, such as 24h`)
}
