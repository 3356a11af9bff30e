package docs

import (
	"regexp"
	"strings"
	"testing"
)

// The most words that README.md and docs/ may have without the generated pages of senders, and a
// decision record. A word has a letter or a digit: the bars of a table are none.
const (
	mostWords       = 42_500
	mostOfADecision = 300
)

var word = regexp.MustCompile(`\S*[\pL\pN]\S*`)

func TestTheDocumentsAreShort(t *testing.T) {
	words := 0
	for path, text := range pages(t) {
		n := len(word.FindAllString(text, -1))
		if !strings.Contains(text, "<!--generated-->") { // a page for each preset
			words += n
		}
		if regexp.MustCompile(`^docs/adr/\d`).MatchString(path) && n > mostOfADecision {
			t.Errorf(
				"%s has %d words, a decision record at most %d: what was measured belongs on docs/adr/measurements.md",
				path, n, mostOfADecision)
		}
	}
	if words > mostWords {
		t.Errorf("the documents have %d words, and may have %d: shorten a page before you add to one", words, mostWords)
	}
}

// notUsed are words that only this project would understand, each with the word to use. What stands
// in code is a name, and is not looked at.
var notUsed = []struct{ word, use string }{
	{`bury|buries|burials?`, "reap, the end of a dead owner's execution"},
	{`ripe|ripens?|ripened`, "ready"},
	{`batons?`, "hand-off"},
	{`carriers?|carr(?:y|ies|ied) on`, "park worker, take over"},
	{`crowds?`, "waiters"},
	{`cooling locks?`, "a lock in its release delay"},
	{`patience`, "timeout"},
	{`whose turn`, "the head of the queue"},
	{`he|him|his`, "it, or the name of the thing"},
}

func TestThePagesUseTheWordsOfTheField(t *testing.T) {
	code := regexp.MustCompile("(?ms)^ *```.*?^ *```|`[^`]*`|\\]\\([^)]*\\)|<!--.*?-->")
	for path, text := range pages(t) {
		prose := code.ReplaceAllString(text, "`")
		for _, n := range notUsed {
			for _, found := range regexp.MustCompile(`(?i)\b(?:`+n.word+`)\b`).FindAllString(prose, -1) {
				t.Errorf("%s: %q: say %s", path, found, n.use)
			}
		}
	}
}
