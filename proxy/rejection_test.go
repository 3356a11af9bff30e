package proxy

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"hooklock/idem"
	"hooklock/idem/naming"
)

func TestEveryRejectionIsInTheTableOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/answers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| `code` of `rejected` | Status |")
	table, beside, _ := strings.Cut(table, "\n\n")
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\| (\\d+) \\|").FindAllStringSubmatch(table, -1) {
		for _, code := range regexp.MustCompile("[a-z_]+").FindAllString(row[1], -1) {
			documented[code] = row[2]
		}
	}
	for _, row := range rejections {
		switch got, ok := documented[row.code]; {
		case ok && got != fmt.Sprint(row.status):
			t.Errorf("%s is %d, the docs say %s", row.code, row.status, got)
		case !ok && !strings.Contains(beside, fmt.Sprintf("%d `%s`", row.status, row.code)):
			t.Errorf("%s is not in the docs", row.code)
		}
		delete(documented, row.code)
	}
	if len(documented) > 0 {
		t.Errorf("nothing is rejected with %v", documented)
	}
}

func TestWhatCannotBeNamedIsRejectedWithTheCodeOfNaming(t *testing.T) {
	for _, code := range []string{naming.CodeWorkflowMissing, naming.CodeEventIDMissing, naming.CodeEventIDAmbiguous,
		naming.CodeKeyTooLong} {
		if bad := newRejection(code, "why"); bad.Status != 400 || bad.Code != code || bad.Title != unnamed ||
			bad.Error() != code+": why" {
			t.Errorf("%+v", bad)
		}
	}
}

func TestARouteSaysWithWhichStatusesItsDeliveriesAreRejected(t *testing.T) {
	for _, c := range []struct {
		respond map[idem.Decision]int
		want    string
	}{
		{nil, "400, 405, 408, 413 or 431, by its code; 503 memory_exhausted"},
		{map[idem.Decision]int{idem.DecisionRejected: 422},
			"422, with a code that says what is wrong; 503 memory_exhausted"},
	} {
		if got := (&Route{Respond: c.respond}).answerText(idem.DecisionRejected); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
