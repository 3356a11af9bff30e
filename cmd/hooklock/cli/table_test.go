package cli

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// printed is a table for a terminal of that width.
func printed(t *testing.T, table Table, width int, rows ...[]string) string {
	t.Helper()
	var out bytes.Buffer
	table.Out, table.Screen.Width = &out, width
	for _, row := range rows {
		table.Add(row...)
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestANarrowTerminalDoesWithoutColumnsAndCutsOthers(t *testing.T) {
	table := Table{Head: []string{"NAME", "STATE", "HOLDER"}, Drop: []string{"HOLDER"}, Cut: map[string]int{"NAME": 6}}
	row := []string{"stripe/acme-incorporated", "held", "host/1"}
	for width, want := range map[int]string{
		0:  "NAME                      STATE  HOLDER\nstripe/acme-incorporated  held   host/1\n",
		40: "NAME                      STATE  HOLDER\nstripe/acme-incorporated  held   host/1\n",
		24: "NAME       STATE  HOLDER\nstripe/a…  held   host/1\n",
		20: "NAME           STATE\nstripe/acme-…  held\n",
		15: "NAME      STATE\nstripe/…  held\n",
	} {
		if got := printed(t, table, width, slices.Clone(row)); got != want {
			t.Errorf("%d columns:\n%s", width, got)
		}
	}
}

func TestTheLastCellIsCutOnlyWhereThereIsNoRoomForIt(t *testing.T) {
	table := Table{Head: []string{"NAME", "OF"}, Cut: map[string]int{"OF": 16}}
	const long = "all replicas, 104857600 bytes, 12 blocked, 34 dead letters"
	for width, want := range map[int]string{80: "parked  " + long + "\n",
		40: "parked  all replicas, 104857600 bytes, …\n"} {
		if got := printed(t, table, width, []string{"parked", long}); !strings.HasSuffix(got, want) {
			t.Errorf("%d columns:\n%s", width, got)
		}
	}
}

func TestNoLineIsLongerThanTheTerminalIsWide(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		width := rapid.IntRange(40, 120).Draw(rt, "width")
		cell := rapid.StringOfN(rapid.RuneFrom([]rune("ab /é世界\x1b")), 0, 60, -1)
		table := Table{Head: []string{"A", "B", "C"}, Drop: []string{"C"}, Cut: map[string]int{"A": 8, "B": 8, "C": 8}}
		pairs := Table{}
		var out bytes.Buffer
		for _, x := range []*Table{&table, &pairs} {
			x.Out, x.Screen = &out, Screen{Width: width}
		}
		for range rapid.IntRange(1, 5).Draw(rt, "rows") {
			table.Add(cell.Draw(rt, "a"), cell.Draw(rt, "b"), cell.Draw(rt, "c"))
			pairs.Add("name", cell.Draw(rt, "value")+cell.Draw(rt, "more"))
		}
		if table.Flush() != nil || pairs.Flush() != nil {
			rt.Fatal("it cannot be written")
		}
		for line := range strings.Lines(out.String()) {
			if w := Width(strings.TrimSuffix(line, "\n")); w > width {
				rt.Fatalf("%d columns on a terminal of %d: %q", w, width, line)
			}
		}
	})
}

func TestAValueGoesOnBelowItself(t *testing.T) {
	got := printed(t, Table{}, 30, []string{"error", "the upstream took the request and its answer broke off"},
		[]string{"", "more"})
	if want := "error  the upstream took the\n       request and its answer\n       broke off\n       more\n"; got != want {
		t.Errorf("%s", got)
	}
}

func TestColoursAreBesideTheTextAndNotInItsWidth(t *testing.T) {
	table := Table{Head: []string{"STATUS", "EVENT"}, Screen: Screen{Color: true}, Hue: func(_, cell string) Hue {
		if cell == "FAILED" {
			return Bad
		}
		return Plainly
	}}
	got := printed(t, table, 80, []string{"FAILED", "evt_1"}, []string{"SUCCESS", "evt_2"})
	if !strings.Contains(got, "\x1b[31mFAILED\x1b[0m   evt_1") {
		t.Errorf("%q", got)
	}
	plain := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(got, "")
	if plain != "STATUS   EVENT\nFAILED   evt_1\nSUCCESS  evt_2\n" {
		t.Errorf("%q", plain)
	}
}

func TestYAMLIsTheSameAsTheJSON(t *testing.T) {
	text, err := YAML(
		[]byte(
			`{"b":"true","a":[{"x":1,"y":null},2.5],"esc":"\u001b[2J\u202e","empty":[],"t":"2026-11-22T08:22:46.321Z"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := "b: \"true\"\na:\n  - x: 1\n    y: null\n  - 2.5\nesc: \"\\e[2J\\u202e\"\nempty: []\nt: \"2026-11-22T08:22:46.321Z\"\n"
	if string(text) != want {
		t.Errorf("%s", text)
	}
}
