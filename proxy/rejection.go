package proxy

import "hooklock/idem/naming"

// The codes of the decision "rejected", and of unmatched paths. Those of a delivery that cannot be
// named are naming's.
const (
	codeBadRequest       = "bad_request"
	codeAmbiguousPath    = "ambiguous_path"
	codeUpgradeRefused   = "upgrade_refused"
	codeRouteNotFound    = "route_not_found"
	codeMethodNotAllowed = "method_not_allowed"
	codeRequestTimeout   = "request_timeout"
	codeBodyTooLarge     = "body_too_large"
	codeHeaderTooLarge   = "header_too_large"
	codeMemoryExhausted  = "memory_exhausted"
	codeTooManyConns     = "too_many_connections"
)

// rejections is the table of codes: each with its status, and the beginning of its detail.
var rejections = [...]struct {
	code   string
	status int
	title  string
}{
	{codeBadRequest, 400, "Bad request"},
	{codeAmbiguousPath, 400, "The path is not spelled as the route is"},
	{naming.CodeWorkflowMissing, 400, unnamed},
	{naming.CodeEventIDMissing, 400, unnamed},
	{naming.CodeLimitMissing, 400, unnamed},
	{naming.CodeEventIDAmbiguous, 400, unnamed},
	{naming.CodeKeyTooLong, 400, unnamed},
	{codeUpgradeRefused, 400, "Upgrade is not possible on a route"},
	{codeRouteNotFound, 404, "No route"},
	{codeMethodNotAllowed, 405, "Method not allowed on this route"},
	{codeRequestTimeout, 408, "The request came too slowly"},
	{codeBodyTooLarge, 413, "The body is too large"},
	{codeHeaderTooLarge, 431, "The request head is too large"},
	{codeMemoryExhausted, 503, "No memory is left for bodies"},
	{codeTooManyConns, 503, "Too many connections"},
}

const unnamed = "The delivery cannot be named"

// Rejection is a delivery that was refused for its form. It does not reach the service, takes no
// lock and uses up no key.
type Rejection struct {
	Status int
	Code   string
	Title  string
	Detail string
	// Sent means that the service had begun to get the request, whose body broke on its way
	// through.
	Sent bool
	// About is the route that the delivery was meant for and may not take. nil if the reason is
	// another one.
	About *Route
}

func (r *Rejection) withRoute(route *Route) *Rejection {
	r.About = route
	return r
}

// Error makes a Rejection an error.
func (r *Rejection) Error() string { return r.Code + ": " + r.Detail }

// newRejection returns the Rejection of a code.
func newRejection(code, detail string) *Rejection {
	for _, row := range rejections {
		if row.code == code {
			return &Rejection{Status: row.status, Code: code, Title: row.title, Detail: detail}
		}
	}
	panic("the code " + code + " is not in the table")
}

func bodyTooLarge() *Rejection {
	return newRejection(codeBodyTooLarge, "the body is larger than limits.request_body")
}

func upgradeRefused() *Rejection {
	return newRejection(codeUpgradeRefused, "a delivery on a route is one request with one answer, and cannot become "+
		"another protocol")
}
