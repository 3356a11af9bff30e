package proxy

import (
	"testing"
	"time"

	"hooklock/proxy/wire"
)

func TestAnAnswerAsksForAHoldInOneReadableWay(t *testing.T) {
	for text, want := range map[string]time.Duration{"30m": 30 * time.Minute, "1h30m": 90 * time.Minute, "90s": 90 * time.Second, "0s": 0, "0": 0} {
		if got, given, err := askedHold([]wire.Field{field("Date", "x"), field("hooklock-HOLD", text)}); got != want || !given || err != nil {
			t.Errorf("%q: %v, %v, %v", text, got, given, err)
		}
	}
	for _, text := range []string{"", "true", "30", "-1s", "30 m", "1d", "999999999999h", "soon"} {
		if _, given, err := askedHold([]wire.Field{field(headerHold, text)}); err == nil || !given {
			t.Errorf("%q was read", text)
		}
	}
	if _, _, err := askedHold([]wire.Field{field(headerHold, "30m"), field(headerHold, "1h")}); err == nil {
		t.Error("two were read")
	}
	if got, given, err := askedHold([]wire.Field{field("Hooklock-Holder", "30m")}); got != 0 || given || err != nil {
		t.Errorf("nobody asked: %v, %v, %v", got, given, err)
	}
}

func field(name, value string) wire.Field { return wire.Field{Name: []byte(name), Value: []byte(value)} }

func FuzzAskedHold(f *testing.F) {
	for _, text := range []string{"30m", "", "-0s", "1e3s", "\xff", "9223372036854775807ns"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if asked, given, err := askedHold([]wire.Field{field(headerHold, text)}); !given || asked < 0 || err != nil && asked != 0 {
			t.Errorf("%q: %v, %v, %v", text, asked, given, err)
		}
	})
}
