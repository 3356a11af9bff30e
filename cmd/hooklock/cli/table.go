package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// widest is how far a column is padded: a longer cell shifts its own line, and no other.
const widest = 48

// Table prints rows in columns, some rows at a time, so that a long list is not held in memory. Every cell is made plain.
type Table struct {
	Out    io.Writer
	Head   []string
	Rows   [][]string
	widths []int
	Begun  bool
}

// Add keeps a row until flush. An empty cell is shown as "-".
func (t *Table) Add(cells ...string) {
	for i, cell := range cells {
		if cells[i] = Plain(cell); cells[i] == "" {
			cells[i] = "-"
		}
	}
	t.Rows = append(t.Rows, cells)
}

// Flush prints what was added. Columns only ever become wider.
func (t *Table) Flush() error {
	if len(t.Rows) == 0 {
		return nil
	}
	rows := t.Rows
	if t.widths == nil {
		t.widths = make([]int, len(rows[0]))
	}
	if !t.Begun && t.Head != nil {
		rows = append([][]string{t.Head}, rows...)
	}
	t.Begun = true
	for _, cells := range rows {
		for i, cell := range cells {
			t.widths[i] = max(t.widths[i], min(Width(cell), widest))
		}
	}
	var text strings.Builder
	for _, cells := range rows {
		for i, cell := range cells {
			text.WriteString(cell)
			if i < len(cells)-1 {
				text.WriteString(strings.Repeat(" ", max(t.widths[i]-Width(cell), 0)+2))
			}
		}
		text.WriteByte('\n')
	}
	t.Rows = t.Rows[:0]
	_, err := io.WriteString(t.Out, text.String())
	return err
}

// Plain makes text safe for a terminal: what is not printable (control characters, escapes, marks that turn the direction of writing) is
// shown by its number, so that nobody's workflow name moves the cursor or looks like another.
func Plain(text string) string {
	if !strings.ContainsFunc(text, Odd) && utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case !Odd(r):
			out.WriteRune(r)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&out, `\x%02x`, r)
		case r > 0xFFFF:
			fmt.Fprintf(&out, `\U%08x`, r)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

// Odd reports whether a terminal could take r for anything but a letter.
func Odd(r rune) bool { return !strconv.IsPrint(r) }

// Clip shortens text that nobody needs whole, such as a reason, to n columns.
func Clip(text string, n int) string { return columns().Truncate(Plain(text), n, "…") }

// Width is how many columns a terminal gives to text.
func Width(text string) int { return columns().StringWidth(text) }

// columns is the same for everybody: go-runewidth's own default makes letters of ambiguous width wide where LANG is of East Asia, which most
// terminals there do not.
func columns() *runewidth.Condition { return &runewidth.Condition{StrictEmojiNeutral: true} }

// Span is a time span as people read it, in at most two units.
func Span(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	}
	seconds := int64(d / time.Second)
	for _, u := range []struct {
		size        int64
		big, little string
		part        int64
	}{{86400, "d", "h", 3600}, {3600, "h", "m", 60}, {60, "m", "s", 1}} {
		if seconds < u.size {
			continue
		}
		text := strconv.FormatInt(seconds/u.size, 10) + u.big
		if rest := seconds % u.size / u.part; rest > 0 {
			text += strconv.FormatInt(rest, 10) + u.little
		}
		return text
	}
	return strconv.FormatInt(seconds, 10) + "s"
}

// SpanSeconds is span for a JSON number of seconds.
func SpanSeconds(seconds float64) string {
	return Span(time.Duration(max(0, min(seconds, 1e9)) * float64(time.Second)))
}

// JSONLine is a JSON text of the server in one line. Characters that a terminal could take for a command are written as JSON escapes, which
// mean the same to a program.
func JSONLine(raw []byte) ([]byte, error) {
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		return nil, err
	}
	if !bytes.ContainsFunc(line.Bytes(), Odd) && utf8.Valid(line.Bytes()) {
		return line.Bytes(), nil
	}
	var out bytes.Buffer
	for _, r := range line.String() {
		switch {
		case r == utf8.RuneError || !Odd(r):
			out.WriteRune(r) // a byte that is no UTF-8 has become the sign for one
		case r > 0xFFFF:
			high, low := (r-0x10000)>>10+0xD800, (r-0x10000)&0x3FF+0xDC00
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.Bytes(), nil
}

// PrintObject prints one JSON object for scripts and readers.
func PrintObject(out io.Writer, raw []byte) error {
	line, err := JSONLine(raw)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, line, "", "  "); err != nil {
		return err
	}
	text.WriteByte('\n')
	_, err = out.Write(text.Bytes())
	return err
}
