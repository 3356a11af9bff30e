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

// endpoint is one endpoint of the API. The router reads the table of them, and openapi.json is
// generated from it.
type endpoint struct {
	id     string // of the operation, in openapi.json
	method string
	path   string
	access access
	// change names it in the audit log; "" if it changes nothing.
	change string
	do     func(*call) error
	operation
}

// operation describes an endpoint to its callers. What follows from its method and access, as most
// refusals do, is not in it.
type operation struct {
	about       string // the first sentence is the summary
	whole       string // what it is about is over all workflows, so a token that is limited to some is refused
	tag         string
	query, body inputs // what it takes, and nothing else
	// takes is a struct of package client whose fields say what the inputs without about mean.
	takes   any
	example string // of a body
	answers answers
}

// inputs are parameters of a query, or members of a body.
type inputs []input

type input struct {
	name, about string
	kind        any // nil: a text; a bool, a type of package client, or one of the kinds below
}

// Kinds of inputs, beside lists of words. 0 is no bound, and no default.
type (
	number   struct{ least, most, otherwise int }
	length   struct{ least, most int }
	words    []string
	duration string // an example
	list     struct {
		of   any
		most int
	}
	must  struct{ of any } // it has to be given
	ref   string           // a schema by its name
	media string           // of what is not JSON
)

func (m inputs) names() []string {
	var names []string
	for _, one := range m {
		names = append(names, one.name)
	}
	return names
}

// answer is one that an endpoint gives: a value that is written as JSON, another media type, or a
// problem with one of codes.
type answer struct {
	status int
	of     any
	about  string
	codes  []string
	schema string // "" = that of the type
	header string
}

type answers []answer

func yes(status int, of any, about string) answer {
	return answer{status: status, of: of, about: about}
}

// pageOf is the answer of a list, whose order is sorted.
func pageOf(of any, sorted string) answer {
	about := "A page"
	if sorted != "" {
		about += ", " + sorted
	}
	return yes(http.StatusOK, of, about+". It may be short, or empty, and not be the last one: only an empty "+
		"nextCursor says that.")
}

func no(about string, codes ...string) answer {
	return answer{status: refuse(codes[0], "").Status, of: problem{}, about: about, codes: codes}
}

func (a answer) as(schema string) answer   { a.schema = schema; return a }
func (a answer) with(header string) answer { a.header = header; return a }

// find finds the endpoint for a method and a percent-encoded path, and the name in the path, such
// as a workflow. A workflow may hold any character, so an encoded slash is a part of the name.
func find(table []endpoint, method, escapedPath string) (*endpoint, string, *problem) {
	segments, ok := unescape(escapedPath)
	if !ok {
		return nil, "", refuse("not_found", "the path is not well encoded")
	}
	var allowed []string
	for i := range table {
		e := &table[i]
		name, ok := e.match(segments)
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

// unescape takes a path apart, and then decodes its segments.
func unescape(path string) ([]string, bool) {
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

// match compares with the endpoint's path, segment by segment.
func (e *endpoint) match(segments []string) (name string, ok bool) {
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

// parameters returns the query of a request. Each parameter must be one of the endpoint's, given
// once.
func (e *endpoint) parameters(r *http.Request) (url.Values, *problem) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refuse("bad_request", "the query is not well encoded")
	}
	for name, given := range values {
		switch {
		case len(e.query) == 0:
			return nil, refuse("bad_request", "unknown query parameter "+quote(name)+": there are none here")
		case !slices.Contains(e.query.names(), name):
			return nil, refuse("bad_request", "unknown query parameter "+quote(name)+": there are "+
				strings.Join(e.query.names(), ", "))
		case len(given) > 1:
			return nil, refuse("bad_request", "query parameter "+quote(name)+" is given twice")
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
