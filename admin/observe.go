package admin

import (
	"fmt"
	"net/http"
	"time"
)

// report returns what the routes of this process have found. It is over all workflows, so a token
// that is limited to some does not get it.
func (c *call) report() error {
	since, err := c.moment("since", c.query("since"))
	if err != nil {
		return err
	}
	return c.ok(http.StatusOK, c.api.options.Report(since))
}

// moment reads a time, or how long ago it was; the zero time if it is not given.
func (c *call) moment(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return c.api.options.Now().Add(-d), nil
	}
	return time.Time{}, refuse("bad_request",
		name+"="+quote(text)+`: give a time such as 2026-01-31T12:00:00Z, or how long ago, such as 24h`)
}

// period reads since and until; the zero time if one is not given.
func (c *call) period(from, to string) (since, until time.Time, err error) {
	if since, err = c.moment("since", from); err != nil {
		return since, until, err
	}
	if until, err = c.moment("until", to); err == nil && !until.IsZero() && until.Before(since) {
		err = refuse("bad_request", fmt.Sprintf("until=%s is before since=%s, so nothing can be between them: give "+
			"the earlier one as since", quote(to), quote(from)))
	}
	return since, until, err
}
