package proxy

import (
	"bytes"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy/asking"
	"hooklock/proxy/sender"
)

// Route says which deliveries it takes, and by which rules. It is made when the configuration is
// loaded, and never changed.
type Route struct {
	Name    string
	Former  []string // names of former routes whose accepted events it runs, too
	Pattern *Pattern
	Methods []string
	Hosts   []string // in lower case, without a port; none means every host
	Verify  Verification
	Keys    *naming.Keys
	Policy  idem.Policy
	// Ask says what the service's answers about unknown outcomes mean. nil if it is not asked.
	Ask *asking.Rule
	// Renewer makes new signatures for parked deliveries. nil if they keep the ones that they came
	// with.
	Renewer *sender.Renewer
	// SignatureAge is the age at which the service refuses a signature that was not renewed. 0 if
	// it refuses none for that.
	SignatureAge time.Duration
	// KeepRequests is how long the requests of executions that called the service are stored. 0 if
	// they are not.
	KeepRequests time.Duration
	// TwinWindow is for how long after an event another one with the same body is its twin. 0 if
	// that is not looked for.
	TwinWindow time.Duration
	// Forward means that a delivery is forwarded as bypassed if the store cannot decide. Otherwise
	// it is refused with 503.
	Forward bool
	// ParkNearLimit means that deliveries are parked at once, if they may be, while the sender is
	// half way to switching the endpoint off.
	ParkNearLimit bool
	// Digest means that the service asks for HTTP Digest, so that a request without body and
	// Authorization is no event.
	Digest bool
	// Observe means that the route decides, counts and logs, and refuses nothing.
	Observe bool
	Respond map[idem.Decision]int // other statuses for refusing decisions
	// RetryAfterUnit is the unit in which the sender reads a number in Retry-After. 0 is a second.
	RetryAfterUnit time.Duration

	firsts firsts // deliveries that are compared with what may come under their event ID
}

// Mode returns observe or enforce.
func (r *Route) Mode() string {
	if r.Observe {
		return "observe"
	}
	return "enforce"
}

func (r *Route) takesMethod(method []byte) bool {
	return slices.Contains(r.Methods, string(method))
}

func (r *Route) takesHost(host []byte) bool {
	if len(r.Hosts) == 0 {
		return true
	}
	name, _ := naming.SplitHost(host)
	return slices.ContainsFunc(r.Hosts, func(h string) bool {
		return len(h) == len(name) && bytes.EqualFold(name, []byte(h))
	})
}

// Table has the routes in the order of the configuration. The first that matches takes the
// delivery.
type Table struct {
	Routes []*Route
	// RejectUnmatched answers 404 to requests that no route takes. Otherwise they pass through as
	// they came.
	RejectUnmatched bool
}

// maxLoggedPath bounds a path in the log, in bytes: a sender chooses it freely.
const maxLoggedPath = 200

// findRoute finds the route that takes the delivery, and the data that a delivery on a route needs.
// The route stays nil if none takes it.
func (d *delivery) findRoute(ctx *fasthttp.RequestCtx) *ending {
	rules := d.handler.rules.Load()
	route, vars, bad := rules.Table.findRoute(&d.req.place)
	switch {
	case bad != nil:
		path := d.req.place.path
		d.report.Path = naming.HideSecrets(string(path[:min(len(path), maxLoggedPath)]))
		return d.rejectWith(bad)
	case route == nil:
		return nil
	}
	d.route, d.req.msg.Vars = route, vars
	d.report.Route, d.report.Keyed, d.report.Locks = route.Name, route.Policy.Idempotency,
		route.Policy.Strategy != idem.NoLock
	d.report.Verified = route.Verify.Verifier == nil
	d.req.setPeer(ctx)
	d.beginTrace()
	if d.req.head.Upgrade() != nil {
		return d.rejectWith(upgradeRefused()).hangingUp() // what follows may be the other protocol already
	}
	return nil
}

// question is the part of a delivery that decides its route. Its memory is used again.
type question struct {
	method, host, path []byte
	// bare: neither a body nor an Upgrade comes with it.
	bare bool
	msg  *naming.Message // all of its head

	vars   []naming.PathVar
	normal []byte
	folded foldedPath
}

// routeNamed returns the route of that name, or of that former name; nil if there is none.
func (t *Table) routeNamed(name string) *Route {
	for _, r := range t.Routes {
		if r.Name == name || slices.Contains(r.Former, name) {
			return r
		}
	}
	return nil
}

// findRoute returns the route for a delivery; nil means that no route takes it and that it passes
// through. Which deliveries a route covers must not depend on spelling: a path that only becomes a
// route's path under another reading is refused, because the upstream may read it so.
func (t *Table) findRoute(q *question) (*Route, []naming.PathVar, *Rejection) {
	var route *Route
	route, q.vars = t.matchRoute(q.host, q.path, q.vars)
	if other := t.otherSpelling(q, route); other != nil {
		return nil, nil, newRejection(codeAmbiguousPath,
			"this path is another spelling of the route "+other.Pattern.String()+
				"; send it spelled like that").withRoute(other)
	}
	switch {
	case route == nil && t.RejectUnmatched:
		return nil, nil, newRejection(codeRouteNotFound,
			"no route takes this path, and unmatched deliveries are not passed on here")
	case route == nil || route.takesMethod(q.method) || route.Verify.isHandshake(q):
		return route, q.vars, nil
	case route.passesBy(q):
		return nil, nil, nil
	}
	return nil, nil, newRejection(codeMethodNotAllowed,
		"this route takes other methods, and others pass it by only as GET, HEAD or OPTIONS without a body; "+
			"add the method to the route's match.methods if the sender uses it").withRoute(route)
}

// otherSpelling returns the route that another server could take the path for, nil without one. A
// normalized path counts in any case. A spelling that only some servers accept counts if the
// delivery would bypass a signature: that of another route, or for want of a route altogether.
func (t *Table) otherSpelling(q *question, route *Route) *Route {
	q.normal = naming.NormalPath(q.path, q.normal)
	if !bytes.Equal(q.normal, q.path) {
		if other, _ := t.matchRoute(q.host, q.normal, nil); other != nil && other != route {
			return other
		}
	}
	if route != nil && route.checksSignature() {
		return nil
	}
	read := false
	for _, r := range t.Routes {
		if r == route || r.Observe || route != nil && !r.checksSignature() || !r.takesHost(q.host) ||
			!r.takesMethod(q.method) && r.passesBy(q) {
			continue
		}
		if !read {
			q.folded.parsePath(q.path)
			read = true
		}
		if r.Pattern.couldBe(&q.folded) {
			return r
		}
	}
	return nil
}

func (t *Table) matchRoute(host, path []byte, vars []naming.PathVar) (*Route, []naming.PathVar) {
	for _, r := range t.Routes {
		if !r.takesHost(host) {
			continue
		}
		if found, ok := r.Pattern.Match(path, vars[:0]); ok {
			return r, found
		}
	}
	return nil, vars[:0]
}

// checksSignature reports whether r refuses deliveries with a bad signature.
func (r *Route) checksSignature() bool { return r.Policy.Verified && !r.Observe }

// passesBy reports whether a delivery with a method that r does not take bypasses it. If signatures
// are checked, only requests that senders' handshakes need may: GET, HEAD and OPTIONS, without a
// body that the service could take for an event. Not HEAD if GET is a delivery (Twilio), because
// services run for it what they run for GET.
func (r *Route) passesBy(q *question) bool {
	if !r.checksSignature() {
		return true
	}
	switch string(q.method) {
	case "GET", "OPTIONS":
		return q.bare
	case "HEAD":
		return q.bare && !r.takesMethod([]byte("GET"))
	}
	return false
}
