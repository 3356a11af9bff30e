package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// widest is the width to which a column is padded: a longer cell shifts only its own line.
// narrowest is the least width at which a value is wrapped.
const (
	widest    = 48
	narrowest = 8
)

// Table prints rows in columns. Flush prints the rows since the last one, so that a long list is
// not held in memory. Every cell is made plain. On a terminal no line is longer than the terminal
// is wide: columns are left out and cells are cut. Without a head, the last cell is wrapped.
type Table struct {
	Out    io.Writer
	Screen Screen
	Head   []string
	// Drop lists the heads of the columns that a narrow terminal leaves out, the first one first.
	Drop []string
	// Cut maps the heads of the columns that may be cut to the width that each keeps at least.
	Cut map[string]int
	// Middle lists the heads of the columns that are cut in the middle: of IDs, which differ at
	// their ends.
	Middle []string
	// Empty is a cell without information: a terminal is not shown a column in which all of the
	// first rows have it, unless the column is in Cut.
	Empty string
	// Hue returns the hue of a cell; nil: all are plain.
	Hue func(head, cell string) Hue

	Rows   [][]string
	hues   []Hue // of the last cell of each row; see Paint
	widths []int
	out    []bool // the columns that are left out
	Begun  bool
}

// Add keeps a row until Flush. An empty cell is shown as "-", except for the name in a table
// without a head.
func (t *Table) Add(cells ...string) {
	for i, cell := range cells {
		if cells[i] = Plain(cell); cells[i] == "" && (i > 0 || t.Head != nil) {
			cells[i] = "-"
		}
	}
	t.Rows = append(t.Rows, cells)
	t.hues = append(t.hues, Plainly)
}

// Paint sets the hue of the last cell of the last added row.
func (t *Table) Paint(h Hue) { t.hues[len(t.hues)-1] = h }

// Flush prints the added rows. Between flushes, columns only become wider.
func (t *Table) Flush() error {
	if len(t.Rows) == 0 {
		return nil
	}
	if t.widths == nil {
		t.widths, t.out = make([]int, len(t.Rows[0])), make([]bool, len(t.Rows[0]))
	}
	var text strings.Builder
	head := !t.Begun && t.Head != nil
	if head {
		t.measureCells(t.Head)
	}
	for _, cells := range t.Rows {
		t.measureCells(cells)
	}
	if t.Head != nil {
		t.fitScreen()
	}
	if head {
		t.writeLine(&text, t.Head, func(int) Hue { return Strong })
	}
	for n, cells := range t.Rows {
		t.writeRow(&text, cells, t.hues[n])
	}
	t.Begun, t.Rows, t.hues = true, t.Rows[:0], t.hues[:0]
	_, err := io.WriteString(t.Out, text.String())
	return err
}

func (t *Table) measureCells(cells []string) {
	for i, cell := range cells {
		most := widest
		if t.Head != nil && i == len(cells)-1 && t.Cut[t.Head[i]] > 0 { // no column follows
			most = math.MaxInt
		}
		t.widths[i] = max(t.widths[i], min(Width(cell), most))
	}
}

// fitScreen leaves out and cuts columns until a line fits the screen.
func (t *Table) fitScreen() {
	if !t.Screen.Terminal() {
		return
	}
	if t.Empty != "" && !t.Begun {
		t.leaveOutEmpty()
	}
	for _, name := range t.Drop {
		if t.excessWidth() <= t.totalRoom() {
			break
		}
		if i := slices.Index(t.Head, name); i >= 0 {
			t.out[i] = true
		}
	}
	for t.excessWidth() > 0 && t.totalRoom() > 0 {
		t.widths[t.widestColumn()]--
	}
}

// leaveOutEmpty leaves out the columns without information, except for those in Cut.
func (t *Table) leaveOutEmpty() {
	for i, name := range t.Head {
		_, keep := t.Cut[name]
		t.out[i] = !keep && !slices.ContainsFunc(t.Rows, func(cells []string) bool { return cells[i] != t.Empty })
	}
}

// excessWidth returns by how much a line is wider than the screen.
func (t *Table) excessWidth() int {
	all := -2
	for i, w := range t.widths {
		if !t.out[i] {
			all += w + 2
		}
	}
	return all - t.Screen.Width
}

// columnRoom returns by how much a column can be cut.
func (t *Table) columnRoom(column int) int {
	least, cuts := t.Cut[t.Head[column]]
	if t.out[column] || !cuts {
		return 0
	}
	return max(0, t.widths[column]-max(least, Width(t.Head[column])))
}

// totalRoom returns by how much all columns together can be cut.
func (t *Table) totalRoom() (n int) {
	for i := range t.widths {
		n += t.columnRoom(i)
	}
	return n
}

// widestColumn returns the widest of the columns that can be cut, or -1.
func (t *Table) widestColumn() int {
	column := -1
	for i, w := range t.widths {
		if t.columnRoom(i) > 0 && (column < 0 || w > t.widths[column]) {
			column = i
		}
	}
	return column
}

// writeRow writes a row.
func (t *Table) writeRow(text *strings.Builder, cells []string, last Hue) {
	if t.Head == nil {
		t.writePair(text, cells, last)
		return
	}
	t.writeLine(text, cells, func(i int) Hue {
		switch {
		case i == len(cells)-1 && last != Plainly:
			return last
		case t.Hue == nil:
			return Plainly
		}
		return t.Hue(t.Head[i], cells[i])
	})
}

func (t *Table) writeLine(text *strings.Builder, cells []string, hue func(int) Hue) {
	gap := 0
	for i, cell := range cells {
		if t.out[i] {
			continue
		}
		if t.Screen.Terminal() {
			cell = t.cutCell(i, cell)
		}
		text.WriteString(strings.Repeat(" ", gap))
		text.WriteString(t.Screen.Paint(hue(i), cell))
		gap = max(t.widths[i]-Width(cell), 0) + 2
	}
	text.WriteByte('\n')
}

// cutCell returns a cell that is no wider than its column.
func (t *Table) cutCell(column int, cell string) string {
	n := t.widths[column]
	if Width(cell) <= n || !slices.Contains(t.Middle, t.Head[column]) {
		return columnWidths().Truncate(cell, n, "…")
	}
	begin := columnWidths().Truncate(cell, n/2, "")
	return begin + columnWidths().TruncatePrefix(cell, n-Width(begin), "…")
}

// writePair writes names and a value behind them, which is wrapped below itself.
func (t *Table) writePair(text *strings.Builder, cells []string, last Hue) {
	indent, value := 0, cells[len(cells)-1]
	for i, cell := range cells[:len(cells)-1] {
		text.WriteString(cell + strings.Repeat(" ", max(t.widths[i]-Width(cell), 0)+2))
		indent += t.widths[i] + 2
	}
	for n, piece := range foldText(value, t.Screen.Width-indent) {
		if n > 0 {
			text.WriteString("\n" + strings.Repeat(" ", indent))
		}
		text.WriteString(t.Screen.Paint(last, piece))
	}
	text.WriteByte('\n')
}

// foldText breaks text into pieces of at most n columns, between words if possible. If n is below
// narrowest, it returns text in one piece.
func foldText(text string, n int) (pieces []string) {
	for n >= narrowest && Width(text) > n {
		piece := columnWidths().Truncate(text, n, "")
		if at := strings.LastIndexByte(piece, ' '); at > 0 && text[len(piece)] != ' ' {
			if word, _, _ := strings.Cut(text[at+1:], " "); Width(word) <= n { // a longer one is broken anyway
				piece = piece[:at]
			}
		}
		pieces = append(pieces, piece)
		text = strings.TrimPrefix(text[len(piece):], " ")
	}
	return append(pieces, text)
}

// Plain makes text safe for a terminal: it spells characters that are not printable (controls,
// escapes, marks that change the direction of writing) by their numbers, so that a workflow's name
// can neither move the cursor nor look like another.
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

// Odd reports whether r is not printable.
func Odd(r rune) bool { return !strconv.IsPrint(r) }

// Clip cuts text to n columns of one line.
func Clip(text string, n int) string { return columnWidths().Truncate(Plain(text), n, "…") }

// Width returns how many columns of a terminal text takes.
func Width(text string) int { return columnWidths().StringWidth(text) }

// columnWidths does not depend on LANG: go-runewidth's default makes letters of ambiguous width
// wide under an East Asian LANG, unlike most terminals.
func columnWidths() *runewidth.Condition { return &runewidth.Condition{StrictEmojiNeutral: true} }

// Span returns a time span in at most two units.
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

// SpanSeconds is Span for a JSON number of seconds.
func SpanSeconds(seconds float64) string {
	return Span(time.Duration(max(0, min(seconds, 1e9)) * float64(time.Second)))
}

// JSONLine returns a JSON text of the server in one line. Characters that are not printable become
// JSON escapes, which mean the same to a program.
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
			out.WriteRune(r) // an invalid byte has become U+FFFD
		case r > 0xFFFF:
			high, low := (r-0x10000)>>10+0xD800, (r-0x10000)&0x3FF+0xDC00
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.Bytes(), nil
}

// PrintObject prints one JSON object, indented.
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
