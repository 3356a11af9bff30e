package logs

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"testing"
	"time"
)

// both writes r by hand and as slog does.
func both(t *testing.T, r slog.Record) (ours, slogs string) {
	t.Helper()
	var a, b bytes.Buffer
	if err := NewJSONHandler(&a, slog.LevelInfo).Handle(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	if err := slog.NewJSONHandler(&b, nil).Handle(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	return a.String(), b.String()
}

func TestALineIsSpelledAsSlogSpellsIt(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.FixedZone("here", 3600))
	for _, value := range []slog.Value{
		slog.StringValue("stripe/acct_1"), slog.StringValue(""), slog.StringValue("a \"b\" \\ <c> & \x00\n\x7f"), slog.StringValue("é\u2028"), slog.StringValue("\xff"),
		slog.IntValue(-3), slog.Uint64Value(math.MaxUint64), slog.BoolValue(true), slog.DurationValue(time.Second),
		slog.Float64Value(0), slog.Float64Value(12.345), slog.Float64Value(1e-7), slog.Float64Value(-1e21), slog.Float64Value(1e20), slog.Float64Value(math.NaN()), slog.Float64Value(math.Copysign(0, -1)),
		slog.TimeValue(at), slog.TimeValue(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)), slog.AnyValue(nil), slog.AnyValue([]int{1}),
		slog.GroupValue(slog.Int("n", 1)), slog.GroupValue(slog.Int("n", 1), slog.Any("deep", slog.GroupValue(slog.Bool("b", false))), slog.Any("", slog.GroupValue(slog.String("s", "t")))), slog.GroupValue(),
		slog.Float64Value(0.1), slog.Float64Value(999.999), slog.Float64Value(0.0005), slog.Float64Value(1234567890123.45), slog.Float64Value(2e15), slog.AnyValue(resolved{}),
	} {
		for _, key := range []string{"k", "", "q\"", "é"} {
			for _, when := range []time.Time{at, {}} {
				r := slog.NewRecord(when, slog.LevelWarn+1, "delivery", 0)
				r.AddAttrs(slog.String("first", "x"), slog.Attr{Key: key, Value: value}, slog.Int("last", 1))
				if ours, slogs := both(t, r); ours != slogs {
					t.Errorf("%q=%v:\n%s%s", key, value, ours, slogs)
				}
			}
		}
	}
}

type resolved struct{}

// LogValue implements slog.LogValuer.
func (resolved) LogValue() slog.Value { return slog.StringValue("late") }

func TestLoggersWithFieldsAndLevelsAreSlogs(t *testing.T) {
	var a, b bytes.Buffer
	for _, h := range []slog.Handler{NewJSONHandler(&a, slog.LevelWarn), slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelWarn})} {
		for _, log := range []*slog.Logger{slog.New(h), slog.New(h).With("x", 1), slog.New(h).WithGroup("g")} {
			for _, level := range []slog.Level{slog.LevelInfo, slog.LevelWarn} {
				if log.Enabled(context.Background(), level) {
					r := slog.NewRecord(time.Unix(1, 0), level, "m", 0)
					r.Add("y", 2)
					if err := log.Handler().Handle(context.Background(), r); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	if a.String() != b.String() || a.Len() == 0 {
		t.Errorf("%s%s", &a, &b)
	}
}

func FuzzALineIsSpelledAsSlogSpellsIt(f *testing.F) {
	f.Add("delivery", "workflow", "stripe/acct_1", 12.345, int64(200), int64(1_700_000_000_123_456_789))
	f.Add("\xff", "é", "\"\u2028<>&", 1e-9, int64(-1), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, msg, key, text string, number float64, whole, at int64) {
		r := slog.NewRecord(time.Unix(0, at), slog.Level(whole%16), msg, 0)
		r.AddAttrs(slog.String(key, text), slog.Float64("f", number), slog.Int64(key, whole), slog.Time("t", time.Unix(at, whole)), slog.Duration("d", time.Duration(at)))
		if ours, slogs := both(t, r); ours != slogs {
			t.Errorf("%s%s", ours, slogs)
		}
	})
}

func TestTextWithoutEscapesIsRecognised(t *testing.T) {
	for c := range 256 {
		want := c >= ' ' && c < 0x80 && c != '"' && c != '\\'
		for at := range 20 {
			text := bytes.Repeat([]byte{'a'}, 20)
			text[at] = byte(c)
			if got := plain(string(text)); got != want {
				t.Errorf("byte %#x at %d: %v", c, at, got)
			}
		}
	}
}
