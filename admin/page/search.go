package page

import (
	"net/url"
	"slices"
	"strings"

	"hooklock/admin/client"
)

// qualifiers are the filters of the API that the search field takes as NAME:VALUE, in the order in
// which it shows them.
var qualifiers = []string{"route", "workflow", "prefix", "status", "outcome", "got", "state", "lost", "since", "until",
	"event", "key", "id", "trace", "label"}

// parameter returns the name of a qualifier in the API.
func parameter(qualifier string) string {
	if qualifier == "got" { // what the sender got
		return "decision"
	}
	return qualifier
}

// states are words for status: that are another filter of the API.
var states = map[string][2]string{
	"unknown": {"outcome", string(client.Unknown)}, "waiting": {"state", string(client.ParkWaiting)},
	"blocked": {"state", string(client.ParkBlocked)},
	"lost":    {"lost", "true"}, "dead": {"state", string(client.ParkDeadLetter)},
	"succeeded": {"status", string(client.Success)}, "cancelled": {"status", string(client.Aborted)},
}

// parseSearch splits the text of the search field into filters; text is what remains, which may be
// any ID.
func parseSearch(field string) url.Values {
	q := url.Values{}
	var rest []string
	for _, word := range splitWords(field) {
		name, value, qualified := strings.Cut(word, ":")
		if !qualified || value == "" || !slices.Contains(qualifiers, name) {
			rest = append(rest, word)
			continue
		}
		if name == "status" {
			if other, is := states[strings.ToLower(value)]; is {
				q.Set(other[0], other[1])
				continue
			}
			value = strings.ToUpper(value)
		}
		q.Set(parameter(name), value)
	}
	if text := strings.Join(rest, " "); text != "" {
		q.Set("text", text)
	}
	return q
}

// splitWords splits at spaces; a part in double quotes keeps them.
func splitWords(text string) []string {
	quoted := false
	words := strings.FieldsFunc(text, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], `"`, "")
	}
	return words
}

// searchText returns the text of the search field for a query.
func searchText(q url.Values) string {
	words := []string{}
	add := func(word string) {
		if strings.Contains(word, " ") {
			word = `"` + word + `"`
		}
		words = append(words, word)
	}
	if text := q.Get("text"); text != "" {
		words = append(words, text)
	}
	for _, name := range qualifiers {
		if value := q.Get(parameter(name)); value != "" {
			add(name + ":" + value)
		}
	}
	return strings.Join(words, " ")
}
