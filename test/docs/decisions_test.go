package docs

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"hooklock/idem"
)

// TestTheTableOfDecisionsIsTheOneOfTheCode compares each row of docs/answers.md with that of idem:
// decision, status, code and effect.
func TestTheTableOfDecisionsIsTheOneOfTheCode(t *testing.T) {
	_, text, found := strings.Cut(pages(t)["docs/answers.md"], "| Decision | When | Status, `code` | `executed` |")
	if !found {
		t.Fatal("the table is not there")
	}
	text, _, _ = strings.Cut(text, "\n\n")
	rows := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| .* \\| ([^|]*) \\| ([^|]*)\\|$").FindAllStringSubmatch(text,
		-1)
	for _, row := range idem.Decisions() {
		if len(rows) == 0 || rows[0][1] != string(row.Decision) {
			t.Fatalf("the next row is to be that of %s: %q", row.Decision, rows)
		}
		status, effect := rows[0][2], strings.TrimSpace(rows[0][3])
		rows = rows[1:]
		if row.Own() && (!strings.HasPrefix(status, strconv.Itoa(row.Status)) || !strings.Contains(status, row.Code)) {
			t.Errorf("%s answers %d %s, the table says %s", row.Decision, row.Status, row.Code, status)
		}
		if !row.Own() && regexp.MustCompile(`^\d`).MatchString(status) {
			t.Errorf("%s has no answer of its own, the table says %s", row.Decision, status)
		}
		if (effect == "") != (row.Effect == "") || !strings.Contains(effect, string(row.Effect)) {
			t.Errorf("%s was executed: %q, the table says %q", row.Decision, row.Effect, effect)
		}
	}
	if len(rows) > 0 {
		t.Errorf("nothing makes these decisions: %q", rows)
	}
}

func TestEach409IsExplainedFirst(t *testing.T) {
	_, text, _ := strings.Cut(pages(t)["docs/answers.md"], "\n## 409\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for _, row := range idem.Decisions() {
		if row.Status == 409 && !strings.Contains(text, "\n| `"+row.Code+"` |") {
			t.Errorf("docs/answers.md does not say why a sender gets 409 %s, and what changes that", row.Code)
		}
	}
}
