package idem

import (
	"slices"
	"testing"
	"time"
)

const (
	queryTrace   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	earlierTrace = "00-11111111111111111111111111111111-b7ad6b7169203331-01"
)

func TestAQueryTakesWhatFitsAllThatItSays(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	entry := ExecutionFacts{
		Execution: "exec_mine", Scope: Scope{Workflow: "stripe/acme", Key: "00ab-cd"}, Route: "stripe",
		EventID: "hook-1/EVT-9", Labels: Labels{{"order", "1042"}}, StartedAt: at, TraceParent: queryTrace,
		Earlier: []Attempt{{Execution: "exec_earlier", TraceParent: earlierTrace}},
	}
	ended := Found{Record: &Record{ExecutionFacts: entry,
		End: End{Status: Failed, Outcome: Executed, FinishedAt: at.Add(time.Minute)}}}
	runs := Found{Lock: &Lock{ExecutionFacts: entry}}
	arrived := ended
	arrived.Arrivals = &History{Counts: map[Decision]int64{DecisionReplayed: 1},
		First: Arrival{At: at, Decision: DecisionReplayed}}
	refused := Found{Arrivals: &History{
		Scope: entry.Scope, Route: "stripe", EventID: entry.EventID, Labels: entry.Labels,
		Counts: map[Decision]int64{DecisionLocked: 9},
		First:  Arrival{At: at, Decision: DecisionLocked, TraceID: "first"},
		Newest: []Arrival{{At: at.Add(time.Hour), Decision: DecisionExecuted, Would: DecisionQueueFull,
			Execution: "exec_other", TraceID: "newest"}},
	}}
	released := Found{Arrivals: &History{Scope: entry.Scope, Route: "stripe",
		Forgotten: &Forgotten{Execution: "exec_gone", At: at}}}
	all := map[string]*Found{"ended": &ended, "runs": &runs, "arrived": &arrived, "refused": &refused,
		"released": &released}
	executions := []string{"arrived", "ended", "runs"}
	everything := []string{"arrived", "ended", "refused", "released", "runs"}
	for name, c := range map[string]struct {
		q    ExecutionQuery
		want []string
	}{
		"nothing said":             {ExecutionQuery{}, everything},
		"the workflow":             {ExecutionQuery{Workflow: "stripe/acme"}, everything},
		"a pattern of it":          {ExecutionQuery{Workflow: "*/acme"}, everything},
		"its beginning is no name": {ExecutionQuery{Workflow: "stripe/"}, nil},
		"a prefix of it":           {ExecutionQuery{Prefix: "stripe/"}, everything},
		"another prefix":           {ExecutionQuery{Prefix: "acme"}, nil},
		"a status":                 {ExecutionQuery{Status: Failed}, []string{"arrived", "ended"}},
		"refused":                  {ExecutionQuery{Status: Refused}, []string{"refused"}},
		"released":                 {ExecutionQuery{Status: Released}, []string{"released"}},
		"an outcome":               {ExecutionQuery{Outcome: Executed}, []string{"arrived", "ended"}},
		"another outcome":          {ExecutionQuery{Outcome: Unknown}, nil},
		"the route":                {ExecutionQuery{Route: "stripe"}, everything},
		"another route":            {ExecutionQuery{Route: "other"}, nil},
		"the event": {ExecutionQuery{EventID: "hook-1/EVT-9"},
			[]string{"arrived", "ended", "refused", "runs"}},
		"another event":        {ExecutionQuery{EventID: "hook-1"}, nil},
		"the key":              {ExecutionQuery{Key: "00ab"}, everything},
		"another key":          {ExecutionQuery{Key: "00ac"}, nil},
		"text of the workflow": {ExecutionQuery{SearchText: "stri"}, everything},
		"text of the event": {ExecutionQuery{SearchText: "HOOK-1/e"},
			[]string{"arrived", "ended", "refused", "runs"}},
		"text of its second part": {ExecutionQuery{SearchText: "evt-9"},
			[]string{"arrived", "ended", "refused", "runs"}},
		"text longer than that": {ExecutionQuery{SearchText: "evt-99"}, nil},
		"text from within":      {ExecutionQuery{SearchText: "ook"}, nil},
		"text of a label's value": {ExecutionQuery{SearchText: "1042"},
			[]string{"arrived", "ended", "refused", "runs"}},
		"text of a label": {ExecutionQuery{SearchText: "order:1042"},
			[]string{"arrived", "ended", "refused", "runs"}},
		"text of a label, as a filter": {ExecutionQuery{SearchText: "order=1042"},
			[]string{"arrived", "ended", "refused", "runs"}},
		"text of another label":             {ExecutionQuery{SearchText: "shop:1042"}, nil},
		"text of a part of a label's value": {ExecutionQuery{SearchText: "104"}, nil},
		"text of its trace": {ExecutionQuery{SearchText: "0af7651916cd43dd8448eb211c80319c"},
			executions},
		"text of an earlier attempt's trace": {ExecutionQuery{SearchText: "11111111111111111111111111111111"},
			executions},
		"text of the trace of an arrival": {ExecutionQuery{SearchText: "newest"}, []string{"refused"}},
		"a label": {ExecutionQuery{Label: Label{"order", "1042"}},
			[]string{"arrived", "ended", "refused", "runs"}},
		"the value of one": {ExecutionQuery{Label: Label{"", "1042"}},
			[]string{"arrived", "ended", "refused", "runs"}},
		"another label":                      {ExecutionQuery{Label: Label{"shop", "1042"}}, nil},
		"its ID":                             {ExecutionQuery{IDPrefix: "exec_m"}, executions},
		"that of an earlier attempt":         {ExecutionQuery{IDPrefix: "exec_earlier"}, executions},
		"that of what an arrival met":        {ExecutionQuery{IDPrefix: "exec_o"}, []string{"refused"}},
		"that of what was forgotten":         {ExecutionQuery{IDPrefix: "exec_gone"}, []string{"released"}},
		"its trace":                          {ExecutionQuery{TraceID: "0af7651916cd43dd8448eb211c80319c"}, executions},
		"that of an earlier attempt's trace": {ExecutionQuery{TraceID: "11111111111111111111111111111111"}, executions},
		"the trace of an arrival":            {ExecutionQuery{TraceID: "newest"}, []string{"refused"}},
		"a decision":                         {ExecutionQuery{Decision: DecisionLocked}, []string{"refused"}},
		"a decision of an execution":         {ExecutionQuery{Decision: DecisionReplayed}, []string{"arrived"}},
		"one that it would have got":         {ExecutionQuery{Decision: DecisionQueueFull}, []string{"refused"}},
		"a decision at another time":         {ExecutionQuery{Decision: DecisionLocked, Since: at.Add(1)}, nil},
		"since its end": {ExecutionQuery{Since: at.Add(time.Minute)},
			[]string{"arrived", "ended", "refused"}},
		"since after its end": {ExecutionQuery{Since: at.Add(time.Minute + 1)}, []string{"refused"}},
		"until its begin":     {ExecutionQuery{Until: at}, []string{"refused", "released", "runs"}},
		"until before that":   {ExecutionQuery{Until: at.Add(-1)}, nil},
		"between": {ExecutionQuery{Since: at.Add(1), Until: at.Add(time.Minute)},
			[]string{"arrived", "ended"}},
	} {
		var got []string
		for which, f := range all {
			if c.q.Matches(f) {
				got = append(got, which)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Where the payload is the event, its fingerprint is the only name that there is.
func TestAnEventWithoutAnIDIsFoundByItsFingerprint(t *testing.T) {
	e := ExecutionFacts{Fingerprint: Fingerprint{7}}
	for _, c := range []struct {
		id, asked string
		want      bool
	}{{"", e.Fingerprint.Hex(), true}, {"", "07", false}, {"evt", e.Fingerprint.Hex(), false}, {"evt", "evt", true}} {
		e.EventID = c.id
		q := ExecutionQuery{EventID: c.asked}
		if got := q.Matches(&Found{Lock: &Lock{ExecutionFacts: e}}); got != c.want {
			t.Errorf("event %q by %q: %v", c.id, c.asked, got)
		}
	}
}

func TestAQueryForAuditsTakesWhatFitsAllThatItSays(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	a := &Audit{Who: "ops", What: "execution.cancel", Workflow: "stripe/acme", Execution: "exec_1", At: at}
	for name, c := range map[string]struct {
		q    AuditQuery
		want bool
	}{
		"nothing said": {AuditQuery{}, true},
		"who":          {AuditQuery{Who: "ops"}, true}, "a part of who": {AuditQuery{Who: "op"}, false},
		"what": {AuditQuery{What: "execution."}, true}, "another what": {AuditQuery{What: "lock."}, false},
		"workflow":         {AuditQuery{Workflow: "stripe/*"}, true},
		"another workflow": {AuditQuery{Workflow: "stripe"}, false},
		"prefix":           {AuditQuery{Prefix: "stripe"}, true}, "another prefix": {AuditQuery{Prefix: "acme"}, false},
		"execution": {AuditQuery{Execution: "exec_1"}, true}, "another one": {AuditQuery{Execution: "exec_"}, false},
		"since": {AuditQuery{Since: at}, true}, "since later": {AuditQuery{Since: at.Add(1)}, false},
		"until": {AuditQuery{Until: at}, true}, "until earlier": {AuditQuery{Until: at.Add(-1)}, false},
	} {
		if got := c.q.Matches(a); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
