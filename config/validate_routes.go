package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"

	"golang.org/x/net/http/httpguts"
)

func (v *validator) checkRoutes() {
	c := v.config
	if len(c.Routes) == 0 {
		v.warn("routes", "there are none: no delivery is guarded")
	}
	names := map[string]int{}
	var earlier []scope
	for i := range c.Routes {
		path := indexedPath("routes", i)
		r := &c.Routes[i]
		v.routeName(path, r.Name)
		if first, twice := names[r.Name]; twice && r.Name != "" {
			v.refuse(path+".name", "%q is also the name of routes[%d]", r.Name, first)
		}
		names[r.Name] = i
		pattern := v.checkMatch(path+".match", &r.Match)
		v.otherMethods(path, r)
		v.checkTemplates(path, r, pattern)
		v.checkIgnore(path+".ignore", r)
		v.checkTwins(path+".twins", r)
		v.checkVerify(path, r)
		if r.Digest && r.Verify.Scheme != SchemeNone {
			v.warn(path+".digest", "a request without body has no signature of it, and is 401 before it gets a "+
				"challenge: a sender such as curl cannot do both")
		}
		v.checkLock(path+".lock", r)
		v.checkUses(path+".uses", r, pattern)
		v.checkIdempotency(path+".idempotency", r)
		v.checkAsk(path, r, pattern)
		v.checkHold(path+".hold", r)
		v.checkPark(path+".park", r)
		v.checkRequests(path+".requests", r)
		v.checkOrder(path+".order", r, pattern)
		v.checkLatest(path, r)
		v.checkRespond(path+".respond", r.Respond)
		v.formerNames(path, r)
		v.checkWholeRoute(path, r)
		own := scope{&r.Match, pattern}
		if j := slices.IndexFunc(earlier, func(e scope) bool { return e.hidesRoute(own) }); j >= 0 {
			v.warn(path, "no delivery can reach this route: routes[%d] (%s) comes first and matches all of them", j,
				c.Routes[j].Name)
		}
		earlier = append(earlier, own)
	}
}

func (v *validator) routeName(path, name string) {
	path += ".name"
	if name == "" {
		v.refuse(path, "a route needs a name")
		return
	}
	if !madeOf(name, lowerCase+digits+"-") {
		v.refuse(path, "%q: a name is made of a-z, 0-9 and -", name)
		return
	}
	v.require(len(name) <= maxRouteName, path, "is longer than %d characters", maxRouteName)
}

// formerNames checks that former names are not names of routes, nor former names of other routes.
func (v *validator) formerNames(path string, r *Route) {
	path += ".former_names"
	for i, name := range r.FormerNames {
		at := fmt.Sprintf("%s[%d]", path, i)
		v.require(madeOf(name, lowerCase+digits+"-") && name != "" && len(name) <= maxRouteName, at,
			"%q: a name is made of a-z, 0-9 and -", name)
		for j := range v.config.Routes {
			other := &v.config.Routes[j]
			v.require(other.Name != name, at, "%q is the name of routes[%d]", name, j)
			v.require(other == r || !slices.Contains(other.FormerNames, name), at,
				"%q is a former name of routes[%d], too", name, j)
		}
		v.require(!slices.Contains(r.FormerNames[:i], name), at, "%q is given twice", name)
	}
}

// checkMatch returns the pattern of m, nil if it is wrong.
func (v *validator) checkMatch(path string, m *Match) *naming.Pattern {
	pattern, err := naming.ParsePattern(m.Path)
	if m.Path == "" {
		err = errors.New("a route needs a path, e.g. /hooks/stripe/{account}")
	}
	v.check(path+".path", err)
	v.require(len(m.Methods) > 0, path+".methods", "is empty, so no delivery could match")
	for i, method := range m.Methods {
		at := indexedPath(path+".methods", i)
		switch {
		case method == "" || !madeOf(method, upperCase+"-_"):
			v.refuse(at, "%q is not a method; write it in capitals, e.g. POST", method)
		case method == "CONNECT":
			v.refuse(at, "CONNECT has no path, so it cannot match")
		case slices.Contains(m.Methods[:i], method):
			v.refuse(at, "%s is given twice", method)
		}
	}
	v.checkHosts(path+".hosts", m.Hosts)
	return pattern
}

// scope is a route's match with its pattern parsed, nil if that is wrong.
type scope struct {
	*Match
	pattern *naming.Pattern
}

// hidesRoute reports whether no delivery reaches the later route, because the earlier one takes
// them all.
func (earlier scope) hidesRoute(later scope) bool {
	if earlier.pattern == nil || later.pattern == nil || !earlier.pattern.Covers(later.pattern) {
		return false
	}
	for _, method := range later.Methods {
		if !slices.Contains(earlier.Methods, method) {
			return false
		}
	}
	if len(earlier.Hosts) == 0 {
		return true
	}
	return len(later.Hosts) > 0 && !slices.ContainsFunc(later.Hosts, func(host string) bool {
		return !slices.ContainsFunc(earlier.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
	})
}

func (v *validator) checkHosts(path string, names []string) {
	seen := map[string]bool{}
	for i, host := range names {
		at, plain := indexedPath(path, i), strings.ToLower(host)
		v.check(at, checkHost(host))
		v.require(!seen[plain], at, "%s is given twice", host)
		seen[plain] = true
	}
}

func (v *validator) checkTemplates(path string, r *Route, pattern *naming.Pattern) {
	v.require(r.Workflow != "", path+".workflow", `is empty; "{route}" makes the whole route one workflow`)
	v.require(r.EventID != "", path+".event_id", `is empty; "{fingerprint}" takes what was sent as its own name`)
	if pattern == nil { // it captures nothing, and each {path.x} would be reported a second time
		return
	}
	v.check(path+".workflow", checkTemplate(r.Workflow, pattern))
	if r.EventID != naming.EventIDOfPreset {
		v.check(path+".event_id", checkTemplate(r.EventID, pattern))
	}
	for _, name := range sortedKeys(r.Labels) {
		v.check(joinPath(path+".labels", name), checkTemplate(r.Labels[name], pattern))
	}
	v.require(len(r.Labels.Used()) <= naming.MaxLabels, path+".labels", "has %d, with those of the preset; at most %d",
		len(r.Labels.Used()), naming.MaxLabels)
	v.warnUnnamed(path, r, pattern)
}

// warnUnnamed warns about a variable of the path that no name of an event has: two tenants whose
// events have one ID then share a key.
func (v *validator) warnUnnamed(path string, r *Route, pattern *naming.Pattern) {
	workflow, err := naming.CompileTemplate(r.Workflow)
	if err != nil || !r.Idempotency.Enabled {
		return
	}
	sources := workflow.Sources()
	if event, err := naming.CompileTemplate(r.EventID); err == nil {
		sources = append(sources, event.Sources()...)
	}
	for _, name := range pattern.Vars() {
		if !slices.ContainsFunc(sources, func(s naming.Source) bool {
			return s.Kind == naming.SourcePath && s.Name == name || s.Kind == naming.SourceFingerprint
		}) {
			v.warn(path+".match.path", "{%s} is in neither workflow nor event_id: an event ID that comes under two "+
				"values of it is one event, so that the second "+
				"never runs, or runs with each copy; put {path.%[1]s} into one of them, such as workflow: %[2]q", name,
				r.Name+"/{path."+name+"}")
		}
	}
}

// checkTemplate refuses what naming does, and a {path.x} that the pattern does not capture: it
// would always be missing.
func checkTemplate(text string, pattern *naming.Pattern) error {
	if text == "" {
		return nil
	}
	t, err := naming.CompileTemplate(text)
	if err != nil {
		return err
	}
	for _, source := range t.Sources() {
		if source.Kind == naming.SourcePath && !slices.Contains(pattern.Vars(), source.Name) {
			return fmt.Errorf("column %d: {%s}: the route's path captures no {%s}", source.Column, source.Text,
				source.Name)
		}
	}
	return nil
}

func (v *validator) checkLock(path string, r *Route) {
	l, usual := &r.Lock, defaultRoute().Lock
	v.lockLimit(path, r)
	v.requirePositive(path+".wait_timeout", l.WaitTimeout)
	v.requireNumber(path+".max_waiting", l.MaxWaiting, maxConnections)
	if l.MaxDuration > 0 && l.MaxDuration < v.config.Upstream.Timeout {
		v.warn(path+".max_duration", "%s is shorter than upstream.timeout (%s): executions are ended while the "+
			"upstream may still answer",
			idem.DurationText(l.MaxDuration), idem.DurationText(v.config.Upstream.Timeout))
	}
	if because := r.whyNoneWaits(); because != "" {
		v.warnIdle(path+".wait_timeout", l.WaitTimeout != usual.WaitTimeout, because)
		v.warnIdle(path+".max_waiting", l.MaxWaiting != usual.MaxWaiting, because)
	}
}

// LongestWait returns for how long a delivery of the route may wait beside the time of its
// upstream: in the queue, or for the answer of the first delivery. 0 = no delivery waits.
func (r *Route) LongestWait() time.Duration {
	if r.whyNoneWaits() != "" {
		return 0
	}
	return r.Lock.WaitTimeout
}

// whyNoneWaits says why no delivery of the route ever waits, in the queue or for the answer of the
// first delivery; "" = some do, or will when the route enforces.
func (r *Route) whyNoneWaits() string {
	i := &r.Idempotency
	switch s := r.Lock.Strategy; {
	case s == idem.Skip:
		return "lock.strategy is skip: no delivery waits"
	case s == idem.NoLock && (!i.Enabled || i.InFlight != idem.Attach):
		return "lock.strategy is none: only duplicates with idempotency.in_flight: attach wait"
	case s == idem.FailFast && !i.Enabled:
		return "idempotency.enabled is false: fail_fast lets an event wait that it has refused before, and knows " +
			"none again"
	}
	return ""
}

// warnIdle warns about a setting that was changed from its default and has no effect.
func (v *validator) warnIdle(path string, changed bool, because string) {
	if changed && !v.places[path].isFilledIn() {
		v.warn(path, "has no effect: %s", because)
	}
}

func (v *validator) checkIdempotency(path string, r *Route) {
	i := &r.Idempotency
	for _, t := range []struct {
		key string
		ok  bool
	}{
		{".retention", i.Retention > 0 && i.Retention <= maxRetention},
		{".payload_retention", i.PayloadRetention > 0 && i.PayloadRetention <= maxRetention},
		{".replay_retention", i.ReplayRetention > 0 && i.ReplayRetention <= maxRetention},
	} {
		v.require(t.ok, path+t.key, "must be longer than 0s and at most %s", idem.DurationText(maxRetention))
	}
	v.require(i.Attempts >= 0 && i.Attempts <= maxAttempts, path+".attempts",
		"%d is out of bounds; choose from 1 to %d, or 0 for any number", i.Attempts, maxAttempts)
	v.require(i.NewPerSecond >= 0 && i.NewPerSecond <= maxConnections, path+".new_per_second",
		"%d is out of bounds; choose from 1 to %d, or 0 for no bound", i.NewPerSecond, maxConnections)
	v.requireSize(path+".replay_body", i.ReplayBody, 0, maxReplayBody)
	for n, name := range i.Credentials {
		v.require(httpguts.ValidHeaderFieldName(name), indexedPath(path+".credentials", n),
			"%q is no name of a header; write it as X-Api-Key", name)
	}
	v.require(!i.Enabled || i.OnMismatch != idem.MismatchReplay || r.Verify.Scheme != SchemeNone, path+".on_mismatch",
		"replay, without a signature: anyone who knows the ID of an event can settle it with another body, and the "+
			"event never runs; "+
			"check signatures (verify), write reject, or replay_unsigned if only the sender can reach this route")
	v.checkStatuses(path, i)
	v.idleIdempotency(path, r)
	v.noteMismatch(path+".on_mismatch", r)
	v.warnFirst(path+".on_mismatch", r)
}

// warnFirst warns about a batch that is named by one of its events, if that alone decides: the
// sender may send that event again beside others.
func (v *validator) warnFirst(path string, r *Route) {
	t, err := naming.CompileTemplate(r.EventID)
	if replays := r.Idempotency.OnMismatch; err != nil || !r.Idempotency.Enabled ||
		replays != idem.MismatchReplay && replays != idem.MismatchReplayUnsigned {
		return
	}
	sources := t.Sources()
	i := slices.IndexFunc(sources, func(s naming.Source) bool {
		return slices.Contains([]naming.SourceKind{naming.SourceBody, naming.SourceForm, naming.SourceXML}, s.Kind) &&
			indexStep.MatchString(s.Name)
	})
	// beside it, and not as its last resort
	whole := strings.Contains(r.EventID, "{body_sha256}") || strings.Contains(r.EventID, "{fingerprint}")
	if i >= 0 && !whole {
		v.warn(path, "%s, and event_id has {%s}: where the request has several events, one that comes again beside "+
			"others takes them along, so that they never run; "+
			"say execute, put {body_sha256} into event_id, too, or take a preset that reads all of them",
			r.Idempotency.OnMismatch, sources[i].Text)
	}
}

// indexStep is an element of a list.
var indexStep = regexp.MustCompile(`\[[0-9]+\]`)

// noteMismatch notes a default that refuses senders whose body counts the attempts: once one of
// them took effect, the others are refused.
func (v *validator) noteMismatch(path string, r *Route) {
	i := &r.Idempotency
	if _, said := v.places[path]; said || len(r.Ignore) > 0 || r.Preset != "" || !i.Enabled ||
		i.OnMismatch != idem.MismatchReject || !readsBody(r.EventID) {
		return
	}
	other := "replay"
	if r.Verify.Scheme == SchemeNone {
		other = "execute, or replay_unsigned if only the sender can reach this route"
	}
	v.notes = append(v.notes, Problem{Path: path, Text: "is reject (422), the default: if the sender changes " +
		"something else in the body between attempts, such as a counter or a time, " +
		"each attempt after one that took effect is refused for ever, if the sender did not get that answer; then " +
		"name it in ignore, or say " + other + ". hooklock report shows what such a sender changes"})
}

// readsBody reports whether a template reads a member of the body. A wrong one is reported
// elsewhere.
func readsBody(template string) bool {
	t, err := naming.CompileTemplate(template)
	return err == nil && slices.ContainsFunc(t.Sources(), func(s naming.Source) bool {
		return s.Kind == naming.SourceBody || s.Kind == naming.SourceForm || s.Kind == naming.SourceXML
	})
}

func (v *validator) checkStatuses(path string, i *Idempotency) {
	for _, list := range []struct {
		key    string
		ranges []StatusRange
	}{{".keep", i.Keep}, {".unknown", i.Unknown}} {
		for n, r := range list.ranges {
			v.require(r.Low >= 200, indexedPath(path+list.key, n), "%s: an answer has a status from 200 to 599", r)
		}
	}
	for n, u := range i.Unknown {
		for _, k := range i.Keep {
			if u.Low <= k.High && k.Low <= u.High {
				v.refuse(indexedPath(path+".unknown", n),
					"%s is also in keep (%s); an answer settles the event, or says nothing about it", u, k)
			}
		}
	}
	if i.Enabled && len(i.Keep) == 0 {
		v.warn(path+".keep", "is empty: no answer settles an event, so every duplicate runs again")
	}
}

func (v *validator) checkHold(path string, r *Route) {
	h, most := &r.Hold, r.Lock.MaxDuration
	v.require(h.TTL >= minHold && h.TTL <= maxRetention && h.TTL%time.Second == 0, path+".ttl",
		"%s is out of bounds; choose whole seconds from %s to %s", idem.DurationText(h.TTL), idem.DurationText(minHold),
		idem.DurationText(maxRetention))
	v.warnIdle(path+".ttl", h.TTL != defaultRoute().Hold.TTL && len(h.OnStatus) == 0,
		"hold.on_status is empty; an upstream that asks with Hooklock-Hold says for how long")
	if most > 0 && h.TTL > most && len(h.OnStatus) > 0 {
		v.warn(path+".ttl", "%s is longer than lock.max_duration (%s), which ends every execution",
			idem.DurationText(h.TTL), idem.DurationText(most))
	}
	for i, held := range h.OnStatus {
		for _, unknown := range r.Idempotency.Unknown {
			if held.Low <= unknown.High && unknown.Low <= held.High {
				v.warn(indexedPath(path+".on_status", i), "%s is also in idempotency.unknown; such an answer is held, "+
					"and its outcome is what the upstream completes it with", held)
			}
		}
	}
}

// idleIdempotency warns about settings that other settings switch off.
func (v *validator) idleIdempotency(path string, r *Route) {
	i, usual := &r.Idempotency, defaultRoute().Idempotency
	if r.OnMissingEventID != naming.MissingPayload && i.Enabled {
		v.warnIdle(path+".payload_retention", i.PayloadRetention != usual.PayloadRetention,
			"on_missing_event_id is not payload")
	}
	if i.Enabled {
		return
	}
	const off = "idempotency.enabled is false"
	whole, route := strings.TrimSuffix(path, "idempotency"), defaultRoute()
	unnamed := off + ": no delivery is taken for a copy of another one"
	if v.places[path+".enabled"].isFilledIn() {
		unnamed = off + ", as the preset says: no delivery is taken for a copy of another one; say idempotency: " +
			"{enabled: true}, too, where this names an event"
	}
	v.warnIdle(whole+"event_id", r.EventID != route.EventID, unnamed)
	v.warnIdle(whole+"on_missing_event_id", r.OnMissingEventID != route.OnMissingEventID, off)
	v.warnIdle(path+".in_flight", i.InFlight != usual.InFlight, off)
	v.warnIdle(path+".retention", i.Retention != usual.Retention, off)
	v.warnIdle(path+".payload_retention", i.PayloadRetention != usual.PayloadRetention, off)
	v.warnIdle(path+".replay_body", i.ReplayBody != usual.ReplayBody, off)
	v.warnIdle(path+".replay_retention", i.ReplayRetention != usual.ReplayRetention, off)
	v.warnIdle(path+".on_mismatch", i.OnMismatch != usual.OnMismatch, off)
	v.warnIdle(path+".credentials", len(i.Credentials) > 0, off)
	v.warnIdle(whole+"ignore", len(r.Ignore) > 0, off)
	v.warnIdle(path+".on_unknown", i.OnUnknown != usual.OnUnknown, off)
	v.warnIdle(path+".attempts", i.Attempts != usual.Attempts, off)
	v.warnIdle(path+".keep", !slices.Equal(i.Keep, usual.Keep), off)
}

func (v *validator) checkRespond(path string, statuses map[string]int) {
	for _, decision := range sortedKeys(statuses) {
		at, status := joinPath(path, decision), statuses[decision]
		if decision == RespondAsked {
			v.require(status >= 200 && status < 300, at, "%d does not say that the event was received; choose a 2xx",
				status)
			continue
		}
		if err := checkDecision(decision); err != nil {
			v.check(at, err)
			continue
		}
		if err := checkRespondStatus(status); err != nil {
			v.check(at, err)
			continue
		}
		if status < 300 && !idem.Decision(decision).Row().Droppable {
			v.warn(at, "%d tells the sender that all is well, and it does not send the event again, although it did "+
				"not surely run", status)
		}
	}
}

// checkVerify judges the names of preset and scheme; whether they fit together is for
// Source.CheckRoute.
func (v *validator) checkVerify(path string, r *Route) {
	if r.Preset != "" && findKnown(v.senders.Presets, r.Preset) == nil {
		v.check(path+".preset", nameError(v.senders.Presets, r.Preset))
	}
	s := &r.Verify
	path += ".verify"
	if s.Scheme != SchemeNone && findKnown(v.senders.Schemes, s.Scheme) == nil {
		v.check(path+".scheme", nameError(v.senders.Schemes, s.Scheme))
	}
	if s.Scheme == SchemeNone {
		secrets := s.SecretFile != "" || s.SecretEnv != "" || len(s.SecretFiles) > 0 || s.PublicKeyFile != "" ||
			len(s.PublicKeyFiles) > 0
		v.warnIdle(path, secrets, "verify.scheme is none: no signature is checked")
	}
	for _, own := range s.genericSettings() {
		v.warnIdle(path+"."+own.key, own.given && !slices.Contains(own.schemes, s.Scheme), "only verify.scheme "+
			strings.Join(own.schemes, ", ")+" reads it")
	}
}

// genericSetting is a setting of senders that have no preset.
type genericSetting struct {
	key     string
	given   bool
	schemes []string // that read it
}

func (v *Verify) genericSettings() []genericSetting {
	all, mac, keyed, token := []string{"hmac", "jwt", "token"}, []string{"hmac"}, []string{"hmac", "jwt"},
		[]string{"jwt"}
	return []genericSetting{
		{"header", v.Header != "", all}, {"from", len(v.From) > 0, all}, {"prefix", v.Prefix != "", all},
		{"encoding", v.Encoding != "", mac}, {"content", v.Content != "", mac}, {"timestamp", v.Timestamp != "", mac},
		{"secret_encoding", v.SecretEncoding != "", keyed},
		{"issuer", v.Issuer != "", token}, {"audience", v.Audience != "", token}, {"claims", len(v.Claims) > 0, token},
		{"body_hash", v.BodyHash != "", token},
	}
}

// wasWritten reports whether the user wrote path, in so many words.
func (v *validator) wasWritten(path string) bool {
	at, found := v.places[path]
	return found && !at.isFilledIn()
}

// checkWholeRoute asks Source.CheckRoute, unless the route is broken already: it would say the same
// in other words.
func (v *validator) checkWholeRoute(path string, r *Route) {
	if v.checkRoute == nil {
		return
	}
	for _, p := range v.problems {
		if strings.HasPrefix(p.Path, path+".") {
			return
		}
	}
	problems, warnings := v.checkRoute(v.config, r)
	for _, p := range problems {
		if p.Unless != "" && v.wasWritten(joinPath(path, p.Unless)) {
			warnings = append(warnings, p)
			continue
		}
		v.refuse(joinPath(path, p.Path), "%s", p.Text)
	}
	for _, w := range warnings {
		v.warn(joinPath(path, w.Path), "%s", w.Text)
	}
}
