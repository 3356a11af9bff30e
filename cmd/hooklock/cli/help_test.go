package cli

import "testing"

func TestHelpIsWrappedBetweenWordsAtTheWidthOfATerminal(t *testing.T) {
	const long = "See the executions: each is one attempt to run one delivery, and it waits, runs or has ended,\nas its status says.\n\n" +
		"Usage:\n  hooklock executions list\n\nFlags:\n      --limit int   print at most so many, and say how to go on\n"
	const want = "See the executions: each is one attempt to\nrun one delivery, and it waits, runs or has\nended, as its status says.\n\n" +
		"Usage:\n  hooklock executions list\n\nFlags:\n      --limit int   print at most so many,\n                    and say how to go on\n"
	if got := Wrap(long, 43); got != want {
		t.Errorf("%s", got)
	}
}

func TestAnIDIsCutInItsMiddleBecauseIDsDifferAtTheirEnds(t *testing.T) {
	table := Table{Head: []string{"EVENT", "STATUS"}, Cut: map[string]int{"EVENT": 8}, Middle: []string{"EVENT"}}
	got := printed(t, table, 28, []string{"477210923/72d3162e-cc78-11e3-0001", "FAILED"}, []string{"evt_1", "SUCCESS"})
	if want := "EVENT                STATUS\n477210923…11e3-0001  FAILED\nevt_1                SUCCESS\n"; got != want {
		t.Errorf("%s", got)
	}
}

func TestAWordThatFitsIntoALineIsNotBroken(t *testing.T) {
	got := printed(t, Table{}, 30, []string{"busy", "with 72d3162e-cc78-11e3-81ab and more"})
	if want := "busy  with\n      72d3162e-cc78-11e3-81ab\n      and more\n"; got != want {
		t.Errorf("%s", got)
	}
}

func TestEachNameInFrontOfAWrappedValueHasItsColumn(t *testing.T) {
	got := printed(t, Table{}, 36, []string{"failed", "upstream", "connection refused; start it"},
		[]string{"ok", "etcd", "3.6"})
	if want := "failed  upstream  connection\n                  refused; start it\nok      etcd      3.6\n"; got != want {
		t.Errorf("%s", got)
	}
}
