package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"hooklock/idem"
)

// answering is a ledger that answers one question, with an error.
type answering struct {
	unreachable
	err error
}

func (a answering) Lock(context.Context, string) (*idem.LockView, error) { return nil, a.err }

// Only a change may have happened although no answer came. A read changes nothing, and a read of
// what senders sent is audited, but changes nothing either.
func TestOnlyAChangeWithoutAnAnswerMayHaveBeenDone(t *testing.T) {
	r := newRig(t, unreachable{}, nil)
	for _, q := range requests {
		if asksNoLedger(q.path) {
			continue
		}
		path, _, _ := strings.Cut(q.path, "?")
		e, _, p := findEndpoint(allEndpoints(), q.method, path)
		if p != nil {
			t.Fatal(p)
		}
		want := "etcd does not answer in time; ask again"
		if q.method != http.MethodGet {
			want = "etcd does not answer in time; whether this was done is not known: look, then ask again"
		}
		token := map[access]string{forRead: opsToken, forWrite: opsToken, forBodies: bodiesToken,
			forCallback: callbackKey}[e.access]
		if a := r.want(503, "store_unavailable", q.method, q.path, token, q.body); a.text("detail") != want {
			t.Errorf("%s %s: %q, want %q", q.method, q.path, a.text("detail"), want)
		}
	}
	r.api.Close()
	for _, q := range []struct{ method, path, body string }{{"GET", "/v1/locks", ""},
		{"POST", "/v1/executions/" + anID + "/cancel", `{"reason":"r"}`}} {
		if a := r.want(503, "store_unavailable", q.method, q.path, opsToken,
			q.body); a.text("detail") != "this Hooklock shuts down; ask again" {
			t.Errorf("%s %s after the end: %q", q.method, q.path, a.text("detail"))
		}
	}
}

// mute is a ledger that applies a change, with its audit, and whose answer is lost.
type mute struct {
	unreachable
	said chan idem.Audit
}

func (m mute) Execution(context.Context, idem.ExecutionID) (*idem.Found, error) {
	return &idem.Found{Record: &idem.Record{}}, nil
}

func (m mute) Rerun(_ context.Context, _ idem.ExecutionID, a *idem.Audit) (*idem.Found, error) {
	a.Name = "the audit of the transaction"
	return nil, idem.ErrStoreUnavailable
}

func (m mute) AuditRefusal(a idem.Audit) { m.said <- a }

func TestAnUnknownResultDoesNotReplaceTheAuditOfTheTransaction(t *testing.T) {
	m := mute{said: make(chan idem.Audit, 1)}
	r := newRig(t, m, nil)
	r.want(503, "store_unavailable", "POST", "/v1/executions/"+anID+"/rerun", opsToken, `{"reason":"r"}`)
	if a := <-m.said; a.Result != idem.AuditUnknown || a.Name != "" {
		t.Errorf("%+v", a)
	}
}

func TestAStoreThatSaysWhyIsQuoted(t *testing.T) {
	const timeOut = "etcd does not answer in time; ask again"
	for why, want := range map[error]string{
		idem.ErrStoreUnavailable: timeOut,
		fmt.Errorf("%w: %w", idem.ErrStoreUnavailable,
			context.DeadlineExceeded): timeOut,
		fmt.Errorf("look: %w: get: %w", idem.ErrNotRecorded,
			context.DeadlineExceeded): timeOut,
		fmt.Errorf("look: %w: %w", idem.ErrStoreUnavailable,
			errors.New("no connection to etcd at http://a:1")): "no connection to etcd at http://a:1; ask again",
		fmt.Errorf("%w: %w", idem.ErrNotRecorded,
			errors.New(
				"etcd is out of space: disarm the NOSPACE alarm")): "etcd is out of space: disarm the NOSPACE alarm; " +
			"ask again",
	} {
		r := newRig(t, answering{err: why}, nil)
		if a := r.want(503, "store_unavailable", "GET", "/v1/locks/w", opsToken, ""); a.text("detail") != want {
			t.Errorf("%v: %q, want %q", why, a.text("detail"), want)
		}
	}
}

func TestAnErrorThatTheLedgerDoesNotPromiseIsABugAndLogged(t *testing.T) {
	for _, err := range []error{idem.ErrStoreUnavailable, idem.ErrNotRecorded, context.DeadlineExceeded,
		context.Canceled} {
		r := newRig(t, answering{err: fmt.Errorf("look: %w", err)}, nil)
		r.want(503, "store_unavailable", "GET", "/v1/locks/w", opsToken, "")
		if said := r.log.String(); strings.Contains(said, "admin.request") {
			t.Errorf("%v was logged: %s", err, said)
		}
	}
	r := newRig(t, answering{err: errors.New("an index out of range")}, nil)
	a := r.want(500, "internal_error", "GET", "/v1/locks/w", opsToken, "")
	if said := r.log.String(); !strings.Contains(said, "an index out of range") ||
		!strings.Contains(said, "/v1/locks/{workflow}") || strings.Contains(string(a.body), "index") {
		t.Errorf("%s logged %s", a.body, said)
	}
}
