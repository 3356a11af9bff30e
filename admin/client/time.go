package client

import "time"

// Time is a time as the API writes it: RFC 3339 with milliseconds, in UTC. The zero value is an
// absent time.
type Time struct{ time.Time }

const timeLayout = `"2006-01-02T15:04:05.000Z07:00"`

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) { return t.UTC().AppendFormat(nil, timeLayout), nil }
