package story

import (
	"fmt"
	"strings"
)

// ShellWord returns text as one word of a POSIX shell: what a sender or a person has written stays
// text, whatever it is. A control character becomes a call of printf, because a terminal acts upon
// it when the line is pasted. A NUL, which no argument can have, is left out.
func ShellWord(text string) string {
	if text != "" && strings.Trim(text, plainInShell) == "" {
		return text
	}
	var b strings.Builder
	b.WriteByte('\'')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\'':
			b.WriteString(`'\''`)
		case c == 0:
		case c < 0x20 && c != '\n', c == 0x7f:
			fmt.Fprintf(&b, `'"$(printf '\%03o')"'`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// plainInShell are the characters that mean themselves in every shell, wherever they stand in a
// word.
const plainInShell = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@%+"

// ShellLine returns a command as a line for a POSIX shell.
func ShellLine(args ...string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = ShellWord(a)
	}
	return strings.Join(words, " ")
}
