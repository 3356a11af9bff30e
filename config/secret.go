package config

import (
	"fmt"
	"log/slog"
)

// redacted stands for a secret wherever one would be printed.
const redacted = "***"

// Secret is a text that is never shown: not by any verb of fmt, not by a log handler, not by an
// encoder. The zero value is no secret at all.
type Secret struct{ text string }

// newSecret returns text as a Secret.
func newSecret(text string) Secret { return Secret{text} }

// Reveal returns the secret itself, for the one place that needs it.
func (s Secret) Reveal() string { return s.text }

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.text == "" }

// String returns *** or, if there is no secret, "".
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return redacted
}

// Format writes String for every verb, %#v and %d included, which would print the field.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// MarshalText returns String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue returns String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
