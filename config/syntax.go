package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"hooklock/idem/naming"
)

var yamlLine = regexp.MustCompile(`line (\d+): `)

// reportSyntax reports an error of the YAML parser. The parser names the line where the group
// begins that it cannot read, and not the line that is wrong.
func (f *fileParser) reportSyntax(err error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	at := f.originOf(nil)
	if found := yamlLine.FindStringSubmatchIndex(message); found != nil {
		at.Line, _ = strconv.Atoi(message[found[2]:found[3]])
		message = message[:found[0]] + message[found[1]:]
	}
	if strings.HasPrefix(message, "unknown anchor") { // the parser quotes it, and it may be a secret
		message = "an alias (*) stands here, and nothing is anchored (&) by that name; put text that begins with * " +
			"in quotes"
	}
	if line := f.wrongLine(); line > 0 {
		at.Line, at.Column = line, indentOf(f.lines[line-1])+1
	}
	for jargon, plain := range plainErrors {
		if strings.Contains(message, jargon) {
			message = plain
		}
	}
	if at.Line > 0 && at.Line <= len(f.lines) {
		if open := strings.IndexAny(f.lines[at.Line-1], "\"'[{"); message == openBracket && open >= 0 {
			at.Column = utf8.RuneCountInString(f.lines[at.Line-1][:open]) + 1
		}
		for _, explain := range []func(line int) (place, string){f.strangeCharacter, f.bareBraces, f.wrongIndent} {
			if p, why := explain(at.Line); why != "" {
				at.Line, at.Column, message = p.line, p.column, why
				break
			}
		}
	}
	f.refuse(at, "", "not valid YAML: %s", message)
}

// plainErrors says in plain words what the parser says in those of its grammar.
var plainErrors = map[string]string{
	"did not find expected ',' or '": openBracket,
	"found unexpected end of stream": openBracket,
	"could not find expected ':'":    "a colon and a space are missing after the key",
	"mapping values are not allowed": "a second key and colon in one line; begin a new line, or put text that has a " +
		"colon in quotes",
	"that cannot start any token": "text that begins with this character needs quotes",
}

const openBracket = "a quotation mark or a bracket that opens here is not closed, or a comma is missing"

// place is a character of the file; line and column count from 1, columns in characters.
type place struct{ line, column int }

// maxReread bounds how much is parsed again, in bytes, to find the line of an error.
const maxReread = 16 << 20

// wrongLine returns the number of the line that makes the file invalid: what stands before it is
// valid. It is 0 if that is not found.
func (f *fileParser) wrongLine() int {
	text := []byte(strings.Join(f.lines, "\n"))
	reader := &oneByOne{text: text}
	if decodeAll(reader) == nil {
		return 0
	}
	end, read := reader.read, 0
	for {
		end = bytes.LastIndexByte(text[:end], '\n')
		if end < 0 {
			return 1
		}
		if read += end; read > maxReread {
			return 0
		}
		if decodeAll(bytes.NewReader(text[:end])) == nil {
			break
		}
	}
	line := bytes.Count(text[:end], []byte{'\n'}) + 2
	// the parser reads over it
	for line < len(f.lines) && isNothing(f.lines[line-1]) && !strings.Contains(f.lines[line-1], "\t") {
		line++
	}
	return line
}

// isNothing reports whether a line is blank or a comment.
func isNothing(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return line == "" || line[0] == '#'
}

// decodeAll returns the first error of the YAML documents in r.
func decodeAll(r io.Reader) error {
	decoder := yaml.NewDecoder(r)
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// oneByOne gives out one byte in each Read, so that little more is read than the parser looked at.
type oneByOne struct {
	text []byte
	read int
}

// Read implements io.Reader.
func (o *oneByOne) Read(p []byte) (int, error) {
	if o.read == len(o.text) || len(p) == 0 {
		return 0, io.EOF
	}
	p[0] = o.text[o.read]
	o.read++
	return 1, nil
}

// splitLines returns the lines of text without their ends.
func splitLines(text []byte) []string {
	return strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// strangeCharacters are not what they look like to YAML: editors and web pages put them in place of
// quotes and spaces.
var strangeCharacters = map[rune]string{
	'\u00a0': "a no-break space", '\u202f': "a narrow no-break space", '\u2007': "a figure space",
	'\u2003': "an em space", '\u2002': "an en space",
	'\u3000': "an ideographic space", '\u200b': "a zero-width space", '\ufeff': "a byte order mark",
	'“': quoteMark, '”': quoteMark, '„': quoteMark, '«': quoteMark, '»': quoteMark, '‘': quoteMark, '’': quoteMark,
	'‚': quoteMark,
}

const quoteMark = "a typographic quotation mark"

// describeStrange says what a character is that is not what it looks like; "" for all others.
func describeStrange(r rune) string {
	switch name := strangeCharacters[r]; name {
	case "":
		return ""
	case quoteMark:
		return fmt.Sprintf("%c (%U) is %s, and part of the text to YAML; write \" or '", r, r, name)
	default:
		return fmt.Sprintf("%U is %s, and no space to YAML; write a plain space, or remove it", r, name)
	}
}

// strangeCharacter finds the first one up to a line that is wrong, outside of quotes and comments.
func (f *fileParser) strangeCharacter(last int) (place, string) {
	for i, line := range f.lines[:last] {
		if indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]; strings.Contains(indent, "\t") &&
			(i+1 == last || !isNothing(line)) {
			return place{i + 1, strings.IndexByte(indent, '\t') + 1},
				"a tab begins this line; YAML is indented with spaces"
		}
		for at, r := range bareCharacters(line) {
			if why := describeStrange(r); why != "" {
				return place{i + 1, utf8.RuneCountInString(line[:at]) + 1}, why
			}
		}
	}
	return place{}, ""
}

// bareCharacters yields the characters of a line that stand outside of quotes and of a comment,
// with their byte offsets.
func bareCharacters(line string) func(yield func(at int, r rune) bool) {
	return func(yield func(int, rune) bool) {
		quote, before := rune(0), ' '
		for at, r := range line {
			switch {
			case quote != 0:
				if r == quote && before != '\\' {
					quote = 0
				}
			case r == '#' && strings.ContainsRune(" \t", before):
				return
			case (r == '"' || r == '\'') && strings.ContainsRune(" [{,", before):
				quote = r
			case !yield(at, r):
				return
			}
			before = r
		}
	}
}

// bareBraces finds a template or a variable of a path without quotes, which YAML takes for a
// mapping.
func (f *fileParser) bareBraces(number int) (place, string) {
	line := f.lines[number-1]
	for at, r := range bareCharacters(line) {
		if r != '{' {
			continue
		}
		if text := bracedText(line[at:]); text != "" {
			begin := strings.LastIndexAny(line[:at], " ,[{") + 1
			whole := line[begin:at] + text
			return place{number, utf8.RuneCountInString(line[:begin]) + 1}, "text with braces " + inQuotes(whole)
		}
	}
	return place{}, ""
}

// quotesNeeded says how to write the template, or variable of a path, that YAML took for the
// mapping n; "" if it is a mapping that was meant.
func (f *fileParser) quotesNeeded(n *yaml.Node) string {
	if n.Kind != yaml.MappingNode || n.Line < 1 || n.Line > len(f.lines) {
		return ""
	}
	line := []rune(f.lines[n.Line-1])
	if n.Column > len(line) || line[n.Column-1] != '{' {
		return ""
	}
	if text := bracedText(string(line[n.Column-1:])); text != "" {
		return "text with braces " + inQuotes(text)
	}
	return ""
}

// refuseStrange refuses a value or key without quotes that has a character which is not what it
// looks like, and reports whether it did. A quotation mark inside of a text is meant.
func (f *fileParser) refuseStrange(n *yaml.Node, path string) bool {
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return false
	}
	for i, r := range []rune(n.Value) {
		outer := i == 0 || i == utf8.RuneCountInString(n.Value)-1
		if why := describeStrange(r); why != "" && (outer || strangeCharacters[r] != quoteMark) {
			at := f.originOf(n)
			at.Column += i
			f.refuse(at, path, "%s", why)
			return true
		}
	}
	return false
}

// strangeKey returns the first key below n that begins with a space that is none to YAML, and so is
// on the wrong level; nil if there is none.
func strangeKey(n *yaml.Node) *yaml.Node {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if r, _ := utf8.DecodeRuneInString(child.Value); child.Style == 0 && describeStrange(r) != "" &&
				strangeCharacters[r] != quoteMark {
				return child
			}
		}
		if found := strangeKey(child); found != nil {
			return found
		}
	}
	return nil
}

// withoutQuoteMarks returns a key without the typographic quotation marks around it.
func withoutQuoteMarks(name string) string {
	return strings.TrimFunc(name, func(r rune) bool { return strangeCharacters[r] == quoteMark })
}

// inQuotes says how to write text that has a template or a variable of a path.
func inQuotes(text string) string {
	if strings.Contains(text, "{{") {
		return "needs quotes, and one brace: " + strconv.Quote(strings.NewReplacer("{{", "{", "}}", "}").Replace(text))
	}
	return "needs quotes: " + strconv.Quote(text)
}

// bracedText returns the template, or variable of a path, that text begins with, up to the end of
// its word; "" if it begins with something else, such as a mapping.
func bracedText(text string) string {
	depth := 0
	for i, r := range text {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth > 0 {
			continue
		}
		inside := strings.Trim(text[:i+1], "{} ")
		_, err := naming.CompileTemplate("{" + inside + "}")
		_, noPattern := naming.ParsePattern("/{" + inside + "}")
		if err != nil && noPattern != nil {
			return ""
		}
		rest := text[i+1:]
		if end := strings.IndexAny(rest, " ,]}#"); end >= 0 {
			rest = rest[:end]
		}
		return text[:i+1] + rest
	}
	return ""
}

// level is an indentation of lines that a later line may have, too.
type level struct {
	indent int
	item   bool // of the - of a list
}

// wrongIndent compares the indentation of a line with that of the groups it could belong to.
func (f *fileParser) wrongIndent(number int) (place, string) {
	levels, above := f.openLevels(number)
	line := f.lines[number-1]
	indent, item := indentOf(line), isItem(strings.TrimLeft(line, " "))
	at := place{number, indent + 1}
	if len(levels) == 0 {
		return at, ""
	}
	top := levels[len(levels)-1]
	same := slices.IndexFunc(levels, func(l level) bool { return l.indent == indent })
	switch {
	case indent > top.indent && (strings.HasSuffix(above, ":") || strings.HasSuffix(above, "-")):
		return at, "" // a group that begins here
	case indent > top.indent:
		return at, fmt.Sprintf("this line is indented by %s, and the line above it has its value already; what "+
			"stands beside that one is indented by %d", countedSpaces(indent), top.indent)
	case same < 0:
		i := slices.IndexFunc(levels, func(l level) bool { return l.indent > indent })
		if i == 0 {
			return at, fmt.Sprintf("this line is indented by %s; what stands beside the lines above is indented by %d",
				countedSpaces(indent), levels[0].indent)
		}
		return at,
			fmt.Sprintf("this line is indented by %s; what stands beside the lines above is indented by %d or %d",
				countedSpaces(indent), levels[i-1].indent, levels[i].indent)
	case levels[same].item && !item && (same+1 == len(levels) || levels[same+1].indent > indent) &&
		(same == 0 || levels[same-1].indent < indent) && same+1 < len(levels):
		return at, fmt.Sprintf("this line is indented as the - of the list above; begin it with -, or indent it by "+
			"%s as what stands beside the rest of that item", countedSpaces(levels[same+1].indent))
	}
	return at, ""
}

func countedSpaces(n int) string {
	if n == 1 {
		return "1 space"
	}
	return strconv.Itoa(n) + " spaces"
}

func isItem(text string) bool { return text == "-" || strings.HasPrefix(text, "- ") }

// openLevels returns the open indentations above a line, the innermost last, and the text above it.
func (f *fileParser) openLevels(number int) (open []level, above string) {
	for _, line := range f.lines[:number-1] {
		if isNothing(line) {
			continue
		}
		indent := indentOf(line)
		rest := line[indent:]
		for len(open) > 0 && (open[len(open)-1].indent > indent ||
			open[len(open)-1] == level{indent, true} && !isItem(rest)) {
			open = open[:len(open)-1]
		}
		for isItem(rest) {
			if l := (level{indent, true}); !slices.Contains(open, l) {
				open = append(open, l)
			}
			inner := strings.TrimLeft(rest[1:], " ")
			indent += len(rest) - len(inner)
			rest = inner
		}
		if l := (level{indent, false}); rest != "" && !slices.Contains(open, l) {
			open = append(open, l)
		}
		above, _, _ = strings.Cut(line, " #")
		above = strings.TrimRight(above, " ")
	}
	return open, above
}
