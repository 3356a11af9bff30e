package naming

import "testing"

// People have an event ID from its sender, or from what Hooklock shows: either names the event.
func TestAnEventIDIsSpelledAsItIsNamedHoweverItIsWritten(t *testing.T) {
	for written, want := range map[string]string{
		"evt_1": "evt_1", "ä/ö?#": "ä/ö?#", "": "", " a ": " a ",
		"100%": "100%25", "100%25": "100%25", "order%2F17": "order%252F17", "order%252F17": "order%252F17",
		"%s%d": "%25s%25d", "%25s%25d": "%25s%25d",
		"a\nb": "a%0Ab", "a%0Ab": "a%0Ab", "a%0ab": "a%250ab", "\u202eabc": "%E2%80%AEabc",
		"%E2%80%AEabc": "%E2%80%AEabc", "\xff": "%FF", "%FF": "%FF", "%": "%25",
		"50%\n": "50%25%0A", "%41": "%2541",
	} {
		if got := Spelled(written); got != want {
			t.Errorf("%q: got %q, want %q", written, got, want)
		}
		if got := Spelled(want); got != want {
			t.Errorf("%q, which is spelled, becomes %q", want, got)
		}
	}
}

// TestAPatternMeansAWorkflowHoweverItIsWritten: as Names have it, as a URL has it, or as it is.
func TestAPatternMeansAWorkflowHoweverItIsWritten(t *testing.T) {
	for written, want := range map[string]string{
		"q/a b": "q/a b", "q/a%20b": "q/a b", "q/50%": "q/50%25", "q/50%25": "q/50%25", "q/a%2520b": "q/a%2520b",
		"q/50%*": "q/50%25*", "q/%2A": "q/%252A", "": "",
	} {
		got := SpelledPattern(written)
		if got != want || SpelledPattern(got) != want {
			t.Errorf("%q is spelled %q, then %q; want %q", written, got, SpelledPattern(got), want)
		}
	}
}
