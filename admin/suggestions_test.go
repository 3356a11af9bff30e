package admin

import (
	"context"
	"testing"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

// twoReplicas is a ledger that knows another replica beside this one.
type twoReplicas struct{ unreachable }

func (twoReplicas) Replicas(context.Context) ([]idem.ReplicaNote, error) {
	return []idem.ReplicaNote{
		{Writer: "a", Self: true, Alive: true, At: time.Now(), Says: []byte(`{"replica":"a"}`)},
		{Writer: "b", Alive: true, At: time.Now(), Says: []byte(`{"replica":"b"}`)},
	}, nil
}

func newSuggestRig(t *testing.T, ledger Ledger) *rig {
	return newRig(t, ledger, func(o *Options) {
		o.Suggest = func(since time.Time) client.SuggestionList {
			if time.Since(since) < time.Hour {
				return client.SuggestionList{Replica: "a", Recording: true, Suggestions: []client.Suggestion{}}
			}
			at := client.Time{Time: time.Now()}
			return client.SuggestionList{Replica: "a", Recording: true, Passed: 3, Suggestions: []client.Suggestion{
				{Route: "shop", Path: "/hooks/shop", Deliveries: 7, Since: at, Until: at, EventID: "{body.id}",
					Workflow: "shop/{body.customer}", Ignore: []string{"body.at"}, Preset: "stripe",
					Predicted: &client.Predicted{Events: 5, Repeats: 2}, YAML: "  - name: shop\n",
					Sentences: []string{"7 deliveries."}},
				{Route: "erp", Configured: true, Path: "/hooks/erp", Since: at, Until: at, YAML: "  - name: erp\n",
					Sentences: []string{}},
			}}
		}
	})
}

func TestWhatIsSuggestedIsForATokenOfAllWorkflows(t *testing.T) {
	r := newSuggestRig(t, twoReplicas{})
	r.want(401, "unauthorized", "GET", "/v1/suggestions", "", "")
	r.want(403, "forbidden", "GET", "/v1/suggestions", stripeToken, "")
	r.want(400, "bad_request", "GET", "/v1/suggestions?since=yesterday", opsToken, "")
	if a := r.ask("GET", "/v1/suggestions", opsToken, ""); a.StatusCode != 200 || a.number("others") != 1 ||
		len(a.json["suggestions"].([]any)) != 2 {
		t.Errorf("%s", a.body)
	}
	for _, route := range []string{"erp", "/hooks/erp"} {
		if a := r.ask("GET", "/v1/suggestions?since=24h&route="+route, opsToken,
			""); len(a.json["suggestions"].([]any)) != 1 {
			t.Errorf("%s", a.body)
		}
	}
}

func TestWhatIsSuggestedNeedsNoEtcd(t *testing.T) {
	r := newSuggestRig(t, unreachable{})
	if a := r.ask("GET", "/v1/suggestions?since=10m", opsToken, ""); a.StatusCode != 200 ||
		len(a.json["suggestions"].([]any)) != 0 {
		t.Errorf("%s", a.body)
	}
}
