package admin

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
	"hooklock/idem/naming"
)

// Bounds of a pause that ends by itself. etcd keeps no lease for less than the shorter one.
const (
	minPause = 2 * time.Second
	maxPause = 365 * 24 * time.Hour
)

// scopeOf reads the name of a pause. A pattern is compared with workflows as they are printed, so
// it is spelled as they are.
func scopeOf(text string) (idem.PauseScope, error) {
	s, err := idem.ParsePauseScope(text)
	s.Workflow = naming.SpelledPattern(s.Workflow)
	return s, err
}

// pauseScope reads what is to be paused. A token that is for some workflows may pause those, and
// patterns that are within its own.
func (c *call) pauseScope(text string) (idem.PauseScope, error) {
	s, err := scopeOf(text)
	if err != nil {
		return s, refuse("bad_request", "scope: "+err.Error())
	}
	if !c.seesPause(s) {
		return s, refuse("forbidden", "the token is limited to some workflows: give workflow:PATTERN with a pattern "+
			"that is within one of its own")
	}
	return s, nil
}

// seesPause reports whether the caller may see a pause. In a token's pattern "*" stands for a
// pattern's own "*", too, and nothing else does.
func (c *call) seesPause(s idem.PauseScope) bool {
	return !c.caller.isLimited() || s.Workflow != "" && c.caller.maySee(s.Workflow)
}

// unknownRoute returns a warning that this process has no route of that name: it may be mistyped,
// or another replica's. "" = it has one, or the scope is not a route.
func (c *call) unknownRoute(s idem.PauseScope) string {
	if s.Route == "" || c.api.options.Process == nil {
		return ""
	}
	var names []string
	for _, r := range c.api.options.Process.Routes() {
		names = append(names, r.Route)
	}
	if len(names) == 0 || slices.Contains(names, s.Route) {
		return ""
	}
	text := "no route of this replica's configuration has the name " + quoteText(s.Route)
	if near := naming.Nearest(s.Route, names); near != "" {
		return text + ", did you mean " + quoteText(near) + "?"
	}
	return text + "; GET /v1/routes lists them"
}

func (c *call) listPauses() error {
	ctx, done := c.readContext()
	defer done()
	states, err := c.api.options.Ledger.Pauses(ctx)
	if err != nil {
		return err
	}
	answer := client.PauseList{Pauses: []client.Pause{}}
	for i := range states {
		if c.seesPause(states[i].Scope) {
			answer.Pauses = append(answer.Pauses, c.viewOfPause(&states[i]))
		}
	}
	return c.respond(http.StatusOK, answer)
}

// pauseNow returns how far the pause of a scope has come.
func (c *call) pauseNow(s idem.PauseScope) (client.Pause, error) {
	ctx, done := c.readContext()
	defer done()
	states, err := c.api.options.Ledger.Pauses(ctx)
	for i := range states {
		if states[i].Scope == s {
			return c.viewOfPause(&states[i]), nil
		}
	}
	if err == nil {
		err = idem.ErrNoPause
	}
	return client.Pause{}, err
}

func (c *call) getPause() error {
	s, err := scopeOf(c.name)
	if err != nil || !c.seesPause(s) {
		return idem.ErrNoPause
	}
	view, err := c.pauseNow(s)
	if errors.Is(err, idem.ErrNoPause) {
		return c.noPause(s)
	}
	if err != nil {
		return err
	}
	return c.respond(http.StatusOK, view)
}

// noPause returns idem.ErrNoPause, with what is known of the scope.
func (c *call) noPause(s idem.PauseScope) error {
	p := c.problemOf(idem.ErrNoPause)
	if unknown := c.unknownRoute(s); unknown != "" {
		p.Detail += "; " + unknown
	}
	return p
}

func (c *call) addPause() error {
	var scope, reason string
	var until time.Duration
	if err := c.readBody(fields{"scope": &scope, "reason": &reason, "for": &until}); err != nil {
		return err
	}
	c.audit.Workflow = scope
	if err := c.checkReason(reason); err != nil {
		return err
	}
	s, err := c.pauseScope(scope)
	if err != nil {
		return err
	}
	if until != 0 && (until < minPause || until > maxPause) {
		return refuse("bad_request", fmt.Sprintf("for: give %v to %v, or leave it out for a pause that lasts until "+
			"it is resumed", minPause, maxPause))
	}
	ctx, done := c.changeContext()
	defer done()
	p := idem.Pause{Scope: s, By: c.caller.token.Name, Reason: reason, Since: c.api.options.Now(),
		For: (until + time.Second - 1).Truncate(time.Second)}
	before, err := c.api.options.Ledger.Pause(ctx, p, &c.audit.Audit)
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if before != nil {
		status = http.StatusOK
	}
	view, err := c.pauseNow(s)
	if err != nil { // it is paused, as requested
		view = c.viewOfPause(&idem.PauseState{Pause: p, More: true})
	}
	return c.respond(status, view)
}

func (c *call) endPause() error {
	c.audit.Workflow, c.audit.Why = cutText(c.name), cutText(c.query("reason"))
	if err := checkText("reason", c.query("reason"), maxText); err != nil {
		return err
	}
	s, err := c.pauseScope(c.name)
	if err != nil {
		return err
	}
	ctx, done := c.changeContext()
	defer done()
	p, err := c.api.options.Ledger.Resume(ctx, s, &c.audit.Audit)
	if errors.Is(err, idem.ErrNoPause) {
		c.audit.Before = "not paused"
		return c.noPause(s)
	}
	if err != nil {
		return err
	}
	return c.respond(http.StatusOK, client.EndedPause{Scope: s.String(), By: p.By, Reason: p.Reason,
		Since: client.Time{Time: p.Since}, Until: client.Time{Time: p.Until()}})
}

func (c *call) viewOfPause(p *idem.PauseState) client.Pause {
	return client.Pause{
		Scope: p.Scope.String(), By: p.By, Reason: p.Reason, Since: client.Time{Time: p.Since},
		Until:   client.Time{Time: p.Until()},
		Waiting: p.Waiting, Parked: p.Parked, Running: p.Running, Unheard: append([]string{}, p.Unacknowledged...),
		Incomplete: p.More, Drained: p.Drained(),
		Warning: c.unknownRoute(p.Scope),
	}
}
