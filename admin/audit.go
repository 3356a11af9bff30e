package admin

import (
	"context"
	"log/slog"

	"hooklock/idem"
)

// entry is the result of a call in its audit line. It holds no secrets.
type entry struct {
	why       string
	workflow  string
	execution idem.ExecutionID
	before    string // "" = not known: the call was refused before it was looked up
	after     string
	existing  bool // nothing was changed, because the state was reached before
	quiet     bool // a read, not a change
	broken    bool // the answer ended in its middle
}

// of fills in the execution that was found.
func (e *entry) of(f *idem.Found) {
	e.workflow, e.execution = f.Workflow(), f.ID()
}

// writeAudit writes the audit line, and stores the same: who, what, why, before, after, result. A refused change has one, too.
func (c *call) writeAudit(p *problem) {
	result, status := "done", 0
	switch {
	case p != nil && p.Code == "store_unavailable":
		result = "unknown"
	case p != nil:
		result = "refused"
	case c.audit.existing:
		result = "nothing to do"
	case c.audit.broken:
		result = "unknown"
	}
	code := ""
	if p != nil {
		code, status = p.Code, p.Status
	}
	c.keep(idem.Audit{
		At: c.api.o.Now(), Who: c.who(), What: c.endpoint.change, Result: result, Why: c.audit.why, Before: c.audit.before, After: c.audit.after,
		Workflow: cut(c.audit.workflow), Execution: idem.ExecutionID(cut(string(c.audit.execution))), Code: code, Remote: c.r.RemoteAddr,
	})
	attributes := []slog.Attr{slog.String("who", c.who()), slog.String("what", c.endpoint.change), slog.String("result", result)}
	for _, a := range []slog.Attr{
		slog.String("why", c.audit.why), slog.String("before", c.audit.before), slog.String("after", c.audit.after),
		slog.String("workflow", cut(c.audit.workflow)), slog.String("execution", cut(string(c.audit.execution))),
		slog.String("code", code), slog.Int("status", status), slog.String("remote", c.r.RemoteAddr),
	} {
		if !a.Value.Equal(slog.StringValue("")) && !a.Value.Equal(slog.IntValue(0)) {
			attributes = append(attributes, a)
		}
	}
	logger := slog.New(everyLevel{c.auditLine().Handler()})
	logger.LogAttrs(context.Background(), slog.LevelInfo, "admin.audit", attributes...)
}

// reserve reserves room for the audit line of a change that an operator requests. A callback of an upstream is a part of its execution, which
// no log may stop.
func (c *call) reserve() (release func(), p *problem) {
	line, release, err := c.api.o.Audit()
	if err != nil {
		return nil, refuse("audit_unavailable", "nothing was changed, because the audit log (standard error) cannot be written: "+err.Error()+
			"; repair what reads it, then ask again")
	}
	c.line = line
	return release, nil
}

// auditLine returns the logger of the line: the reserved one, or else the usual one.
func (c *call) auditLine() *slog.Logger {
	if c.line == nil {
		if line, _, err := c.api.o.Audit(); err == nil {
			return line
		}
		return c.api.o.Log
	}
	return c.line
}

// everyLevel is a handler that takes lines of any level: changes must leave a trace even if lines about deliveries are not wanted.
type everyLevel struct{ slog.Handler }

// Enabled returns true.
func (everyLevel) Enabled(context.Context, slog.Level) bool { return true }

// who returns the name of the token, or the execution of a callback.
func (c *call) who() string {
	switch {
	case c.caller.key != "":
		return "callback of " + cut(c.name)
	case c.caller.token.Name == "":
		return "unknown"
	}
	return c.caller.token.Name
}

// cut bounds text from a client, so that it cannot fill the log.
func cut(s string) string {
	const longest = 2048
	if len(s) > longest {
		return s[:longest] + "…"
	}
	return s
}
