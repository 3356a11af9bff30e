package proxy

import (
	"slices"
	"testing"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy/sender"
)

// TestExplainGoesOnAfterTheFirstRefusal: a payload that somebody has recorded is seldom signed as
// it was, and the 401 must not hide a template that reads nothing.
func TestExplainGoesOnAfterTheFirstRefusal(t *testing.T) {
	verifier, err := sender.New(sender.Config{Scheme: "token", Secrets: [][]byte{[]byte("s")}, Header: "X-Token"})
	if err != nil {
		t.Fatal(err)
	}
	pattern, err := ParsePattern("/x")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := naming.NewKeys(naming.KeySpec{Route: "a", Workflow: "w/{body.account}", EventID: "{body.id}",
		Missing: naming.MissingReject, Uses: []string{"t/{body.tenant}"},
		Labels: []naming.LabelSpec{{Name: "order", Template: "{body.order}"}}})
	if err != nil {
		t.Fatal(err)
	}
	route := &Route{Name: "a", Pattern: pattern, Methods: []string{"POST"}, Keys: keys,
		Policy: idem.Policy{Verified: true, Idempotency: true},
		Verify: Verification{Scheme: "token", Verifier: verifier}}
	rules := &Rules{Table: Table{Routes: []*Route{route}}, Limits: Limits{RequestBody: 60}}
	for body, want := range map[string]struct {
		codes    []string
		workflow string
		eventID  string
	}{
		`{}`: {codes: []string{"signature_invalid", naming.CodeWorkflowMissing,
			naming.CodeLimitMissing, naming.CodeEventIDMissing}},
		`{"account":"acme","tenant":"t"}`: {codes: []string{"signature_invalid", naming.CodeEventIDMissing},
			workflow: "w/acme"},
		`{"tenant":"t","id":"evt_1","order":7}`: {codes: []string{"signature_invalid", naming.CodeWorkflowMissing},
			eventID: "evt_1"},
		`{"account":"acme","tenant":"t","id":"evt_1","order":7}`: {codes: []string{"signature_invalid"},
			workflow: "w/acme", eventID: "evt_1"},
		`{"account":"acme","tenant":"t","id":"evt_1","order":7,"x":12}`: {codes: []string{codeBodyTooLarge,
			"signature_invalid"}, workflow: "w/acme", eventID: "evt_1"},
	} {
		x := rules.Explain(&Sample{Method: "POST", Target: "/x", Body: []byte(body)}, 4096, time.Now())
		var codes []string
		for _, bad := range x.Refusals {
			codes = append(codes, bad.Code)
		}
		if !slices.Equal(codes, want.codes) || x.Workflow != want.workflow || x.EventID != want.eventID ||
			(x.Key != "") != (want.workflow != "" && want.eventID != "") {
			t.Errorf("%s: %q, workflow %q, event ID %q, key %q", body, codes, x.Workflow, x.EventID, x.Key)
		}
	}
}
