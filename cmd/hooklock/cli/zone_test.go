package cli

import (
	"testing"
	"time"
)

func berlin(t *testing.T) Zone {
	t.Helper()
	z, err := ZoneNamed("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestAMomentIsReadAsPeopleWriteIt(t *testing.T) {
	now := time.Date(2026, 11, 27, 0, 30, 0, 0, time.UTC) // 01:30 in Berlin
	for text, want := range map[string]string{
		"01:13":                "2026-11-27T00:13:00Z",
		"02:13":                "2026-11-26T01:13:00Z", // 02:13 of today is still to come
		"01:13:59":             "2026-11-27T00:13:59Z",
		"today":                "2026-11-26T23:00:00Z",
		"today 00:10":          "2026-11-26T23:10:00Z",
		"yesterday 22:00":      "2026-11-26T21:00:00Z",
		"yesterday":            "2026-11-25T23:00:00Z",
		"2026-11-26 02:13":     "2026-11-26T01:13:00Z",
		"2026-11-26T02:13:07":  "2026-11-26T01:13:07Z",
		"2026-07-01 02:13":     "2026-07-01T00:13:00Z", // summer time
		"2026-11-26":           "2026-11-25T23:00:00Z",
		"2026-11-26T01:13:00Z": "2026-11-26T01:13:00Z",
		"10m":                  "10m",
		"":                     "",
		"soon":                 "soon",
		"yesterday noon":       "yesterday noon",
		"25:00":                "25:00",
	} {
		if got := berlin(t).Moment(text, now); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func TestATimeIsWrittenWithItsZone(t *testing.T) {
	now := time.Date(2026, 11, 27, 1, 30, 0, 0, time.UTC)
	z, at := berlin(t), now.Add(-time.Minute)
	for got, want := range map[string]string{
		z.Stamp(at):                        "2026-11-27 02:29:00.000 CET",
		z.Head(now):                        "TIME CET",
		z.Clock(at, now):                   "02:29:00",
		z.Clock(at.AddDate(0, 0, -1), now): "11-26 02:29",
		z.Clock(at.AddDate(-1, 0, 0), now): "2025-11-27",
		Zone{}.Stamp(at):                   "2026-11-27T01:29:00.000Z",
		Zone{}.Clock(at, now):              "2026-11-27T01:29:00.000Z",
		Zone{}.Head(now):                   "TIME",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if _, err := ZoneNamed("Nowhere"); err == nil {
		t.Error("there is no zone Nowhere")
	}
}
