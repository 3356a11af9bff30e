package admin

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/pprof"
	"net/url"
	profiles "runtime/pprof"
	"strconv"
	"strings"
	"time"
)

const (
	profilePath    = "/debug/pprof/"
	defaultProfile = 30 // seconds
	maxProfile     = 300
)

// serveProfile serves profiles for `go tool pprof`. Profiles show names of functions and sizes, and
// a heap dump may show anything: they need the scope write.
func (a *API) serveProfile(w http.ResponseWriter, r *http.Request, name string) {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet {
		notAllowed("GET").write(w)
		return
	}
	e := &endpoint{
		method: http.MethodGet, path: profilePath, access: forWrite,
		allowed: []string{"seconds", "debug", "gc"},
		do:      func(c *call) error { return c.writeProfile(name) },
	}
	c := &call{api: a, endpoint: e, w: w, r: r}
	c.run()
}

// writeProfile calls net/http/pprof, which also puts its handlers into http.DefaultServeMux, where
// no token is needed: nothing in Hooklock serves that mux. Its command line and its index, which
// names that, are not offered.
func (c *call) writeProfile(name string) error {
	switch name {
	case "":
		return c.listProfiles()
	case "profile":
		return c.recordAlone(c.api.profiling, pprof.Profile)
	case "trace":
		return c.recordAlone(c.api.tracing, pprof.Trace)
	}
	if profiles.Lookup(name) == nil {
		return refuse("not_found", "no such profile: "+profilePath+" lists them")
	}
	debug := cmp.Or(c.query("debug"), "0")
	if _, err := strconv.Atoi(debug); err != nil {
		return refuse("bad_request", "debug="+quoteText(debug)+": give 0 (for go tool pprof), 1 or 2 (to read)")
	}
	return c.handOver(c.r.Context(), pprof.Handler(name), url.Values{"debug": {debug}, "gc": {c.query("gc")}})
}

func (c *call) listProfiles() error {
	var b strings.Builder
	for _, p := range profiles.Profiles() {
		fmt.Fprintf(&b, "%s%s\n", profilePath, p.Name())
	}
	fmt.Fprintf(&b, "%[1]sprofile?seconds=%[2]d\n%[1]strace?seconds=1\n", profilePath, defaultProfile)
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = c.w.Write([]byte(b.String())) // the client may have disconnected
	return nil
}

// recordAlone runs a handler that writes for a while. One of each kind runs at a time.
func (c *call) recordAlone(one places, with http.HandlerFunc) error {
	text := cmp.Or(c.query("seconds"), strconv.Itoa(defaultProfile))
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 1 || seconds > maxProfile {
		return refuse("bad_request", fmt.Sprintf("seconds=%s: give a number from 1 to %d", quoteText(text), maxProfile))
	}
	ctx, done, err := c.waitContext(time.Duration(seconds) * time.Second)
	if err != nil {
		return err
	}
	defer done()
	if !one.tryEnter() {
		return refuse("overloaded", "another one is being recorded; ask again when it is done")
	}
	defer one.leave()
	return c.handOver(ctx, with, url.Values{"seconds": {text}})
}

// handOver calls h with the arguments that were checked, and no other.
func (c *call) handOver(ctx context.Context, h http.Handler, arguments url.Values) error {
	r := c.r.WithContext(ctx)
	r.Form = arguments
	h.ServeHTTP(c.w, r)
	return nil
}
