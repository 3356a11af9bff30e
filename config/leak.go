package config

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"hooklock/idem/naming"
)

// hideSecrets hides them in what was found in a configuration.
func (ps Problems) hideSecrets() {
	for i := range ps {
		ps[i].Path, ps[i].Text = naming.HideSecrets(ps[i].Path), naming.HideSecrets(ps[i].Text)
	}
}

// WithoutSecret returns the error of reading the file called name, which a person gave as the file
// of a secret. If name may be the secret itself, the error does not have it.
func WithoutSecret(name string, err error) error {
	if err == nil || isFileName(name) {
		return err
	}
	why := "cannot be read"
	if errors.Is(err, fs.ErrNotExist) {
		why = "is not there"
	}
	return fmt.Errorf("the file %s, and its name is not shown, because it may be the secret itself: write the "+
		"secret into a file, and the path of that file here, such as ./%s",
		why, "secrets/stripe")
}

var (
	fileEnding = regexp.MustCompile(`\.[a-z]{1,8}$`)
	plainName  = regexp.MustCompile(`^[A-Za-z_-]+$`)
	variable   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	capitals   = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)
)

// isFileName reports whether text is the name of a file, and hardly a secret in its place. A path
// has a slash or an ending; a secret is long, and mixes letters with digits.
func isFileName(text string) bool {
	if naming.HideSecrets(text) != text || strings.ContainsFunc(text, isControl) {
		return false
	}
	if plainName.MatchString(text) {
		return !isRandom(text)
	}
	beginsAsPath := strings.HasPrefix(text, "/") || strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../")
	if !beginsAsPath && !fileEnding.MatchString(text) && (!strings.ContainsAny(text, `/\`) || isRandom(text)) {
		return false
	}
	for segment := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(`/\.`, r) }) {
		if isRandom(segment) {
			return false
		}
	}
	return true
}

// isVariable reports whether text is the name of a variable, and hardly a secret in its place.
func isVariable(text string) bool {
	switch {
	case !variable.MatchString(text) || naming.HideSecrets(text) != text || isRandom(text):
		return false
	case plainName.MatchString(text):
		return true
	}
	return capitals.MatchString(text) && (strings.Contains(text, "_") || len(text) < leastRandom)
}

// leastRandom is the least length of a text that is taken for a random one.
const leastRandom = 16

// isRandom reports whether text looks like a random one, in base64 or hex. Names have their digits
// at the end.
func isRandom(text string) bool {
	named := strings.TrimRight(text, digits)
	mixed := strings.ContainsAny(named, digits) && strings.ContainsAny(text, lowerCase) &&
		strings.ContainsAny(text, upperCase)
	hex := strings.ContainsAny(text, digits) && madeOf(strings.ToLower(text), digits+"abcdef-")
	return len(text) >= leastRandom && (mixed || hex)
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
