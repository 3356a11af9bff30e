package callback

import (
	"errors"
	"testing"

	"hooklock/idem"
)

func TestACallbackNeedsTheKeyTheWorkflowAndTheTokenOfItsExecution(t *testing.T) {
	own := idem.ExecutionFacts{Scope: idem.Scope{Workflow: "w"}, Token: 5, CallbackHash: idem.HashCallbackKey("key")}
	event, waits, keyless := own, own, own
	event.PerEvent, waits.Token, keyless.CallbackHash = true, 0, ""
	for name, c := range map[string]struct {
		cb   idem.Callback
		e    *idem.ExecutionFacts
		want error
	}{
		"all of it":          {idem.Callback{Workflow: "w", Token: 5, Key: "key"}, &own, nil},
		"no workflow":        {idem.Callback{Token: 5, Key: "key"}, &own, nil},
		"a token of the API": {idem.Callback{Token: 5, AnyKey: true}, &own, nil},
		"another key":        {idem.Callback{Token: 5, Key: "other"}, &own, idem.ErrCallbackKey},
		"the key of none":    {idem.Callback{Token: 5, Key: ""}, &keyless, idem.ErrCallbackKey},
		"another workflow": {idem.Callback{Workflow: "v", Token: 5, Key: "key"}, &own,
			idem.ErrNoExecution},
		"no token":                            {idem.Callback{Key: "key"}, &own, idem.ErrStaleToken},
		"another token":                       {idem.Callback{Token: 4, Key: "key"}, &own, idem.ErrStaleToken},
		"no token, of one that has none yet":  {idem.Callback{Key: "key"}, &waits, idem.ErrStaleToken},
		"no token, where the event is locked": {idem.Callback{Key: "key"}, &event, nil},
		"a wrong one there":                   {idem.Callback{Token: 4, Key: "key"}, &event, idem.ErrStaleToken},
	} {
		if err := checkCallback(&c.cb, c.e); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
