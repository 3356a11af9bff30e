package main

import (
	"context"
	"errors"
	"strconv"

	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/idem"
	"hooklock/proxy"
	"hooklock/proxy/asking"
)

// ask asks the service what became of the event of x, once, and says what would follow from it.
func (r *reading) ask(ctx context.Context, x *proxy.Explanation) (string, error) {
	if x.Question == "" {
		return "", cli.Misuse(errors.New("--ask: nothing is asked about this delivery: its route has no on_unknown: " +
			"ask, or a value of ask.url is missing from it"))
	}
	upstream, host, err := wiring.UpstreamOptions(r.loaded.Config, nil)
	if err != nil {
		return "", err
	}
	asker := asking.New(asking.Options{Service: wiring.Service(&upstream, host), Rule: r.rules.AskRule})
	said := asker.Once(ctx,
		&idem.Lock{ExecutionFacts: idem.ExecutionFacts{Route: x.Route}, Question: &idem.Question{URL: x.Question}})
	switch said.Outcome {
	case idem.Executed:
		return "executed (" + strconv.Itoa(said.Status) + "): a duplicate would be replayed", nil
	case idem.NotExecuted:
		return "not executed (" + strconv.Itoa(said.Status) + "): it would run again", nil
	}
	return "nothing: " + said.Detail + "; after as many questions as ask.attempts says it would wait for a person", nil
}
