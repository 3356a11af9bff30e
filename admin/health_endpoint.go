package admin

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Health serves /livez, /readyz and /metrics, without a token.
//
// /livez says that the process answers; it looks at neither etcd nor the upstream, because a
// restart heals neither. /readyz is 503 while no session is live: a short etcd outage does not flip
// it, since a session outlives it.
func Health(o Options) http.Handler {
	paths := map[string]http.HandlerFunc{
		"/livez":   func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok") },
		"/readyz":  func(w http.ResponseWriter, r *http.Request) { serveReadiness(w, r, o) },
		"/metrics": serveMetrics(o.Metrics),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve, found := paths[r.URL.EscapedPath()]
		switch {
		case !found:
			refuse("not_found", "there is /livez, /readyz and /metrics here").write(w)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			notAllowed("GET", "HEAD").write(w)
		default:
			serve(w, r)
		}
	})
}

// maxScrapes bounds the requests for metrics at one time: an answer that is not read would hold its
// connection.
const maxScrapes = 16

func serveMetrics(metrics http.Handler) http.HandlerFunc {
	scrapes := make(places, maxScrapes)
	return func(w http.ResponseWriter, r *http.Request) {
		if !scrapes.tryEnter() {
			refuse("overloaded", "too many ask for the metrics at one time").write(w)
			return
		}
		defer scrapes.leave()
		metrics.ServeHTTP(w, r)
	}
}

func serveReadiness(w http.ResponseWriter, r *http.Request, o Options) {
	status, text, more := http.StatusOK, "ok", ""
	if why := o.Ready(); why != nil {
		status, text, more = http.StatusServiceUnavailable, "not ready", ": "+why.Error()
	}
	if r.URL.Query().Has("verbose") {
		text += more
		if o.Stale != nil {
			if stale := o.Stale(); stale != "" {
				text += "\nconfig: " + stale
			}
		}
		if o.Space != nil {
			if space := o.Space(r.Context()); space != "" {
				text += "\n" + space
			}
		}
	}
	writeText(w, status, text)
}

// hostAllowed reports whether a Host header is an IP address, localhost or one of names: a page in
// a user's browser that was made to resolve its own name to this machine gets nothing (DNS
// rebinding). A browser always says a host; a probe of HTTP/1.0 says none.
func hostAllowed(host string, names []string) bool {
	if host == "" {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || net.ParseIP(strings.Trim(host, "[]")) != nil ||
		slices.ContainsFunc(names, func(n string) bool {
			return host != "" && strings.EqualFold(host, strings.TrimSuffix(n, "."))
		})
}

// crossSite reports whether a browser sends a request for a page that did not come from this
// listener: another page must not use the user's session, also if no token is needed. Other clients
// send neither header.
func crossSite(r *http.Request) bool {
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "same-origin" && site != "none" { // none: the address was typed in
			return true
		}
	}
	for _, origin := range r.Header.Values("Origin") {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return true
		}
	}
	return false
}

// isVisit reports whether the user follows a link to the page, from any site. Its first file holds
// no data, the other site cannot read it, nor put it into a frame; everything else is requested by
// the page itself.
func isVisit(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == "/" && r.URL.RawQuery == "" && r.Header.Get("Origin") == "" &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // the client may have disconnected
}
