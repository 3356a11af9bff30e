package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of a body.
const (
	maxBody  = 1 << 20
	maxDepth = 16
	bodyTime = 10 * time.Second
)

// fields are the members that an object may have, and the variable for each. A member that is
// missing or null leaves its variable unchanged.
type fields map[string]any

// readBody reads a JSON object strictly: each member once, none that is not known, nothing after
// it.
func readBody(w http.ResponseWriter, r *http.Request, into fields) error {
	if p := checkMediaType(r); p != nil {
		return p
	}
	tooLarge := refuse("body_too_large", fmt.Sprintf("a body has at most %d bytes", maxBody))
	if r.ContentLength > maxBody {
		w.Header().Set("Connection", "close") // so that net/http does not read the rest
		return tooLarge
	}
	// without one, the listener's own limit holds
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return tooLarge
	case err != nil:
		return refuse("bad_request", "the body broke off, or came too slowly")
	}
	if err := decodeObject(text, into); err != nil {
		return refuse("bad_request", "the body is not what this takes: "+err.Error())
	}
	return nil
}

// checkMediaType accepts JSON, and the default of curl -d.
func checkMediaType(r *http.Request) *problem {
	if r.Header.Get("Content-Encoding") != "" {
		return refuse("unsupported_media_type", "send the body without Content-Encoding")
	}
	given := r.Header.Get("Content-Type")
	if given == "" {
		return nil
	}
	media, _, err := mime.ParseMediaType(given)
	if err != nil || media != "application/json" && media != "application/x-www-form-urlencoded" &&
		!strings.HasSuffix(media, "+json") {
		return refuse("unsupported_media_type", "send JSON with Content-Type: application/json")
	}
	return nil
}

// decodeObject reads text, which must be one object.
func decodeObject(text []byte, into fields) error {
	if !utf8.Valid(text) {
		return errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := checkValue(d); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the JSON object")
	}
	return decodeMembers(text, into)
}

// checkValue reads one value, and refuses nesting that no request needs and names that are given
// twice, which readers understand differently: encoding/json takes the last of two, and its
// DisallowUnknownFields takes "Token" for "token" as well.
func checkValue(d *json.Decoder) error {
	var names []map[string]bool // of the objects that are open; nil for an array
	awaitsName := false
	for {
		token, err := d.Token()
		if err != nil {
			return wellFormed(err)
		}
		if name, ok := token.(string); ok && awaitsName {
			seen := names[len(names)-1]
			if seen[name] {
				return fmt.Errorf("%s is given twice", quoteText(name))
			}
			seen[name] = true
			awaitsName = false
			continue
		}
		switch token {
		case json.Delim('{'):
			names = append(names, map[string]bool{})
		case json.Delim('['):
			names = append(names, nil)
		case json.Delim('}'), json.Delim(']'):
			names = names[:len(names)-1]
		}
		switch {
		case len(names) > maxDepth:
			return fmt.Errorf("it is nested deeper than %d", maxDepth)
		case len(names) == 0:
			return nil
		}
		awaitsName = names[len(names)-1] != nil
	}
}

func wellFormed(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errors.New("it ends too early; send a JSON object")
	}
	return fmt.Errorf("it is not JSON (%w)", err)
}

// decodeMembers decodes the members of an object that walk has checked.
func decodeMembers(text []byte, into fields) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil || members == nil {
		return errors.New("send a JSON object")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		place, known := into[name]
		if !known {
			return fmt.Errorf("unknown field %s; known are %s", quoteText(name),
				strings.Join(slices.Sorted(maps.Keys(into)), ", "))
		}
		if string(members[name]) == "null" {
			continue
		}
		if err := decodeMember(members[name], place); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// decodeMember decodes one member into its variable.
func decodeMember(text json.RawMessage, place any) error {
	var wanted string
	switch p := place.(type) {
	case fields:
		return decodeMembers(text, p)
	case func(json.RawMessage) error:
		return p(text)
	case *time.Duration:
		return durationIn(text, p)
	case *int64, *int:
		wanted = "a whole number, without quotes"
	case *bool:
		wanted = "true or false"
	case *string:
		wanted = "a text in quotes"
	case *[]string:
		wanted = "a list of texts"
	default:
		panic(fmt.Sprintf("admin: no reader for %T", place))
	}
	if json.Unmarshal(text, place) != nil {
		return errors.New("give " + wanted)
	}
	return nil
}

func durationIn(text json.RawMessage, place *time.Duration) error {
	var s string
	if json.Unmarshal(text, &s) != nil {
		return fmt.Errorf(`give a duration with its unit in quotes, such as "30m"; %s has none`, bytes.TrimSpace(text))
	}
	d, err := parseDuration(s)
	*place = d
	return err
}

// parseDuration reads a Go duration; a bare number is refused, because it has no unit.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if _, number := strconv.ParseFloat(s, 64); number == nil || err != nil {
		return 0, fmt.Errorf(`%s is no duration: give a number and its unit, such as "30m" or "1h30m"`, quoteText(s))
	}
	if d < 0 {
		return 0, fmt.Errorf("%s is negative", quoteText(s))
	}
	return d, nil
}

// quoteText quotes text from a client, cut to a readable length.
func quoteText(s string) string {
	const longest = 60
	if len(s) > longest {
		s = s[:longest] + "…"
	}
	return strconv.Quote(s)
}
