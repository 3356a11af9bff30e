package proxy

import (
	"bytes"
	"time"

	"hooklock/idem"
)

// Route says which deliveries it takes, and the rules for them. It is made once at load and never changed.
type Route struct {
	Name    string
	Pattern *Pattern
	Methods []string
	Hosts   []string // lower case, without port; empty means every host
	Seal    Seal
	Keys    *idem.Keys
	Policy  idem.Policy
	// Forward: where the store cannot decide, the delivery is forwarded as bypassed. Otherwise it is refused with 503.
	Forward bool
	// Observe: decide, count, log, and never refuse.
	Observe bool
	// Respond replaces the status of a refusing decision.
	Respond map[idem.Decision]int
	// RetryAfterUnit is what a number in Retry-After means to the sender; 0 means a second.
	RetryAfterUnit time.Duration
}

// Mode is observe or enforce.
func (r *Route) Mode() string {
	if r.Observe {
		return "observe"
	}
	return "enforce"
}

func (r *Route) takesMethod(method []byte) bool {
	for _, m := range r.Methods {
		if string(method) == m {
			return true
		}
	}
	return false
}

func (r *Route) takesHost(host []byte) bool {
	if len(r.Hosts) == 0 {
		return true
	}
	name := host
	if i := bytes.LastIndexByte(host, ':'); i > bytes.LastIndexByte(host, ']') {
		name = host[:i]
	}
	for _, h := range r.Hosts {
		if len(h) == len(name) && bytes.EqualFold(name, []byte(h)) {
			return true
		}
	}
	return false
}

// Table is the routes in file order. The first match wins.
type Table struct {
	Routes []*Route
	// RejectUnmatched answers 404 to what no route takes. Otherwise it passes through untouched.
	RejectUnmatched bool
}

// find returns the route for a delivery; nil means that no route takes it and that it passes through. Which deliveries a route
// covers must not depend on spelling: a path that only becomes a route's path when it is normalised is refused, because the upstream
// may well normalise it.
func (t *Table) find(method, host, path []byte, vars []idem.PathVar, scratch []byte) (*Route, []idem.PathVar, *Rejection) {
	route, vars := t.match(host, path, vars)
	normal := idem.NormalPath(path, scratch[:0])
	if !bytes.Equal(normal, path) {
		if other, _ := t.match(host, normal, nil); other != nil && other != route {
			return nil, nil, reject("ambiguous_path", "this path is another spelling of the route "+other.Pattern.String()+"; send it spelled like that").about(other)
		}
	}
	switch {
	case route == nil && t.RejectUnmatched:
		return nil, nil, reject("route_not_found", "no route takes this path, and unmatched deliveries are not passed on here")
	case route == nil || route.takesMethod(method):
		return route, vars, nil
	case !route.Policy.Verified || route.passesBy(method):
		return nil, nil, nil
	}
	return nil, nil, reject("method_not_allowed", "this route takes other methods; add the method to the route's match.methods if the sender uses it").about(route)
}

func (t *Table) match(host, path []byte, vars []idem.PathVar) (*Route, []idem.PathVar) {
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

// passesBy reports whether a method that r does not take passes it by without a signature: those do with which senders and people
// look at an endpoint. Not HEAD where GET is a delivery (Twilio), because services run for it what they run for GET.
func (r *Route) passesBy(method []byte) bool {
	switch string(method) {
	case "GET", "OPTIONS":
		return true
	case "HEAD":
		return !r.takesMethod([]byte("GET"))
	}
	return false
}
