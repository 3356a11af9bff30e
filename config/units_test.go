package config

import (
	"strings"
	"testing"
	"time"

	"hooklock/idem"
)

func TestSizesAreReadAndWrittenBack(t *testing.T) {
	for text, want := range map[string]Size{"0B": 0, "512B": 512, "64KiB": 64 * KiB, "8MiB": 8 * MiB, "1GiB": GiB,
		"1025B": 1025, "1536KiB": 1536 * KiB} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want || got.String() != text {
			t.Errorf("%s: %d %s %v", text, got, got, err)
		}
	}
}

func TestSizesThatCouldMeanTwoThingsAreRefusedWithAHint(t *testing.T) {
	for text, hint := range map[string]string{
		"100": "e.g. 100KiB", "8MB": "e.g. 8MiB", "8M": "e.g. 8MiB", "64k": "e.g. 64KiB", "1g": "e.g. 1GiB",
		"5b": "e.g. 5B",
		"":   "not a size", "KiB": "not a size", "-1KiB": "not a size", "1.5MiB": "not a size", "1 KiB": "not a size",
		"9999999999999GiB": "the largest size is 8589934591GiB", "99999999999999999999B": "out of bounds",
		"１KiB": "not a size",
	} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestDurationsNeedAUnit(t *testing.T) {
	for text, hint := range map[string]string{
		"5": "5: give a unit, e.g. 5s", "0": "give a unit, e.g. 0s", "1.5": "e.g. 1.5s", "-5": "e.g. 5s",
		"-5s": "negative", "7d": "e.g. 168h", "5 s": "not a duration", "": "not a duration", "5S": "not a duration",
		"xd": "not a duration",
	} {
		if _, err := parseDuration(text); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestHowLongRequestsAreKeptMayBeWrittenInDays(t *testing.T) {
	for text, want := range map[string]time.Duration{"7d": 168 * time.Hour, "0d": 0, "90m": 90 * time.Minute} {
		if d, err := parseDays(text); err != nil || d != want {
			t.Errorf("%q: %v, %v", text, d, err)
		}
	}
	for _, text := range []string{"d", "-7d", "1.5d", "7d12h", "100001d", "7"} {
		if d, err := parseDays(text); err == nil {
			t.Errorf("%q: %v", text, d)
		}
	}
}

func TestDurationsAreWrittenShort(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "168h": 168 * time.Hour, "1h30m": 90 * time.Minute, "10m": 10 * time.Minute, "1m5s": 65 * time.Second,
		"1h0m5s": 3605 * time.Second, "200ms": 200 * time.Millisecond,
	} {
		got := idem.DurationText(d)
		back, err := parseDuration(got)
		if got != want || err != nil || back != d {
			t.Errorf("%s: %s, %v", want, got, err)
		}
	}
}

func TestStatusRangesAreReadAndWrittenBack(t *testing.T) {
	for text, want := range map[string]StatusRange{"2xx": {200, 299}, "404": {404, 404}, "200-299": {200, 299},
		"500-504": {500, 504}} {
		var got, back StatusRange
		err := got.UnmarshalText([]byte(text))
		if err != nil || got != want || back.UnmarshalText([]byte(got.String())) != nil || back != got {
			t.Errorf("%s: %v %s %v", text, got, got, err)
		}
	}
	for _, text := range []string{"", "6xx", "2XX", "20x", "99", "600", "0404", "200-", "-200", "300-200", "2xx-4xx",
		"+200", "200-299-300"} {
		var r StatusRange
		if r.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is accepted as %v", text, r)
		}
	}
}

func TestAWrongItemIsNamedByItsPlaceInTheList(t *testing.T) {
	got := refusalOf(t, Source{Bytes: []byte("routes: [{name: a, path: /a, idempotency: {keep: [true, 9xx]}}]")})
	want := `sidecar.yaml:1:51: routes[0].idempotency.keep[0]: needs a status, e.g. 2xx, 404 or 200-299` + "\n" +
		`sidecar.yaml:1:57: routes[0].idempotency.keep[1]: "9xx" is not a status: write e.g. 2xx, 404 or 200-299`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
