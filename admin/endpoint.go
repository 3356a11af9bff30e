package admin

import (
	_ "embed" // openapi.json
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// access is what a caller needs for an endpoint.
type access int

const (
	forRead     access = iota // a token with scope read, or none where no tokens are configured
	forWrite                  // a token with scope write
	forBodies                 // a token with scope bodies
	forCallback               // the callback key of the execution
)

// ReloadConfig is the change that reloads the configuration, in audits.
const ReloadConfig = "config.reload"

// endpoint is one endpoint of the API.
type endpoint struct {
	method string
	path   string
	access access
	// change names it in the audit log; "" if it changes nothing.
	change  string
	do      func(*call) error
	whole   string   // what it is about is over all workflows, so a token that is limited to some is refused
	allowed []string // the parameters of its query
}

// findEndpoint finds the endpoint for a method and a percent-encoded path, and the name in the
// path, such as a workflow. A workflow may hold any character, so an encoded slash is a part of the
// name.
func findEndpoint(table []endpoint, method, escapedPath string) (*endpoint, string, *problem) {
	segments, ok := splitPath(escapedPath)
	if !ok {
		return nil, "", refuse("not_found", "the path is not well encoded")
	}
	var allowed []string
	for i := range table {
		e := &table[i]
		name, ok := e.matchPath(segments)
		if !ok {
			continue
		}
		if e.method == method {
			return e, name, nil
		}
		allowed = append(allowed, e.method)
	}
	if allowed == nil {
		p := refuse("not_found", "no such path: /openapi.json lists what is here")
		if len(segments) > 3 && segments[1] == "locks" {
			p.Detail += "; a slash in a workflow's name is written %2F"
		}
		return nil, "", p
	}
	slices.Sort(allowed)
	return nil, "", notAllowed(allowed...)
}

// splitPath takes a path apart, and then decodes its segments.
func splitPath(path string) ([]string, bool) {
	path, absolute := strings.CutPrefix(path, "/")
	segments := strings.Split(path, "/")
	for i, s := range segments {
		plain, err := url.PathUnescape(s)
		if err != nil {
			return nil, false
		}
		segments[i] = plain
	}
	return segments, absolute
}

// matchPath compares with the endpoint's path, segment by segment.
func (e *endpoint) matchPath(segments []string) (name string, ok bool) {
	want := strings.Split(e.path[1:], "/")
	if len(want) != len(segments) {
		return "", false
	}
	for i, w := range want {
		switch {
		case w[0] == '{' && segments[i] != "":
			name = segments[i]
		case w != segments[i]:
			return "", false
		}
	}
	return name, true
}

// readQuery returns the query of a request. Each parameter must be one of the endpoint's, given
// once.
func (e *endpoint) readQuery(r *http.Request) (url.Values, *problem) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refuse("bad_request", "the query is not well encoded")
	}
	for name, given := range values {
		switch {
		case len(e.allowed) == 0:
			return nil, refuse("bad_request", "unknown query parameter "+quoteText(name)+": there are none here")
		case !slices.Contains(e.allowed, name):
			return nil, refuse("bad_request", "unknown query parameter "+quoteText(name)+": there are "+
				strings.Join(e.allowed, ", "))
		case len(given) > 1:
			return nil, refuse("bad_request", "query parameter "+quoteText(name)+" is given twice")
		}
	}
	return values, nil
}

//go:generate go test -run TestOpenAPIIsGeneratedFromTheEndpointsAndTypes -update .

//go:embed openapi.json
var openAPI []byte

// serveOpenAPI serves the description of the API (https://spec.openapis.org/oas/v3.1.1.html).
func serveOpenAPI(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		notAllowed("GET", "HEAD").write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(openAPI)))
	_, _ = w.Write(openAPI) // the client may have disconnected
}
