package history

import (
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"hooklock/idem"
)

// did is a step by carrier by, which is 0 for who carries nothing.
func did(k kind, x string, by int, out came) porcupine.Operation {
	return porcupine.Operation{Input: step{kind: k, workflow: "w", execution: idem.ExecutionID(x), carrier: by},
		Output: out}
}

// rerun is a person's word that the event of an execution is to run again.
func rerun(of, x string, out came) porcupine.Operation {
	op := did(rerunning, x, 0, out)
	in := op.Input.(step)
	in.of = idem.ExecutionID(of)
	op.Input = in
	return op
}

func TestTheModelOfWhatIsParked(t *testing.T) {
	ok, unknown, refused, cancelled := came{done: true}, came{unknown: true}, came{}, came{cancelled: true}
	at := func(token int64) came { return came{done: true, token: token} }
	a, b := did(enqueuing, "a", 0, ok), did(enqueuing, "b", 0, ok)
	takeA := did(taking, "a", 1, at(3))
	a1 := []porcupine.Operation{did(enqueuing, "a1", 0, ok), did(taking, "a1", 1, at(3)), did(settling, "a1", 1, ok)}
	again := func(more ...porcupine.Operation) []porcupine.Operation { return slices.Concat(a1, more) }
	for name, c := range map[string]struct {
		want Verdict
		ops  []porcupine.Operation
	}{
		"one after the other": {Legal, []porcupine.Operation{a, b, takeA, did(trying, "a", 1, at(4)),
			did(resting, "a", 1, ok), did(settling, "a", 1, ok), did(taking, "b", 2, at(6))}},
		"carried on": {Legal, []porcupine.Operation{a, takeA, did(puttingOff, "a", 1, ok),
			did(taking, "a", 2, at(5)), did(settling, "a", 2, ok)}},
		"parked while it runs": {Legal, []porcupine.Operation{
			did(claiming, "a", 1, at(1)), did(parking, "a", 1, ok), did(puttingOff, "a", 1, ok),
			did(taking, "a", 2, at(2)),
		}},
		"perhaps accepted, and it runs": {Legal, []porcupine.Operation{did(enqueuing, "a", 0, unknown), takeA}},
		"perhaps accepted, and not": {Legal,
			[]porcupine.Operation{did(enqueuing, "a", 0, unknown), b, did(taking, "b", 1, at(3))}},
		"perhaps accepted, and later": {Legal, []porcupine.Operation{did(enqueuing, "a", 0, unknown), b,
			did(taking, "b", 1, at(3)), did(settling, "b", 1, ok), did(taking, "a", 2, at(5))}},
		"perhaps accepted, and twice": {Illegal, []porcupine.Operation{did(enqueuing, "a", 0, unknown), takeA,
			did(settling, "a", 1, ok), did(taking, "a", 2, at(5))}},
		"perhaps put down": {Legal, []porcupine.Operation{a, takeA, did(puttingOff, "a", 1, unknown),
			did(taking, "a", 2, at(5))}},
		"perhaps ended, and the next runs": {Legal, []porcupine.Operation{a, b, takeA, did(settling, "a", 1, unknown),
			did(taking, "b", 2, at(5))}},
		"taken, and nobody heard of it": {Legal,
			[]porcupine.Operation{a, did(taking, "", 1, unknown), did(taking, "a", 2, at(5))}},
		"skipped in line": {Legal,
			[]porcupine.Operation{a, b, did(asking, "a", 0, ok), did(taking, "b", 1, at(3))}},
		"skipped while it is carried": {Legal, []porcupine.Operation{a, takeA, did(asking, "a", 0, ok),
			did(trying, "a", 1, cancelled), did(settling, "a", 1, ok)}},
		"skipped when nobody carries it": {Legal, []porcupine.Operation{a, b, takeA, did(puttingOff, "a", 1, ok),
			did(asking, "a", 0, ok), did(taking, "b", 2, at(5))}},
		"overtaken":               {Illegal, []porcupine.Operation{a, b, did(taking, "b", 1, at(3))}},
		"overtaken by a delivery": {Illegal, []porcupine.Operation{a, did(claiming, "b", 1, at(3))}},
		"lost": {Illegal, []porcupine.Operation{a, b, takeA, did(puttingOff, "a", 1, ok),
			did(taking, "b", 2, at(5))}},
		"two carriers": {Illegal, []porcupine.Operation{a, takeA, did(taking, "a", 2, at(5))}},
		"again after its end": {Illegal,
			[]porcupine.Operation{a, takeA, did(settling, "a", 1, ok), did(taking, "a", 2, at(5))}},
		"again after it was skipped": {Illegal, []porcupine.Operation{a, did(asking, "a", 0, ok), takeA}},
		"run again by a person": {Legal,
			again(rerun("a1", "a2", ok), did(taking, "a2", 2, at(5)), did(settling, "a2", 2, ok))},
		"perhaps run again, and it is": {Legal,
			again(rerun("a1", "", unknown), did(taking, "a2", 2, at(5)), did(settling, "a2", 2, ok))},
		"perhaps run again, and not": {Legal, again(rerun("a1", "", unknown), b, did(taking, "b", 2, at(5)))},
		"the next one again, too": {Legal,
			again(rerun("a1", "a2", ok), did(taking, "a2", 2, at(5)), did(settling, "a2", 2, ok),
				rerun("a2", "a3", ok))},
		"run again besides": {Illegal, again(rerun("a1", "a2", ok), did(taking, "a2", 2, at(5)),
			did(settling, "a2", 2, ok), did(taking, "a3", 3, at(6)))},
		"run again, and nobody said so": {Illegal, again(did(taking, "a2", 2, at(5)))},
		"run again as another event":    {Illegal, again(rerun("a1", "", unknown), did(taking, "b2", 2, at(5)))},
		"twice run again":               {Illegal, again(rerun("a1", "a2", ok), rerun("a1", "a3", ok))},
		"run again before its end":      {Illegal, []porcupine.Operation{a1[0], rerun("a1", "a2", ok)}},
		"run again before who waited":   {Illegal, again(b, rerun("a1", "a2", ok), did(taking, "a2", 2, at(5)))},
		"a token that goes back":        {Illegal, []porcupine.Operation{a, takeA, did(trying, "a", 1, at(2))}},
		"a token for two tries":         {Illegal, []porcupine.Operation{a, takeA, did(trying, "a", 1, at(3))}},
		"an old carrier tries": {Illegal, []porcupine.Operation{a, takeA, did(puttingOff, "a", 1, ok),
			did(taking, "a", 2, at(5)), did(trying, "a", 1, at(6))}},
		"a carrier that is told wrongly": {Illegal, []porcupine.Operation{a, takeA, did(trying, "a", 1, refused)}},
		"carried, and it was not parked": {Illegal,
			[]porcupine.Operation{did(claiming, "a", 1, at(1)), did(taking, "a", 2, at(2))}},
	} {
		t.Run(name, func(t *testing.T) {
			h := &History{}
			for i, op := range c.ops {
				op.ClientId, op.Call, op.Return = i, int64(10*i), int64(10*i+5)
				if op.Output.(came).unknown {
					op.Return = never
				}
				h.operations = append(h.operations, op)
			}
			if got := h.CheckParked(10 * time.Second); got != c.want {
				t.Errorf("the model says %v", got)
			}
		})
	}
}
