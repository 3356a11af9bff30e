package naming

import "strings"

// IsPlaceholder reports whether an event ID, or a part of it between slashes, is what a sender
// sends where a value is missing: a template that was never filled in ($UNIQID, {{id}}, ${id},
// %{id}), or a word for nothing (undefined, null). All events of such a sender have one ID.
func IsPlaceholder(eventID string) bool {
	for _, mark := range [...]string{"{{", "${", "%{", "<%"} {
		if strings.Contains(eventID, mark) {
			return true
		}
	}
	for part := range strings.SplitSeq(eventID, "/") {
		if len(part) > 1 && part[0] == '$' && isVariable(part[1:]) {
			return true
		}
		switch len(part) {
		case 3, 4, 6, 9, 15: // those of the words
			for _, word := range [...]string{"nil", "nan", "null", "none", "(null)", "undefined", "[object object]"} {
				if strings.EqualFold(part, word) {
					return true
				}
			}
		}
	}
	return false
}

// isVariable reports whether text is the name of a variable: letters, digits and underscores, and
// not a number.
func isVariable(text string) bool {
	for i := range len(text) {
		c := text[i]
		if letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_'; !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}
