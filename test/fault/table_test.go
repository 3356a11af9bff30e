package fault

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// The generated sections of a document stand between these lines; a section of measurements is
// written, and never compared.
const (
	beginMark = "<!-- generated: %s -->\n"
	endMark   = "<!-- end: %s -->\n"
)

// section compares a generated section of a document with what the tests saw, or writes it with
// -update.
func section(t *testing.T, path, name, text string, compare bool) {
	t.Helper()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read the document: %v", err)
	}
	begin, end := fmt.Sprintf(beginMark, name), fmt.Sprintf(endMark, name)
	before, rest, ok := strings.Cut(string(whole), begin)
	old, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no section %q", path, name)
	}
	switch {
	case *update:
		if err := os.WriteFile(path, []byte(before+begin+text+end+after), 0o644); err != nil {
			t.Fatalf("write the document: %v", err)
		}
	case compare && old != text:
		t.Errorf(
			"%s, section %q, does not say what happens; run: go test ./test/fault -run Kill -update\nit says:\n%s\nseen:\n%s", path, name, old, text)
	}
}

// tabled takes each step beside the others, and compares the rows that come of them with a section
// of the table.
func tabled[S any](t *testing.T, name, head string, steps []S, step func(*testing.T, S) (row string)) {
	t.Helper()
	rows := make([]string, len(steps))
	t.Run("step", func(t *testing.T) {
		for i, st := range steps {
			t.Run(fmt.Sprint(i+1), func(t *testing.T) {
				t.Parallel()
				rows[i] = step(t, st)
			})
		}
	})
	if t.Failed() {
		return
	}
	table := "| | " + head + " |\n|" + strings.Repeat(" --- |", 2+strings.Count(head, "|")) + "\n"
	for i, row := range rows {
		table += fmt.Sprintf("| %d | %s |\n", i+1, row)
	}
	section(t, killTable, name, table, true)
}

// cells are a row of a table.
func cells(texts ...string) string { return strings.Join(texts, " | ") }

const killTable = "kill-table.md"

func checkKillTable(t *testing.T, rows []map[string]*facts, times []measured) {
	t.Helper()
	var table strings.Builder
	var freed []time.Duration
	table.WriteString(
		"| | Killed when | Sender saw | Upstream saw | Its lock | A copy at once | Record | A copy later, `retry` | A copy later, `block` |\n")
	table.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for i, st := range steps {
		retry, block := *rows[i]["retry"], *rows[i]["block"]
		later := block.copyLater
		block.copyLater = retry.copyLater
		if retry != block {
			t.Errorf("step %d: on_unknown changed more than it says: %+v, %+v", i+1, retry, block)
		}
		fmt.Fprintf(&table, "| %d | %s | %s | %s | %s | %s | %s | %s | %s |\n",
			i+1, st.name, retry.sender, retry.upstream, retry.lock, retry.copyAtOnce, retry.record, retry.copyLater,
			later)
		if times[i].lockFree > 0 {
			freed = append(freed, times[i].lockFree)
		}
	}
	section(t, killTable, "killed", table.String(), true)
	section(t, killTable, "times",
		fmt.Sprintf("%.1f to %.1f s.\n", slices.Min(freed).Seconds(), slices.Max(freed).Seconds()), false)
}
