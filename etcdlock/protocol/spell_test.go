package protocol

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"hooklock/idem"
)

// set gives each field below v a value that is not zero, and none twice.
func set(t *testing.T, v reflect.Value, n *int64) {
	t.Helper()
	*n++
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(*n)
	case reflect.String:
		v.SetString("text " + string(rune('a'+*n%26)))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		set(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			set(t, v.Index(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			set(t, v.Index(i), n)
		}
	case reflect.Uint8:
		v.SetUint(uint64(*n % 251))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(*n, *n).UTC()))
			return
		}
		for _, field := range v.Fields() {
			set(t, field, n)
		}
	default:
		t.Fatalf("a %s: say here what to set, and in spell.go how it is spelled", v.Type())
	}
}

// sameAsJSON compares a value with what encoding/json makes of it.
func sameAsJSON(t *testing.T, v interface{ spelled() ([]byte, error) }) {
	t.Helper()
	want, wantErr := json.Marshal(v)
	got, err := v.spelled()
	if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
		t.Errorf("%v, %v\n%s\n%s", err, wantErr, got, want)
	}
}

func (v *lockValue) spelled() ([]byte, error)  { return v.spell() }
func (v *SlotHolder) spelled() ([]byte, error) { return v.spell(), nil }

func TestLocksAndSlotsAreSpelledAsJSONSpellsThem(t *testing.T) {
	for _, v := range []interface{ spelled() ([]byte, error) }{&lockValue{}, &SlotHolder{}} {
		sameAsJSON(t, v)
		var n int64
		all := reflect.ValueOf(v).Elem()
		set(t, all, &n)
		sameAsJSON(t, v)
		for _, f := range reflect.VisibleFields(all.Type()) { // each left out
			if f.Anonymous || len(f.Index) > 1 && f.Tag.Get("json") == "-" {
				continue
			}
			field := all.FieldByIndex(f.Index)
			was := reflect.ValueOf(field.Interface())
			field.SetZero()
			sameAsJSON(t, v)
			field.Set(was)
		}
	}
}

func FuzzLocksAndSlotsAreSpelledAsJSONSpellsThem(f *testing.F) {
	f.Add("w", "a\"b<&>\x00\n\x7f\u2028é", "\xff", int64(1), int64(-62135596800), true)
	f.Add("exec_a", "plain", "text", int64(1<<62), int64(253402300800), false)
	f.Fuzz(func(t *testing.T, one, two, three string, number, seconds int64, is bool) {
		at := time.Unix(seconds, number).UTC()
		e := idem.Entry{
			Execution: idem.ExecutionID(one), Scope: idem.Scope{Workflow: two, Key: idem.Key(three), PerEvent: is},
			Holder: two, Route: three, EventID: one,
			Credentials: two, CallbackHash: three, TraceParent: one, Attempt: int(number), StartedAt: at,
		}
		e.Slots = []idem.Slot{{Limit: one, Rule: two, N: int(number)}, {Limit: three}}
		sameAsJSON(t, &SlotHolder{Version: 1, Execution: e.Execution, Workflow: two, Route: three, Rule: two,
			Session: one, Since: number})
		copy(e.Fingerprint[:], three)
		copy(e.Parts[:], two)
		sameAsJSON(t, &lockValue{Version: 1, Lock: idem.Lock{Entry: e, Alive: two, MaxDuration: time.Duration(number),
			Held: is, CoolUntil: at}, RetentionNs: time.Duration(number), OwnToken: number})
	})
}

// BenchmarkSpell is the lock of a delivery as most are, by hand and by encoding/json.
func BenchmarkSpell(b *testing.B) {
	v := &lockValue{Version: 1, Lock: *sampleLock()}
	v.Cancel, v.Plan, v.Steps, v.Earlier, v.Attempt, v.Cooling, v.CoolUntil = nil, nil, nil, nil, 1, false, time.Time{}
	b.Run("by hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = v.spell()
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = json.Marshal(v)
		}
	})
}
