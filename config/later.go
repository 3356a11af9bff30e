package config

import "strings"

// notBuiltKeys are settings that later releases have. The value, if any, is the one that changes nothing and is therefore
// accepted; an empty value always is.
var notBuiltKeys = map[string]string{
	"admin.tokens":            "",
	"routes[].hold":           "",
	"routes[].hold.on_status": "",
	"routes[].hold.ttl":       "30m",
}

// isLater reports whether path is, or is inside of, a setting of a later release; which value of it changes nothing; and
// whether it may be a group whose settings are to be looked at one by one.
func isLater(path string) (harmless string, group, later bool) {
	plain := withoutIndexes(path)
	if harmless, later = notBuiltKeys[plain]; later {
		return harmless, harmless == "", true
	}
	for i := strings.LastIndexByte(plain, '.'); i >= 0; i = strings.LastIndexByte(plain, '.') {
		plain = plain[:i]
		if _, later = notBuiltKeys[plain]; later {
			return "", false, true
		}
	}
	return "", false, false
}

// withoutIndexes turns routes[12].name into routes[].name.
func withoutIndexes(path string) string {
	var b strings.Builder
	inside := false
	for _, c := range path {
		switch {
		case c == '[':
			inside = true
			b.WriteString("[")
		case c == ']':
			inside = false
			b.WriteString("]")
		case !inside:
			b.WriteRune(c)
		}
	}
	return b.String()
}
