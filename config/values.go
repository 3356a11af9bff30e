package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"hooklock/idem"
)

// parseScalar reads the text of a value whose kind is neither a list nor a map. The result fits the
// Go field.
func (k *key) parseScalar(text string) (any, error) {
	switch k.kind {
	case kindText:
		return text, nil
	case kindChoice:
		if !slices.Contains(k.choices, text) {
			return nil, unknownWord(text, k.choices)
		}
		return text, nil
	case kindInt:
		return wholeNumber(text)
	case kindBool:
		if text != "true" && text != "false" {
			return nil, fmt.Errorf("%q is neither true nor false", text)
		}
		return text == "true", nil
	case kindDuration:
		if k.days {
			return parseDays(text)
		}
		return parseDuration(text)
	case kindSize:
		var s Size
		err := s.UnmarshalText([]byte(text))
		return s, err
	}
	return nil, errors.New("needs a list or a mapping, not a single value")
}

// tooLarge is the error of a number that is written well and does not fit. most is the largest that
// does: read in its place, it is refused with the limit of its setting.
type tooLarge struct {
	text string
	most any
}

// Error returns the limit of all numbers of this kind.
func (e tooLarge) Error() string {
	switch most := e.most.(type) {
	case time.Duration:
		return fmt.Sprintf("%s is out of bounds; the longest duration is %dh", e.text, int(most.Hours()))
	case Size:
		return fmt.Sprintf("%s is out of bounds; the largest size is %dGiB", e.text, most/GiB)
	}
	return fmt.Sprintf("%s is out of bounds; the largest number is %d", e.text, e.most)
}

// textOfLargest returns the text that a message has for the largest value of a kind.
func textOfLargest(most any) string {
	if d, is := most.(time.Duration); is {
		return idem.DurationText(d)
	}
	return fmt.Sprint(most)
}

// wholeNumber reads decimal digits. A leading zero is refused: YAML 1.1 takes 010 for eight, YAML
// 1.2 for ten.
func wholeNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	switch {
	case errors.Is(err, strconv.ErrRange) && text[0] != '-':
		return 0, tooLarge{text, math.MaxInt}
	case err != nil:
		return 0, fmt.Errorf("%q is not a whole number", text)
	}
	if digits := strings.TrimLeft(text, "+-"); len(digits) > 1 && digits[0] == '0' {
		return 0, fmt.Errorf("%s begins with a zero, which many readers take for octal; write %d", text, n)
	}
	return n, nil
}

// parseItem reads one item of kindTexts, kindChoices and kindStatuses.
func (k *key) parseItem(text string) (any, error) {
	switch {
	case k.kind == kindStatuses:
		var r StatusRange
		err := r.UnmarshalText([]byte(text))
		return r, err
	case k.kind == kindChoices && !slices.Contains(k.choices, text):
		return nil, unknownWord(text, k.choices)
	}
	return text, nil
}

// splitList splits a list from a source that has only text at its commas.
func splitList(text string) []string {
	items := []string{}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

func unknownWord(text string, words []string) error {
	if near := nearestWord(text, words); near != "" {
		return fmt.Errorf("%q is not known, did you mean %q?", text, near)
	}
	return fmt.Errorf("%q is not known; choose from %s", text, strings.Join(words, ", "))
}

// exampleValue returns a value that shows how one of this kind is written.
func (k *key) exampleValue() string {
	switch k.kind {
	case kindText:
		return "text"
	case kindChoice:
		return "one of " + strings.Join(k.choices, ", ")
	case kindInt:
		return "a whole number without quotes, e.g. 100"
	case kindBool:
		return "true or false"
	case kindDuration:
		return "a duration, e.g. 15s"
	case kindSize:
		return "a size, e.g. 64KiB"
	case kindTexts:
		return "a list of texts, e.g. [a, b]"
	case kindChoices:
		return "a list, e.g. [" + strings.Join(k.choices, ", ") + "]"
	case kindStatuses:
		return "a list of statuses, e.g. [2xx, 404]"
	case kindEntries:
		if k.typ == reflect.TypeFor[Labels]() {
			return "a mapping of name to template, e.g. {order: \"{body.order_number}\"}"
		}
		return "a mapping of decision to status, e.g. {locked: 503}"
	case kindMembers:
		return "a mapping of members to texts, e.g. {state: paid}"
	case kindCounts:
		return "a mapping of names to whole numbers, e.g. {erp: 20}"
	case kindItems:
		return "a list; each item begins with -"
	}
	return "a mapping with " + k.childNames()
}
