package idem

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

func TestExecutionIDIsExecAndThirtyTwoLetters(t *testing.T) {
	id := NewExecutionID("stripe/acme", "00000000000000ff-0123456789abcdef0123456789abcdef", [4]byte{1, 2, 3, 4})
	if len(id) != len("exec_")+32 || !strings.HasPrefix(string(id), "exec_") {
		t.Fatalf("got %q", id)
	}
	workflow, key, err := id.Parse()
	if err != nil || workflow != xxhash.Sum64String("stripe/acme") || key != 0xff {
		t.Fatalf("got %x %x %v", workflow, key, err)
	}
}

func TestExecutionIDsOfOneEventDifferByTheirRandomBits(t *testing.T) {
	a := NewExecutionID("w", "k", [4]byte{1})
	b := NewExecutionID("w", "k", [4]byte{2})
	if a == b {
		t.Fatal("two attempts have one ID")
	}
}

func TestRefusesWhatIsNoExecutionID(t *testing.T) {
	good := string(NewExecutionID("w", "k", [4]byte{}))
	for _, bad := range []string{"", "exec_", "exec_abc", good[5:], good + "a", good[:len(good)-1],
		strings.ToUpper(good), good[:len(good)-1] + "1", good[:len(good)-1] + "\n"} {
		if _, _, err := ExecutionID(bad).Parse(); err == nil {
			t.Errorf("%q was taken for an execution ID", bad)
		}
	}
}

func FuzzExecutionIDParse(f *testing.F) {
	f.Add(string(NewExecutionID("w", "k", [4]byte{})))
	f.Add("exec_")
	f.Fuzz(func(t *testing.T, text string) {
		workflow, key, err := ExecutionID(text).Parse()
		if err != nil {
			return
		}
		if w, k, err := ExecutionID(text).Parse(); w != workflow || k != key || err != nil || len(text) != 37 ||
			strings.ContainsAny(text, "\r\n") {
			t.Fatalf("%q parses to %x %x, then %x %x %v", text, workflow, key, w, k, err)
		}
	})
}

func FuzzBeginningHex(f *testing.F) {
	f.Add("exec_", 3)
	f.Add(string(NewExecutionID("w", "00000000000000ff-01", [4]byte{1})), 20)
	f.Add("exec_A1\n", 7)
	f.Fuzz(func(t *testing.T, text string, n int) {
		HashesOfPrefix(text)
		id := NewExecutionID(text, Key(text), [4]byte{byte(n)})
		cut := id[:min(max(n, 0), len(id))]
		workflow, key, err := id.Parse()
		if err != nil {
			t.Fatal(err)
		}
		w, k := HashesOfPrefix(string(cut))
		if !strings.HasPrefix(fmt.Sprintf("%016x", workflow), w) || !strings.HasPrefix(fmt.Sprintf("%016x", key), k) {
			t.Errorf("%s: %s %s, and not of %016x %016x", cut, w, k, workflow, key)
		}
		if letters := len(cut) - len("exec_"); letters > 0 && len(w)+len(k) != min(5*letters/4, 32) {
			t.Errorf("%s: %d digits of %d letters", cut, len(w)+len(k), letters)
		}
	})
}
