package admin

import (
	"context"
	"testing"
	"time"

	"hooklock/idem"
)

// forgedDeliveries is a ledger that knows some, on two pages.
type forgedDeliveries struct{ unreachable }

func (forgedDeliveries) BadSignatures(_ context.Context, q idem.BadSignatureQuery) (idem.BadSignaturePage, error) {
	if q.Cursor != "" {
		return idem.BadSignaturePage{}, nil
	}
	at := time.Now()
	page := idem.BadSignaturePage{NextCursor: "next", BadSignatures: []idem.BadSignature{{
		At: at, Route: "shop", From: "192.0.2.7", Scheme: "github", Reason: "mismatch", Part: "X-Hub-Signature-256",
		Detail: "the signature is not that of this body", EventID: "evt_1", TraceID: "0af7651916cd43dd8448eb211c80319c",
		Status: 401, More: 15, Until: at.Add(time.Minute),
	}}}
	return page, nil
}

func TestBadSignaturesAreListedForATokenOfAllWorkflows(t *testing.T) {
	r := newRig(t, forgedDeliveries{}, nil)
	r.want(401, "unauthorized", "GET", "/v1/signatures", "", "")
	r.want(403, "forbidden", "GET", "/v1/signatures", stripeToken, "")
	r.want(400, "bad_request", "GET", "/v1/signatures?since=yesterday", opsToken, "")
	first := r.ask("GET", "/v1/signatures?route=shop&since=1h", opsToken, "")
	listed, _ := first.json["badSignatures"].([]any)
	if first.StatusCode != 200 || len(listed) != 1 || listed[0].(map[string]any)["more"] != 15.0 {
		t.Fatalf("%s", first.body)
	}
	last := r.ask("GET", "/v1/signatures?cursor="+first.text("nextCursor"), opsToken, "")
	if listed, _ := last.json["badSignatures"].([]any); last.StatusCode != 200 || len(listed) != 0 ||
		last.text("nextCursor") != "" {
		t.Errorf("%s", last.body)
	}
}
