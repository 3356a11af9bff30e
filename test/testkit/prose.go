package testkit

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Widest is how wide a line of prose may be in a page, in characters: what a reader's eye and a
// diff can take.
const Widest = 160

var (
	listItem = regexp.MustCompile(`^\s*([-*]|\d+\.)\s+`)
	// words are what a line may be broken between: code and links stay whole.
	words = regexp.MustCompile("(?:`[^`]*`|\\[[^\\]]*\\]\\([^)]*\\)|[^\\s`\\[]|\\[|`)+")
)

// prose calls f for each block of prose in a page of Markdown: neither code nor a table, a heading,
// HTML or a quotation. What is no prose goes to rest line by line. Both see lines in the page's
// order.
func prose(page string, f func(block []string), rest func(line string)) {
	code := false
	var block []string
	flush := func() {
		if block != nil {
			f(block)
			block = nil
		}
	}
	for line := range strings.SplitSeq(page, "\n") {
		bare := strings.TrimSpace(line)
		fence := strings.HasPrefix(bare, "```")
		switch {
		case fence || code || bare == "" || strings.ContainsAny(bare[:1], "|#<>") ||
			block == nil && strings.HasPrefix(line, "    "):
			flush()
			rest(line)
			if fence {
				code = !code
			}
		case listItem.MatchString(line):
			flush()
			block = []string{line}
		default:
			block = append(block, line)
		}
	}
	flush()
}

// Wrap is a page of Markdown in which no line of prose is wider than Widest, unless a word is.
// Blocks that are narrow enough stay as they are.
func Wrap(page string) string {
	var lines []string
	prose(page, func(block []string) {
		if len(TooWide(strings.Join(block, "\n"))) == 0 {
			lines = append(lines, block...)
			return
		}
		indent := listItem.FindString(block[0])
		text := strings.TrimPrefix(strings.Join(block, " "), indent)
		line, empty := indent, true
		for _, word := range words.FindAllString(text, -1) {
			if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > Widest {
				lines = append(lines, line)
				line, empty = strings.Repeat(" ", len(indent)), true
			}
			if !empty {
				line += " "
			}
			line, empty = line+word, false
		}
		lines = append(lines, line)
	}, func(line string) { lines = append(lines, line) })
	return strings.Join(lines, "\n")
}

// TooWide are the lines of prose of a page that Wrap would break.
func TooWide(page string) (wide []string) {
	prose(page, func(block []string) {
		for _, line := range block {
			if utf8.RuneCountInString(line) > Widest && len(words.FindAllString(line, 3)) > 1 {
				wide = append(wide, line)
			}
		}
	}, func(string) {})
	return wide
}
