package naming

import (
	"fmt"
	"strings"
)

// exampleOf shows each kind of source as one would write it.
var exampleOf = map[SourceKind]string{
	SourcePath:        "path.account",
	SourceQuery:       "query.id",
	SourceHeader:      "header.Idempotency-Key",
	SourceBody:        "body.id",
	SourceForm:        "form.id",
	SourceXML:         "xml.Envelope.Body.id",
	SourceHost:        "host",
	SourceMethod:      "method",
	SourceRoute:       "route",
	SourceFingerprint: "fingerprint",
	SourceBodySHA256:  "body_sha256",
}

var sourceKinds = []SourceKind{
	SourcePath, SourceQuery, SourceHeader, SourceBody, SourceForm, SourceXML,
	SourceHost, SourceMethod, SourceRoute, SourceFingerprint, SourceBodySHA256,
}

const sourceExamples = "path.x, query.x, header.X, body.a.b[0], form.x, xml.a.b, host, method, route, fingerprint, " +
	"body_sha256"

// sourceHint returns a hint for an unknown source: ", did you mean ...?", or the list of all if
// none is near.
func sourceHint(text string) string {
	segments := strings.Split(text, ".")
	for i, segment := range segments {
		kind, near := nearestKind(segment)
		if !near {
			continue
		}
		meant := string(kind)
		if takesName(kind) {
			rest := strings.Join(segments[i+1:], ".")
			if rest == "" {
				meant = exampleOf[kind]
			} else {
				meant += "." + rest
			}
		}
		return fmt.Sprintf(", did you mean %q?", meant)
	}
	return fmt.Sprintf(": write one of %s, or text in double quotes", sourceExamples)
}

func takesName(kind SourceKind) bool { return strings.Contains(exampleOf[kind], ".") }

// synonyms are the words of other tools.
var synonyms = map[string]SourceKind{
	"params": SourcePath, "vars": SourcePath, "args": SourceQuery, "arg": SourceQuery, "json": SourceBody,
	"payload": SourceBody,
	"$":       SourceBody, "verb": SourceMethod, "hostname": SourceHost, "sha256": SourceBodySHA256,
}

// nearestKind finds the kind that word is at most two typing errors, and less than half of its
// letters, away from.
func nearestKind(word string) (SourceKind, bool) {
	word = strings.ToLower(word)
	if kind, ok := synonyms[word]; ok {
		return kind, true
	}
	best, least := SourceKind(""), 3
	for _, kind := range sourceKinds {
		if d := Distance(word, string(kind)); d < least && 2*d < len(kind) {
			best, least = kind, d
		}
	}
	return best, best != ""
}

// Tolerance returns how many letters may be wrong in a name before a suggestion would be a guess.
func Tolerance(name string) int { return min(3, 1+len(name)/4) }

// Nearest returns the word that text most likely means, the first one of those that are equally
// near; "" = none is near enough.
func Nearest(text string, words []string) string {
	best, bestCost := "", Tolerance(text)+1
	for _, w := range words {
		if cost := Distance(text, w); cost < bestCost {
			best, bestCost = w, cost
		}
	}
	return best
}

// Distance counts the letters to insert, delete or replace to make b of a (Levenshtein). Only the
// first 64 bytes of either count, so that a hostile text costs nothing.
func Distance(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
