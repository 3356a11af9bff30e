package config

import (
	"net"
	"net/url"
	"slices"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
)

// leastEvery is the shortest notify.every: receivers limit how many messages they take.
const leastEvery = time.Minute

func (v *validator) checkNotify() {
	n := &v.config.Notify
	v.require(n.Every == 0 || n.Every >= leastEvery, "notify.every",
		"%s is out of bounds; choose at least %s, or 0s to be told once",
		idem.DurationText(n.Every), idem.DurationText(leastEvery))
	var names []string
	for i := range v.config.Routes {
		names = append(names, v.config.Routes[i].Name)
	}
	for i, name := range n.Routes {
		if slices.Contains(names, name) {
			continue
		}
		hint := ""
		if near := naming.Nearest(name, names); near != "" {
			hint = "; did you mean " + near + "?"
		}
		v.refuse(indexedPath("notify.routes", i), "%q is no route of this file%s", name, hint)
	}
	if n.URLFile == "" && n.URLEnv == "" {
		if n.Every != Default().Notify.Every || len(n.Routes) > 0 {
			v.warn("notify", "has no effect: it has no url_file")
		}
		return
	}
	if n.URL.IsZero() {
		return // that was reported when it was read
	}
	at := "notify.url_file"
	if n.URLEnv != "" {
		at = "notify.url_env"
	}
	target, err := url.Parse(n.URL.Reveal())
	switch {
	case err != nil || target.Host == "" || target.Scheme != "https" && target.Scheme != "http": // it is not shown
		v.refuse(at, "the text in it is no URL; write e.g. that of an incoming webhook of Slack, which begins with "+
			"https://, on one line")
	case target.Scheme == "http" && !isLoopback(net.JoinHostPort(target.Hostname(), "80")):
		v.warn(at, "the URL in it begins with http://, so that others can read it on its way, and post to it: use "+
			"https://")
	}
}
