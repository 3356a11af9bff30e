package admin

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"strings"
	"time"
)

const (
	profiles       = "/debug/pprof/"
	defaultProfile = 30 // seconds
	maxProfile     = 300
)

// profile serves what `go tool pprof` reads (https://pkg.go.dev/net/http/pprof has the same paths). Profiles show names of functions and
// sizes, and a heap dump's neighbours may be anything: they are for whoever may change things.
func (a *API) profile(w http.ResponseWriter, r *http.Request, name string) {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet {
		p := refuse("method_not_allowed", "this path takes GET")
		p.header.Set("Allow", http.MethodGet)
		p.write(w)
		return
	}
	e := &endpoint{
		method: http.MethodGet, path: profiles, access: forWrite, query: []string{"seconds", "debug", "gc"},
		do: func(c *call) error { return c.profile(name) },
	}
	c := &call{api: a, endpoint: e, w: w, r: r}
	c.run()
}

func (c *call) profile(name string) error {
	switch name {
	case "":
		return c.listProfiles()
	case "profile":
		return c.record("application/octet-stream", pprof.StartCPUProfile, pprof.StopCPUProfile)
	case "trace":
		return c.record("application/octet-stream", trace.Start, trace.Stop)
	}
	p := pprof.Lookup(name)
	if p == nil {
		return refuse("not_found", "no such profile: "+profiles+" lists them")
	}
	debug, err := strconv.Atoi(orZero(c.query("debug")))
	if err != nil {
		return refuse("bad_request", "debug="+quote(c.query("debug"))+": give 0 (for go tool pprof), 1 or 2 (to read)")
	}
	if name == "heap" && orZero(c.query("gc")) != "0" {
		runtime.GC()
	}
	c.w.Header().Set("Content-Type", "application/octet-stream")
	if debug > 0 {
		c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	_ = p.WriteTo(c.w, debug) // whoever asked may have gone
	return nil
}

func orZero(text string) string {
	if text == "" {
		return "0"
	}
	return text
}

func (c *call) listProfiles() error {
	var b strings.Builder
	for _, p := range pprof.Profiles() {
		fmt.Fprintf(&b, "%s%s\n", profiles, p.Name())
	}
	fmt.Fprintf(&b, "%[1]sprofile?seconds=%[2]d\n%[1]strace?seconds=1\n", profiles, defaultProfile)
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = c.w.Write([]byte(b.String())) // whoever asked may have gone
	return nil
}

// record lets something run for a while that writes as it goes. One of each kind runs at a time.
func (c *call) record(contentType string, start func(io.Writer) error, stop func()) error {
	text := c.query("seconds")
	if text == "" {
		text = strconv.Itoa(defaultProfile)
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 1 || seconds > maxProfile {
		return refuse("bad_request", fmt.Sprintf("seconds=%s: give a number from 1 to %d", quote(text), maxProfile))
	}
	ctx, done, err := c.waiting(time.Duration(seconds) * time.Second)
	if err != nil {
		return err
	}
	defer done()
	c.w.Header().Set("Content-Type", contentType)
	if err := start(c.w); err != nil {
		return refuse("overloaded", "another one is being recorded; ask again when it is done")
	}
	<-ctx.Done()
	stop()
	return nil
}
