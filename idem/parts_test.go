package idem

import (
	"encoding/json"
	"slices"
	"testing"
)

func parts(method, host, port, path, query, body string) (p Parts) {
	for part, text := range []string{method, host, port, path, query, body} {
		p.Set(Part(part), []byte(text))
	}
	return p
}

func TestPartsNameWhatDiffers(t *testing.T) {
	first := parts("POST", "h", "80", "/p", "q", "b")
	for _, c := range []struct {
		other Parts
		want  []string
	}{
		{first, nil},
		{parts("PUT", "h", "80", "/p", "q", "b"), []string{"method"}},
		{parts("POST", "H", "81", "/p", "q", "b"), []string{"host", "port"}},
		{parts("POST", "h", "80", "/P", "", "B"), []string{"path", "query", "body"}},
		{Parts{}, nil}, // an older release did not write them
	} {
		if got := first.Differ(c.other); !slices.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
		if got := c.other.Differ(first); !slices.Equal(got, c.want) {
			t.Errorf("the other way round: %v, want %v", got, c.want)
		}
	}
}

func TestPartsAreSmallAndDoNoHarmWhereTheyCannotBeRead(t *testing.T) {
	type value struct {
		Parts Parts `json:"parts,omitzero"`
	}
	first := value{parts("POST", "h", "80", "/p", "q", "b")}
	text, err := json.Marshal(first)
	if err != nil || len(text) != len(`{"parts":"0123456789abcdef"}`) {
		t.Errorf("%s %v", text, err)
	}
	var read value
	if err := json.Unmarshal(text, &read); err != nil || read != first {
		t.Errorf("%v %v", read, err)
	}
	for _, odd := range []string{`{"parts":"of a later release"}`, `{"parts":""}`, `{"parts":"0123456789abcdef00"}`,
		`{}`} {
		read = value{}
		if err := json.Unmarshal([]byte(odd), &read); err != nil || read != (value{}) {
			t.Errorf("%s: %v %v", odd, read, err)
		}
	}
	if text, err := json.Marshal(value{}); err != nil || string(text) != "{}" {
		t.Errorf("%s %v", text, err)
	}
}

func TestAMismatchSaysWhatDiffersToTheSameSenderAndUnderASignature(t *testing.T) {
	first := &Record{ExecutionFacts: ExecutionFacts{Execution: "exec_a", Scope: Scope{Key: "k"},
		Fingerprint: Fingerprint{1},
		Parts:       parts("POST", "h", "", "/p", "", "b"), Credentials: "mine"},
		End: End{Outcome: Executed, Remembered: true}}
	ask := func(credentials string, verified bool) Verdict {
		return Decide(&Obstacle{Record: first}, &Request{
			Scope: Scope{Key: "k"}, Fingerprint: Fingerprint{2}, Parts: parts("POST", "h", "", "/p", "", "B"),
			Policy:      &Policy{OnMismatch: MismatchReject, Verified: verified},
			Credentials: func(ExecutionID) string { return credentials },
		}, first.StartedAt)
	}
	if v := ask("mine", false); v.Decision != DecisionMismatch || !slices.Equal(v.Differs, []string{"body"}) {
		t.Errorf("%+v", v)
	}
	if v := ask("another's", false); v.Decision != DecisionMismatch || v.Differs != nil {
		t.Errorf("a stranger is told %v", v.Differs)
	}
	if v := ask("another's", true); !slices.Equal(v.Differs, []string{"body"}) {
		t.Errorf("a signature says who he is: %+v", v)
	}
	held := &Lock{ExecutionFacts: first.ExecutionFacts}
	v := Decide(&Obstacle{Lock: held}, &Request{
		Scope: Scope{Key: "k"}, Fingerprint: Fingerprint{2}, Parts: parts("PUT", "h", "", "/p", "", "b"),
		Policy:      &Policy{OnMismatch: MismatchReject},
		Credentials: func(ExecutionID) string { return "mine" },
	}, first.StartedAt)
	if v.Decision != DecisionMismatch || !slices.Equal(v.Differs, []string{"method"}) {
		t.Errorf("while the first one runs: %+v", v)
	}
}
