package history

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"hooklock/idem"
)

// op is an operation of a history that is written down by hand, in the order of time. An operation
// without an answer stays open.
type op struct {
	in  input
	out output
}

func claim(x string, prev int64, out output) op {
	return op{input{kind: claiming, workflow: "w", execution: idem.ExecutionID(x), prev: prev}, out}
}

func waited(x string, out output) op {
	return op{input{kind: claiming, workflow: "w", execution: idem.ExecutionID(x), apart: true}, out}
}

func settle(x string, token int64, out output) op {
	return op{input{kind: settling, workflow: "w", execution: idem.ExecutionID(x), token: token}, out}
}

func release(x string, out output) op {
	return op{input{kind: releasing, workflow: "w", execution: idem.ExecutionID(x)}, out}
}

var (
	nobodyKnows = output{unknown: true}
	done        = output{done: true}
	lost        = output{}
)

func won(token int64) output       { return output{done: true, token: token} }
func recorded(at int64) output     { return output{done: true, revision: at} }
func heldBy(x string) output       { return output{holder: idem.ExecutionID(x)} }
func is(x string, at int64) output { return output{recorded: idem.ExecutionID(x), revision: at} }

func history(ops []op) *History {
	h := &History{}
	for i, o := range ops {
		back := int64(10*i + 5)
		if o.out.unknown {
			back = never
		}
		h.operations = append(h.operations,
			porcupine.Operation{ClientId: i, Input: o.in, Output: o.out, Call: int64(10 * i), Return: back})
	}
	return h
}

func TestTheModelOfExclusion(t *testing.T) {
	for name, c := range map[string]struct {
		want Verdict
		ops  []op
	}{
		"one after the other": {Legal, []op{claim("a", 0, won(1)), release("a", done),
			claim("b", 0, won(3)), settle("b", 3, recorded(4)), claim("c", 4, won(5))}},
		"a refusal that names the holder": {Legal,
			[]op{claim("a", 0, won(1)), claim("b", 0, heldBy("a"))}},
		"a claim without an answer that holds": {Legal,
			[]op{claim("a", 0, nobodyKnows), claim("b", 0, heldBy("a"))}},
		"a claim without an answer that came to naught": {Legal,
			[]op{claim("a", 0, nobodyKnows), claim("b", 0, won(1))}},
		"a settle without an answer, seen later": {Legal,
			[]op{claim("a", 0, won(1)), settle("a", 1, nobodyKnows), claim("b", 0, is("a", 2)), claim("b", 2, won(3))}},
		"another event, from the queue": {Legal,
			[]op{claim("a", 0, won(1)), settle("a", 1, recorded(2)), waited("b", won(3)), release("b", done),
				claim("c", 2, won(5))}},
		"another event barges past the holder": {Illegal, []op{claim("a", 0, won(1)), waited("b", won(3))}},
		"two holders":                          {Illegal, []op{claim("a", 0, won(1)), claim("b", 0, won(2))}},
		"a token that goes back": {Illegal,
			[]op{claim("a", 0, won(5)), release("a", done), claim("b", 0, won(4))}},
		"a ghost": {Illegal,
			[]op{claim("a", 0, won(1)), release("a", done), claim("b", 0, heldBy("ghost"))}},
		"a refusal without a reason": {Illegal, []op{claim("a", 0, output{})}},
		"a claim over a record that it did not see": {Illegal,
			[]op{claim("a", 0, won(1)), settle("a", 1, recorded(2)), claim("b", 0, won(3))}},
		"an end by somebody else": {Illegal,
			[]op{claim("a", 0, won(1)), settle("b", 1, recorded(2))}},
		"an end that was taken back": {Illegal,
			[]op{claim("a", 0, won(1)), settle("a", 1, recorded(2)), claim("b", 0, heldBy("a"))}},
		"a lock that is lost though its session lives": {Illegal,
			[]op{claim("a", 0, won(1)), settle("a", 1, lost), claim("b", 0, heldBy("a"))}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := history(c.ops).CheckExclusion(10 * time.Second); got != c.want {
				t.Errorf("the model says %v", got)
			}
		})
	}
}

func TestTheModelOfTheOrderOfTokens(t *testing.T) {
	for name, c := range map[string]struct {
		want Verdict
		ops  []op
	}{
		"a takeover": {Legal, []op{claim("a", 0, won(1)), claim("b", 0, won(2)), settle("a", 1, lost),
			settle("b", 2, recorded(3))}},
		"an old holder ends the new": {Illegal,
			[]op{claim("a", 0, won(1)), claim("b", 0, won(2)), settle("a", 1, recorded(3))}},
		"a token that was used twice": {Illegal, []op{claim("a", 0, won(1)), claim("b", 0, won(1))}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := history(c.ops).CheckOrder(10 * time.Second); got != c.want {
				t.Errorf("the model says %v", got)
			}
		})
	}
}
