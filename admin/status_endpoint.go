package admin

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

// Process is the process around the API, as the API needs it.
type Process interface {
	// Status returns its status.
	Status() client.ReplicaStatus
	// Routes returns what its routes do, in the order of the configuration.
	Routes() []client.RouteRules
	// Config returns the configuration in force, without secrets. With origin each value has where
	// it comes from.
	Config(origin bool) (client.RunningConfig, error)
	// Reload reads the configuration again and takes it over. Problems are why it did not. The
	// error is that of a context which ended before the process came to it; it may come to it yet.
	Reload(ctx context.Context) (reloaded client.Reloaded, problems []string, err error)
	// TestNotify sends one test message to the receiver of notify, and returns what came of it.
	TestNotify(ctx context.Context) client.NotifyTest
}

// refuseLimited refuses a token that is limited to some workflows, for what is over all of them.
func (c *call) refuseLimited(what string) error {
	if c.caller.isLimited() {
		return refuse("forbidden", what+" is over all workflows, and the token is limited to some")
	}
	return nil
}

// replicaStatus returns the status of this process.
func (c *call) replicaStatus() error {
	return c.respond(http.StatusOK, c.api.options.Process.Status())
}

// listRoutes returns what the routes do.
func (c *call) listRoutes() error {
	return c.respond(http.StatusOK, client.RouteList{Routes: c.api.options.Process.Routes()})
}

// testNotify sends a test message.
func (c *call) testNotify() error {
	if err := c.noFields(); err != nil {
		return err
	}
	result := c.api.options.Process.TestNotify(c.r.Context())
	c.audit.After = "taken"
	if !result.Taken {
		c.audit.After = result.Problem
	}
	c.auditNow(idem.AuditDone)
	return c.respond(http.StatusOK, result)
}

// getConfig returns the configuration in force.
func (c *call) getConfig() error {
	origin := false
	if text := c.query("origin"); text != "" {
		var err error
		if origin, err = strconv.ParseBool(text); err != nil {
			return refuse("bad_request", "origin="+quoteText(text)+": give true or false")
		}
	}
	running, err := c.api.options.Process.Config(origin)
	if err != nil {
		return err
	}
	return c.respond(http.StatusOK, running)
}

// noFields reads a body without fields: none, or an empty object.
func (c *call) noFields() error {
	if p := checkMediaType(c.r); p != nil {
		return p
	}
	if c.r.ContentLength == 0 {
		return nil
	}
	return c.readBody(fields{})
}

// reloadTime bounds a reload with one that is before it: each reads files, for ten seconds at most.
const reloadTime = 25 * time.Second

// reloadConfig reads the configuration again.
func (c *call) reloadConfig() error {
	if err := c.noFields(); err != nil {
		return err
	}
	// it goes on when the client disconnects
	ctx, done := context.WithTimeout(context.WithoutCancel(c.r.Context()), reloadTime)
	defer done()
	defer context.AfterFunc(c.api.life, done)()
	reloaded, problems, err := c.api.options.Process.Reload(ctx)
	if err != nil {
		return refuse("overloaded", "this Hooklock cannot reload now: it is shutting down, or another reload is "+
			"running; "+
			"whether this was done is not known; look with GET /v1/status, then ask again")
	}
	if len(problems) > 0 {
		c.audit.After = cutText(strings.Join(problems, "; "))
		p := refuse("config_refused", "the configuration was refused, and the old one stays: "+
			strings.Join(problems, "; "))
		p.Problems = problems
		return p
	}
	result := idem.AuditDone
	if c.audit.After = strings.Join(reloaded.Changed, ", "); len(reloaded.Changed) == 0 {
		result = idem.AuditNothing
	}
	c.auditNow(result)
	return c.respond(http.StatusOK, reloaded)
}
