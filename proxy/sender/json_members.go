package sender

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/valyala/fastjson"
)

// Some senders sign single members of a JSON body, after parsing. So a body that two JSON parsers
// could read differently is refused: otherwise the signature would be checked on one reading and
// the upstream would act on the other.

// parseStrict parses a JSON body with signed members. It validates the body with the standard
// library first, because fastjson accepts some invalid JSON.
func parseStrict(scheme string, body []byte) (*fastjson.Value, error) {
	if !json.Valid(body) {
		return nil, &SignatureError{scheme, Malformed, "body", "is not JSON"}
	}
	v, err := parseJSON(body)
	if err != nil {
		return nil, &SignatureError{scheme, Malformed, "body", err.Error()}
	}
	return v, nil
}

// maxValues bounds the values of a parsed JSON body, and of each element of a batch. For a text
// such as "[0,0,0…" the parsed tree takes 500 times the memory of the text. limits.memory does not
// count that, and most bodies are parsed before their signature is checked.
const maxValues = 16 << 10

// parseJSON parses a body with at most maxValues values.
func parseJSON(body []byte) (*fastjson.Value, error) {
	if hasMore(body, maxValues) {
		return nil, fmt.Errorf("has more than %d values", maxValues)
	}
	v, err := fastjson.ParseBytes(body)
	if err != nil {
		return nil, errors.New("is not JSON, or nests too deep")
	}
	return v, nil
}

// maxElements bounds the events in one request.
const maxElements = 10_000

const jsonSpace = " \t\r\n"

// eachElement calls f with each element of a body that is a JSON array, so that a batch takes the
// memory of its largest event. An element is valid until f returns. eachElement stops at the first
// status that is not IDFound and returns it. It returns IDMissing if the body is not an array, or
// an empty one, or exceeds maxElements or maxValues.
func eachElement(body []byte, f func(e *fastjson.Value) IDStatus) IDStatus {
	rest, isArray := bytes.CutPrefix(bytes.TrimLeft(body, jsonSpace), []byte{'['})
	if !isArray {
		return IDMissing
	}
	var p fastjson.Parser
	for range maxElements {
		end := elementEnd(rest)
		if end == len(rest) || hasMore(rest[:end], maxValues) {
			return IDMissing
		}
		e, err := p.ParseBytes(rest[:end])
		if err != nil {
			return IDMissing
		}
		if status := f(e); status != IDFound {
			return status
		}
		if rest[end] == ']' && len(bytes.TrimLeft(rest[end+1:], jsonSpace)) == 0 {
			return IDFound
		} else if rest[end] == ']' {
			return IDMissing
		}
		rest = rest[end+1:]
	}
	return IDMissing
}

// elementEnd returns the index of the comma or bracket after the first element of rest, or
// len(rest). It does not validate the element.
func elementEnd(rest []byte) int {
	depth, inside := 0, false
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case inside:
			switch c {
			case '\\':
				i++
			case '"':
				inside = false
			}
		case c == '"':
			inside = true
		case c == '[' || c == '{':
			depth++
		case depth == 0 && (c == ',' || c == ']'):
			return i
		case c == ']' || c == '}':
			depth--
		}
	}
	return len(rest)
}

// hasMore reports whether a JSON text has more values than most.
func hasMore(text []byte, most int) bool {
	if len(text) <= 2*most { // each value takes at least one character and a separator
		return false
	}
	values, inside := 1, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inside:
			switch c {
			case '\\':
				i++
			case '"':
				inside = false
			}
		case c == '"':
			inside = true
		case c == ',' || c == '[' || c == '{':
			values++
		}
	}
	return values > most
}

// signedObject returns the object at keys. The names of its members must differ by more than their
// case, because parsers such as encoding/json accept "message" for Message.
func signedObject(scheme, part string, v *fastjson.Value, keys ...string) (*fastjson.Value, error) {
	at := v.Get(keys...)
	if at == nil || at.Type() != fastjson.TypeObject {
		return nil, &SignatureError{scheme, Missing, part, "no such object in the body"}
	}
	seen, twice := map[string]bool{}, false
	at.GetObject().Visit(func(name []byte, _ *fastjson.Value) {
		folded := foldCase(name)
		twice = twice || seen[folded]
		seen[folded] = true
	})
	if twice {
		return nil, &SignatureError{scheme, Malformed, part, "has a member twice"}
	}
	return at, nil
}

// foldCase returns name with each letter replaced by the smallest code point that Unicode folds to
// it, so that names that differ only by case are equal.
func foldCase(name []byte) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, string(name))
}

// halfCharacter reports whether valid JSON escapes one half of a surrogate pair without the other.
// Some parsers keep the escape and some write U+FFFD, so one signature would fit two texts.
func halfCharacter(body []byte) bool {
	for i := 0; i+1 < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		first, ok := unescapeRune(body[i:])
		switch second, pair := unescapeRune(body[min(i+6, len(body)):]); {
		case !ok:
			i++ // the character after the backslash, which may be another backslash
		case !utf16.IsSurrogate(first):
			i += 5
		case !pair || utf16.DecodeRune(first, second) == unicode.ReplacementChar:
			return true
		default:
			i += 11
		}
	}
	return false
}

// unescapeRune parses the \uXXXX at the start of text.
func unescapeRune(text []byte) (r rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}

// memberText returns a member as senders sign it: a string unescaped, a number or boolean as it is
// written, and nothing for null or an absent member. ok is false for objects and arrays.
func memberText(v *fastjson.Value, name string) (value []byte, ok bool) {
	m := v.Get(name)
	if m == nil {
		return nil, true
	}
	switch m.Type() {
	case fastjson.TypeString:
		return m.GetStringBytes(), true
	case fastjson.TypeNull:
		return nil, true
	case fastjson.TypeObject, fastjson.TypeArray:
		return nil, false
	}
	return m.MarshalTo(nil), true
}

// memberTexts returns the named members of an object, which are strings, numbers or booleans.
func memberTexts(v *fastjson.Value, names ...string) ([]string, IDStatus) {
	if v == nil || v.Type() != fastjson.TypeObject {
		return nil, IDMissing
	}
	values := make([]string, len(names))
	seen := make([]bool, len(names))
	twice := false
	v.GetObject().Visit(func(name []byte, m *fastjson.Value) {
		i := slices.Index(names, string(name))
		if i < 0 {
			return
		}
		twice = twice || seen[i]
		seen[i] = true
		switch m.Type() {
		case fastjson.TypeString:
			values[i] = string(m.GetStringBytes())
		case fastjson.TypeNumber, fastjson.TypeTrue, fastjson.TypeFalse:
			values[i] = m.String()
		}
	})
	if twice {
		return nil, IDAmbiguous
	}
	if slices.Contains(values, "") {
		return nil, IDMissing
	}
	return values, IDFound
}

// digestWithout returns the digest of a value without the named members, at any depth, which change
// between attempts. It modifies v. It returns "" if an object has one of them twice.
func digestWithout(v *fastjson.Value, names ...string) string {
	if !dropMembers(v, names) {
		return ""
	}
	sum := sha256.Sum256(v.MarshalTo(nil))
	return hex.EncodeToString(sum[:])
}

// dropMembers deletes the named members, and reports whether no object had one of them twice.
func dropMembers(v *fastjson.Value, names []string) bool {
	once := true
	switch v.Type() {
	case fastjson.TypeArray:
		for _, e := range v.GetArray() {
			once = once && dropMembers(e, names)
		}
	case fastjson.TypeObject:
		for _, name := range names {
			v.Del(name)
			once = once && !v.Exists(name)
		}
		v.GetObject().Visit(func(_ []byte, m *fastjson.Value) { once = once && dropMembers(m, names) })
	}
	return once
}

func countMember(v *fastjson.Value, name string) int {
	if v.Type() != fastjson.TypeObject {
		return 0
	}
	n := 0
	v.GetObject().Visit(func(key []byte, _ *fastjson.Value) {
		if string(key) == name {
			n++
		}
	})
	return n
}

func onceOrAmbiguous(n int) EventID {
	if n > 1 {
		return ambiguousID
	}
	return missingID
}

// memberIs returns a function that recognises a handshake by one member. A member that is given
// twice does not count: the upstream might read the other one.
func memberIs(member, value string) func(*Delivery) bool {
	return func(d *Delivery) bool { return hasMember(objectWith(d.Body, value), member, value) }
}

func hasMember(v *fastjson.Value, member, value string) bool {
	got, status := memberTexts(v, member)
	return status == IDFound && got[0] == value
}

// objectWith returns the body as a JSON object if it contains word, else nil. It searches for word
// first because parsing costs more and nearly no delivery is a handshake. No sender escapes the
// letters of such words.
func objectWith(body []byte, word string) *fastjson.Value {
	if !bytes.Contains(body, []byte(word)) {
		return nil
	}
	v, err := parseJSON(body)
	if err != nil || v.Type() != fastjson.TypeObject {
		return nil
	}
	return v
}
