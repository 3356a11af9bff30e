package admin

import (
	"net/http"
	"net/url"
	"slices"
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
	path   string // as openapi.json has it
	access access
	// change names it in the audit log; "" if it changes nothing.
	change string
	query  []string // the parameters that it takes
	do     func(*call) error
}

// endpoints returns all endpoints below /v1.
func endpoints() []endpoint {
	return []endpoint{
		{"GET", "/v1/locks", forRead, "", []string{"prefix", "limit", "cursor"}, (*call).listLocks},
		{"GET", "/v1/locks/{workflow}", forRead, "", []string{"execution"}, (*call).getLock},
		{"DELETE", "/v1/locks/{workflow}", forWrite, "lock.force_release", []string{"execution", "reason"}, (*call).forceRelease},
		{"POST", "/v1/locks/{workflow}/acquire", forWrite, "lock.acquire", nil, (*call).acquire},
		{"POST", "/v1/locks/{workflow}/renew", forWrite, "lock.renew", nil, (*call).renew},
		{"POST", "/v1/locks/{workflow}/release", forWrite, "lock.release", nil, (*call).release},
		{"GET", "/v1/slots", forRead, "", []string{"prefix", "waiting", "limit", "cursor"}, (*call).listSlots},
		{"GET", "/v1/executions", forRead, "", executionFilters(), (*call).listExecutions},
		{"POST", "/v1/executions/run", forWrite, "executions.run", nil, many(runNow())},
		{"POST", "/v1/executions/skip", forWrite, "executions.skip", nil, many(skip())},
		{"POST", "/v1/executions/rerun", forWrite, "executions.rerun", nil, many(rerun())},
		{"GET", "/v1/executions/{id}", forRead, "", []string{"wait"}, (*call).getExecution},
		{"GET", "/v1/executions/{id}/answer", forBodies, "", nil, (*call).keptAnswer},
		{"DELETE", "/v1/executions/{id}", forWrite, "execution.forget", []string{"reason", "erase"}, (*call).forget},
		{"POST", "/v1/executions/{id}/cancel", forWrite, "execution.cancel", nil, (*call).cancel},
		{"POST", "/v1/executions/{id}/run", forWrite, runNow().change, nil, one(runNow())},
		{"POST", "/v1/executions/{id}/skip", forWrite, skip().change, nil, one(skip())},
		{"POST", "/v1/executions/{id}/rerun", forWrite, rerun().change, nil, one(rerun())},
		{"GET", "/v1/executions/{id}/request", forBodies, "execution.request", []string{"reason"}, (*call).request},
		{"POST", "/v1/executions/{id}/guard", forCallback, "execution.guard", nil, (*call).guard},
		{"POST", "/v1/executions/{id}/heartbeat", forCallback, "execution.heartbeat", nil, (*call).heartbeat},
		{"POST", "/v1/executions/{id}/complete", forCallback, "execution.complete", nil, (*call).complete},
		{"GET", "/v1/jobs", forRead, "", nil, (*call).listJobs},
		{"POST", "/v1/jobs", forWrite, "job.start", nil, (*call).startJob},
		{"GET", "/v1/jobs/{job}", forRead, "", nil, (*call).getJob},
		{"POST", "/v1/jobs/{job}/stop", forWrite, "job.stop", nil, (*call).stopJob},
		{"POST", "/v1/jobs/{job}/resume", forWrite, "job.resume", nil, (*call).resumeJob},
		{"GET", "/v1/pauses", forRead, "", nil, (*call).listPauses},
		{"POST", "/v1/pauses", forWrite, "pause", nil, (*call).pause},
		{"GET", "/v1/pauses/{scope}", forRead, "", nil, (*call).getPause},
		{"DELETE", "/v1/pauses/{scope}", forWrite, "resume", []string{"reason"}, (*call).resume},
		{"GET", "/v1/attention", forRead, "", nil, (*call).attention},
		{"GET", "/v1/replicas", forRead, "", nil, (*call).replicas},
		{"GET", "/v1/seen", forRead, "", nil, (*call).listSeen},
		{"POST", "/v1/seen", forWrite, "seen", nil, (*call).markSeen},
		{"DELETE", "/v1/seen/{concern}", forWrite, "unseen", []string{"reason"}, (*call).unmarkSeen},
		{"GET", "/v1/audit", forRead, "", auditFilters(), (*call).listAudits},
		{"GET", "/v1/signatures", forRead, "", signatureFilters(), (*call).listBadSignatures},
		{"GET", "/v1/report", forRead, "", []string{"since"}, (*call).report},
		{"GET", "/v1/suggestions", forRead, "", []string{"since", "route"}, (*call).suggestions},
		{"GET", "/v1/status", forRead, "", nil, (*call).replicaStatus},
		{"GET", "/v1/routes", forRead, "", nil, (*call).routes},
		{"GET", "/v1/routes/counts", forRead, "", []string{"since", "until", "step", "latency"}, (*call).counts},
		{"GET", "/v1/config", forRead, "", []string{"origin"}, (*call).config},
		{"POST", "/v1/config/reload", forWrite, ReloadConfig, nil, (*call).reload},
		{"POST", "/v1/notify/test", forWrite, "notify.test", nil, (*call).testNotify},
		{"GET", "/v1/embedded/backup", forWrite, "embedded.backup", nil, (*call).backup},
	}
}

// find finds the endpoint for a method and a path that is still percent-encoded, and the name in the path: a workflow or an execution
// ID. A workflow may hold any character, so an encoded slash is a part of the name, and nothing is cleaned.
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

// parameters returns the query of a request, after checking that the endpoint takes each parameter and that each is given once.
func (e *endpoint) parameters(r *http.Request) (url.Values, *problem) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refuse("bad_request", "the query is not well encoded")
	}
	for name, given := range values {
		switch {
		case !slices.Contains(e.query, name) && len(e.query) == 0:
			return nil, refuse("bad_request", "unknown query parameter "+quote(name)+": there are none here")
		case !slices.Contains(e.query, name):
			return nil, refuse("bad_request", "unknown query parameter "+quote(name)+": there are "+strings.Join(e.query, ", "))
		case len(given) > 1:
			return nil, refuse("bad_request", "query parameter "+quote(name)+" is given twice")
		}
	}
	return values, nil
}
