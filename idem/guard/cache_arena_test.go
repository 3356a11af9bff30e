package guard

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hooklock/idem"
)

// The collector looks at all that has pointers: the records of a full cache would take a fifth of
// what new events cost.
func TestACollectionHasNothingToFollowInTheCache(t *testing.T) {
	for _, kept := range []any{remembered{}, block{}} {
		if path := pointers(reflect.TypeOf(kept)); path != "" {
			t.Errorf("%T%s has a pointer", kept, path)
		}
	}
}

// pointers is where in a type a pointer is; "" = nowhere.
func pointers(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Struct:
		for f := range of.Fields() {
			if path := pointers(f.Type); path != "" {
				return "." + f.Name + path
			}
		}
		return ""
	case reflect.Array:
		return pointers(of.Elem())
	case reflect.Bool, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint32:
		return ""
	default:
		return " (" + of.String() + ")"
	}
}

func TestWhatIsRememberedComesBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := NewCache(8 * cachedSize)
		type entry struct{ credentials, body string }
		known := map[int]entry{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, 9).Draw(t, "record")
			rec := cached(i)
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				c.Forget(rec.Execution)
				delete(known, i)
			case 1:
				got, want := c.get(rec.Scope.Key, noon), known[i]
				if got == nil {
					continue // pushed out, or never there
				}
				if _, ok := known[i]; !ok {
					t.Fatalf("record %d is there", i)
				}
				if got.Credentials != want.credentials || string(got.Answer.Body) != want.body ||
					got.Answer.Header[0].Value != want.body {
					t.Fatalf("record %d: %+v, want %+v", i, got, want)
				}
			default:
				e := entry{strings.Repeat("c", rapid.IntRange(0, 200).Draw(t, "credentials")),
					strings.Repeat("b", rapid.IntRange(1, 400).Draw(t, "body"))}
				rec.Credentials, rec.Answer = e.credentials, &idem.Answer{Status: 201, Bytes: -1, Whole: true,
					Header: []idem.HeaderField{{Name: "Some", Value: e.body}, {}}, Body: []byte(e.body)}
				c.add(rec, c.beginRead(noon), time.Hour)
				delete(known, i)
				if got := c.get(rec.Scope.Key, noon); got != nil {
					known[i] = e
					if !reflect.DeepEqual(got.Answer, rec.Answer) {
						t.Fatalf("%+v, want %+v", got.Answer, rec.Answer)
					}
				}
			}
			if weight := onRing(c); weight != c.bytes || c.bytes > c.max {
				t.Fatalf("%d bytes of %d on the ring, at most %d", c.bytes, weight, c.max)
			}
		}
		if c.arena.cut > uint32(1+c.max/blockSize) || c.arena.made > uint32(1+c.max/rememberedSize) {
			t.Fatalf("%d blocks and %d records for %d bytes: what is taken off is not used again", c.arena.cut,
				c.arena.made, c.max)
		}
	})
}

// onRing is what the records weigh that are in use.
func onRing(c *Cache) (weight int) {
	for n := c.arena.recordAt(0).next; n != 0; n = c.arena.recordAt(n).next {
		weight += c.arena.recordAt(n).memorySize()
	}
	return weight
}

func TestAnAnswerWithNothingInItIsOne(t *testing.T) {
	for _, a := range []*idem.Answer{nil, {}, {Whole: true}, {Status: 204}} {
		for _, credentials := range []string{"", "c"} {
			gotCredentials, got := decodeAnswer(encodeAnswer(credentials, a))
			if gotCredentials != credentials || !reflect.DeepEqual(got, a) {
				t.Errorf("%q, %+v: got %q, %+v", credentials, a, gotCredentials, got)
			}
		}
	}
}
