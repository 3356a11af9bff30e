package config

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// issued are the forms of secrets that senders and servers issue. The first group stays in sight: it
// says which kind it is, and nothing of the secret.
var issued = regexp.MustCompile(strings.Join([]string{
	`\b(whsec_|whsk_|(?:sk|rk)_(?:live|test)_|rzp_live_|gh[opsur]_|github_pat_|glpat-|xox[a-z]-|xapp-|shp[a-z]{2}_|npm_|dop_v1_|hvs\.|lin_wh_|pdl_[a-z]+_|AKIA|ASIA|SG\.)[A-Za-z0-9_+/=.-]{8,}`,
	`\b(eyJ)[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?`,         // a JSON Web Token
	`(?i:(\b(?:bearer|basic) ))[A-Za-z._~+/=-]*[0-9][A-Za-z0-9._~+/=-]*`, // credentials of a header
	`(-----BEGIN [A-Z ]*PRIVATE KEY-----)(?s:.*?-----END [A-Z ]*PRIVATE KEY-----|.*)`,
	`([a-z]://)[^/?#\s"]*@`, // who calls, in a URL
}, "|"))

// HideSecrets returns text without the secrets in it that can be told by their form, such as
// whsec_… of Stripe or the user and password of a URL. It is for messages that quote what a person
// wrote: many write the secret where its file is asked for.
func HideSecrets(text string) string {
	return issued.ReplaceAllStringFunc(text, func(secret string) string {
		groups := issued.FindStringSubmatch(secret)
		kind := strings.Join(groups[1:], "")
		if strings.HasSuffix(kind, "://") {
			return kind + "…@"
		}
		return kind + redacted
	})
}

// hideSecrets hides them in what was found in a configuration.
func (ps Problems) hideSecrets() {
	for i := range ps {
		ps[i].Path, ps[i].Text = HideSecrets(ps[i].Path), HideSecrets(ps[i].Text)
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
	return fmt.Errorf("the file %s, and its name is not shown, because it may be the secret itself: write the secret into a file, and the path of that file here, such as ./%s",
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
	if HideSecrets(text) != text || strings.ContainsFunc(text, isControl) {
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
	case !variable.MatchString(text) || HideSecrets(text) != text || isRandom(text):
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
	mixed := strings.ContainsAny(named, digits) && strings.ContainsAny(text, lowerCase) && strings.ContainsAny(text, upperCase)
	hex := strings.ContainsAny(text, digits) && madeOf(strings.ToLower(text), digits+"abcdef-")
	return len(text) >= leastRandom && (mixed || hex)
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
