package admin

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
)

// Options are what the endpoints show.
type Options struct {
	// Ready says why deliveries should not come here now, or nil.
	Ready func() error
	// Metrics serves /metrics.
	Metrics http.Handler
}

// Health serves /livez, /readyz and /metrics, without a token.
//
// /livez says that the process answers; it looks at neither etcd nor the upstream, because a restart heals neither. /readyz is 503
// while no session is live: a short etcd outage does not flip it, since a session outlives it.
func Health(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		err := o.Ready()
		switch {
		case err == nil:
			say(w, http.StatusOK, "ok")
		case r.URL.Query().Has("verbose"):
			say(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
		default:
			say(w, http.StatusServiceUnavailable, "not ready")
		}
	})
	mux.Handle("GET /metrics", o.Metrics)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		problem(w, http.StatusNotFound, "not_found", "there is /livez, /readyz and /metrics here")
	})
	return mux
}

// Local lets only those requests through whose Host is an IP address or localhost: a page in somebody's browser that was made to
// resolve its own name to this machine gets nothing (DNS rebinding).
func Local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !localHost(r.Host) {
			problem(w, http.StatusMisdirectedRequest, "host_refused", "ask for this listener by its IP address or as localhost")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func localHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.EqualFold(host, "localhost") || net.ParseIP(strings.Trim(host, "[]")) != nil
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // whoever asked may have gone
}

// problem is RFC 9457.
func problem(w http.ResponseWriter, status int, code, detail string) {
	body, err := json.Marshal(map[string]any{
		"type": "urn:hooklock:problem:" + code, "title": http.StatusText(status), "status": status, "detail": detail, "code": code,
	})
	if err != nil {
		panic(err) // strings and numbers alone
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
