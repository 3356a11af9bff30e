package idem

import "testing"

func TestWhatIsKnownOfAllTriesTogether(t *testing.T) {
	e := func(o Outcome) *Evidence { return &Evidence{Outcome: o} }
	for name, c := range map[string]struct {
		tries []*Evidence
		want  Outcome
	}{
		"none began":                          {nil, NotExecuted},
		"none reached the upstream":           {[]*Evidence{e(NotExecuted), e(NotExecuted)}, NotExecuted},
		"one was answered":                    {[]*Evidence{e(Executed)}, Executed},
		"of one nobody knows":                 {[]*Evidence{e(Unknown), e(NotExecuted)}, Unknown},
		"one was answered after an unknown":   {[]*Evidence{e(Unknown), e(Executed)}, Executed},
		"of one after an answer nobody knows": {[]*Evidence{e(Executed), e(Unknown), e(NotExecuted)}, Unknown},
	} {
		p := Parked{}
		for _, last := range c.tries {
			p.Tries++
			p.Trying = true
			if p.Outcome() != Unknown {
				t.Errorf("%s: while it is tried: %s", name, p.Outcome())
			}
			p = p.AfterTry(last)
		}
		if got := p.Outcome(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
