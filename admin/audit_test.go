package admin

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// auditRoom is an audit log that has room, or not.
type auditRoom struct {
	text     bytes.Buffer
	full     error
	released int
}

func (a *auditRoom) reserve() (*slog.Logger, func(), error) {
	if a.full != nil {
		return nil, nil, a.full
	}
	return slog.New(slog.NewJSONHandler(&a.text, nil)), func() { a.released++ }, nil
}

func TestAChangeWhoseAuditLineCannotBeWrittenIsNotMade(t *testing.T) {
	audit := &auditRoom{full: errors.New("no space left on device")}
	f := newFleet(t, func(o *Options) { o.Audit = audit.reserve })
	d := f.run("w", "1")
	for _, q := range [][]string{
		{"POST", "/v1/locks/other/acquire", `{"ttl":"1m"}`},
		{"POST", "/v1/locks/other/renew", `{"executionId":"` + d.id + `","token":1}`},
		{"POST", "/v1/locks/other/release", `{"executionId":"` + d.id + `","token":1}`},
		{"DELETE", "/v1/locks/w?execution=" + d.id + "&reason=r", ""},
		{"DELETE", "/v1/executions/" + d.id + "?reason=r", ""},
		{"POST", "/v1/executions/" + d.id + "/cancel", `{"reason":"r"}`},
	} {
		a := f.want(503, "audit_unavailable", q[0], q[1], opsToken, q[2])
		if a.Header.Get("Retry-After") != "1" || !strings.Contains(a.text("detail"), "no space left on device") {
			t.Errorf("%s", a.body)
		}
	}
	if a := f.ask("GET", "/v1/executions/"+d.id, opsToken, ""); a.text("status") != "RUNNING" {
		t.Errorf("%s", a.body)
	}
	f.want(404, "lock_not_found", "GET", "/v1/locks/other", opsToken, "")
	if line := f.log.audit(t); line["result"] != "refused" || line["code"] != "audit_unavailable" {
		t.Errorf("a refusal has a line as any other, where there is room for it: %v", line)
	}
	audit.full = nil
	f.want(202, "", "POST", "/v1/executions/"+d.id+"/cancel", opsToken, `{"reason":"r"}`)
	if text := audit.text.String(); strings.Count(text, "admin.audit") != 1 ||
		!strings.Contains(text, `"what":"execution.cancel"`) || audit.released != 1 {
		t.Errorf("released %d times: %s", audit.released, text)
	}
}

func TestWhatAnUpstreamSaysOfItsOwnExecutionIsNotRefusedForTheLog(t *testing.T) {
	audit := &auditRoom{}
	f := newFleet(t, func(o *Options) { o.Audit = audit.reserve })
	d := f.run("w", "1")
	f.post(200, "", d, "guard", bodyOf(d, `,"step":"one"`))
	if !strings.Contains(audit.text.String(), `"what":"execution.guard"`) {
		t.Errorf("its lines are kept before others, too: %s", audit.text.String())
	}
	audit.full = errors.New("nobody reads it")
	f.post(200, "", d, "guard", bodyOf(d, `,"step":"two"`))
	if line := f.log.audit(t); line["after"] != "step two" {
		t.Errorf("%v", line)
	}
}
