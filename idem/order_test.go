package idem

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPositionsAreInTheOrderOfWhatTheySay(t *testing.T) {
	for _, all := range [][]string{
		{
			"-1e39", "-20", "-3.5", "-3.25", "-0.00000000000000000001", "0", "0.00000000000000000001", "1", "1.5", "2",
			"10", "1700000000", "1700000000.001",
			"9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808", "1e39",
		},
		{
			"1969-12-31T23:59:59Z", "2026-11-22T10:00:00+02:00", "2026-11-22T08:00:00.000000001Z",
			"2026-11-22T08:00:00.5Z", "2026-11-22T08:00:01Z",
			"2026-11-22T08:00:01-12:00", "9999-12-31T23:59:59.999999999Z",
		},
	} {
		for i, older := range all {
			p, ok := ParsePosition(older)
			if !ok {
				t.Fatalf("%s is no position", older)
			}
			for j, newer := range all {
				q, _ := ParsePosition(newer)
				if p.Before(q) != (i < j) {
					t.Errorf("%s before %s: %v", older, newer, p.Before(q))
				}
			}
		}
	}
}

func TestWhatSaysTheSameIsTheSamePosition(t *testing.T) {
	for _, same := range [][]string{
		{"17", "017", "17.0", "1.7e1", "170E-1", "0.17e+2"}, {"0", "-0", "0.0", "0e9", "-0e-9"}, {"-1.5", "-15e-1"},
		{"2026-11-22T10:00:00Z", "2026-11-22T12:00:00+02:00", "2026-11-22T10:00:00.000Z", "2026-11-22t10:00:00z"},
	} {
		first, _ := ParsePosition(same[0])
		for _, other := range same[1:] {
			if p, ok := ParsePosition(other); !ok || p != first {
				t.Errorf("%s is %q, and %s is %q", same[0], first, other, p)
			}
		}
	}
}

func TestWhatIsNoPositionIsNotJudged(t *testing.T) {
	for _, text := range []string{
		"", "-", "+1", "1.", ".5", "1e", "1e100", "1e-100", "1e40", "1e-21", "0x10", "1_000", "1 ", " 1", "NaN",
		"Infinity", "--1", "1.2.3", "१",
		strings.Repeat("9", 41), "2026-11-22", "2026-11-22T10:00:00", "2026-13-22T10:00:00Z",
		"0000-01-01T00:00:00+01:00", "yesterday",
	} {
		if p, ok := ParsePosition(text); ok {
			t.Errorf("%q is %q", text, p)
		}
	}
	number, _ := ParsePosition("99999999999")
	at, _ := ParsePosition("1999-01-01T00:00:00Z")
	if number.Before(at) || at.Before(number) {
		t.Error("a number and a time are held against each other")
	}
}

func TestNumbersAreComparedExactly(t *testing.T) {
	number := rapid.Custom(func(rt *rapid.T) string {
		return rapid.StringMatching(`-?[0-9]{1,25}(\.[0-9]{1,18})?(e-?[01])?`).Draw(rt, "number")
	})
	rapid.Check(t, func(rt *rapid.T) {
		a, b := number.Draw(rt, "a"), number.Draw(rt, "b")
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		p, ok := ParsePosition(a)
		q, too := ParsePosition(b)
		if !ok || !too || p.Before(q) != (x.Cmp(y) < 0) {
			rt.Fatalf("%s before %s: %v; read: %v, %v", a, b, p.Before(q), ok, too)
		}
		if !p.Before(q) {
			return
		}
		apart, _ := new(big.Rat).SetString(p.lagBehind(q, UnitNone))
		if apart.Cmp(y.Sub(y, x)) != 0 {
			rt.Fatalf("%s is %s older than %s", a, p.lagBehind(q, UnitNone), b)
		}
	})
}

func TestHowMuchOlderAnEventIsIsSaidInSecondsWhereTheUnitIsKnown(t *testing.T) {
	for _, c := range []struct {
		older, newer string
		unit         OrderUnit
		want         string
	}{
		{"1700000000", "1700000037", UnitSeconds, "37s"},
		{"1700000000000", "1700000000250", UnitMilliseconds, "0.25s"},
		{"1700000000000", "1700003700000", UnitMilliseconds, "3700s"},
		{"7", "12", "", "5"},
		{"7", "12", UnitNone, "5"},
		{"-1.5", "1", "", "2.5"},
		{"2026-11-22T10:00:00Z", "2026-11-22T10:01:40.5+00:00", UnitMilliseconds, "100.5s"},
		{"0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "", "315537897599.999999999s"},
	} {
		newest, _ := ParsePosition(c.newer)
		got := (&Order{At: c.older, Unit: c.unit}).Against(&HighWaterMark{At: newest, Execution: "exec_new"})
		if got == nil || got.By != c.want || got.Than != "exec_new" {
			t.Errorf("%s and %s: %+v, want %s", c.older, c.newer, got, c.want)
		}
	}
	newest, _ := ParsePosition("17")
	for _, at := range []string{"17", "17.0", "18", "1999-01-01T00:00:00Z", "soon"} {
		if got := (&Order{At: at}).Against(&HighWaterMark{At: newest}); got != nil {
			t.Errorf("%s is %+v than 17", at, got)
		}
	}
	if got := (&Order{At: "1"}).Against(nil); got != nil {
		t.Errorf("nothing has gone through, and it is %+v", got)
	}
}
