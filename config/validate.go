package config

import (
	"fmt"
	"strings"
	"time"

	"hooklock/idem"
)

// Bounds beyond which a value is most likely a mistake.
const (
	maxRetention   = 10 * 365 * 24 * time.Hour
	maxBody        = GiB
	minHeader      = 4 * KiB
	maxHeader      = MiB
	maxReplayBody  = 512 * KiB // an etcd request is at most 1.5 MiB, and several records travel in one
	minQuota       = 16 * MiB
	maxQuota       = 8 * GiB // etcd's own advice
	minSessionTTL  = 2 * time.Second
	maxSessionTTL  = 10 * time.Minute
	maxRouteName   = 64
	maxConnections = 1_000_000
	maxAttempts    = 1000
	maxBuffer      = 64 * MiB
	minProgress    = 1 * KiB
	maxMemory      = 1024 * GiB
	// etcd gives a lease whole seconds, and a shorter hold ends before it can be renewed
	minHold = 2 * time.Second
)

// validator checks the form and the consistency of a configuration.
type validator struct {
	config       *Config
	senders      Senders
	checkRoute   func(c *Config, r *Route) (problems, warnings Problems)
	checkKeys    func(text string) error
	places       map[string]Origin // where values came from
	inKubernetes bool
	problems     Problems
	warnings     Problems
	notes        Problems
}

func (v *validator) run() {
	c := v.config
	v.require(c.ConfigVersion == 1, "config_version", "%d is not known; this release reads version 1", c.ConfigVersion)
	v.checkListeners()
	v.checkUpstream()
	v.checkUnmatched()
	v.checkLimits()
	v.requirePositive("shutdown_timeout", c.ShutdownTimeout)
	v.checkEtcd()
	v.parkStore()
	v.require(c.Log.Sample >= 0, "log.sample",
		"%d is negative; 1 logs each delivery, 100 one in a hundred, 0 none that went well", c.Log.Sample)
	v.checkRoutes()
	v.checkNotify()
	v.warnShutdown()
}

func (v *validator) refuse(path, format string, args ...any) {
	v.problems = append(v.problems, Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

func (v *validator) warn(path, format string, args ...any) {
	v.warnings = append(v.warnings, Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

func (v *validator) require(ok bool, path, format string, args ...any) {
	if !ok {
		v.refuse(path, format, args...)
	}
}

// check reports err at path, if there is one.
func (v *validator) check(path string, err error) {
	if err != nil {
		v.refuse(path, "%s", err)
	}
}

func (v *validator) requirePositive(path string, d time.Duration) {
	v.require(d > 0, path, "must be longer than 0s")
}

func (v *validator) requireSize(path string, size, least, most Size) {
	v.require(size >= least && size <= most, path, "%s is out of bounds; choose from %s to %s", size, least, most)
}

func (v *validator) requireNumber(path string, n, most int) {
	v.require(n >= 1 && n <= most, path, "%d is out of bounds; choose from 1 to %d", n, most)
}

func (v *validator) requireDuration(path string, d, least, most time.Duration) {
	v.require(d >= least && d <= most, path, "%s is out of bounds; choose from %s to %s", idem.DurationText(d),
		idem.DurationText(least), idem.DurationText(most))
}

func (v *validator) checkListeners() {
	c := v.config
	v.check("listen.address", checkDoor(c.Listen.Address))
	v.checkPair("listen.tls", c.Listen.TLS.CertFile, c.Listen.TLS.KeyFile)
	v.checkAdmin()
	if c.Health.Listen != "" {
		v.check("health.listen", checkAddress(c.Health.Listen))
	}
	v.require(!sameAddress(c.Listen.Address, c.Admin.Listen), "admin.listen", "is the same port as listen.address")
	v.require(!sameAddress(c.Listen.Address, c.Health.Listen), "health.listen", "is the same port as listen.address")
	v.require(!sameAddress(c.Admin.Listen, c.Health.Listen), "health.listen", "is the same port as admin.listen")
	if v.inKubernetes && isLoopback(c.Listen.Address) {
		v.warn("listen.address", "%s is loopback: only containers of this pod reach it, no Service and no ingress",
			c.Listen.Address)
	}
}

// checkPair reports a certificate without its key, or the other way round.
func (v *validator) checkPair(path, cert, key string) {
	v.require(cert == "" || key != "", joinPath(path, "cert_file"), "needs key_file beside it")
	v.require(key == "" || cert != "", joinPath(path, "key_file"), "needs cert_file beside it")
}

func (v *validator) checkUpstream() {
	u := v.config.Upstream
	v.check("upstream.url", checkUpstreamURL(u.URL))
	v.requirePositive("upstream.timeout", u.Timeout)
	v.requirePositive("upstream.connect_timeout", u.ConnectTimeout)
	v.checkPair("upstream.tls", u.TLS.CertFile, u.TLS.KeyFile)
	if u.TLS != (ClientTLS{}) && !strings.HasPrefix(u.URL, "https://") {
		v.warn("upstream.tls", "has no effect: upstream.url is not https")
	}
	for _, own := range []struct{ path, address string }{
		{"listen.address", v.config.Listen.Address}, {"admin.listen", v.config.Admin.Listen},
		{"health.listen", v.config.Health.Listen},
	} {
		if callsItself(own.address, u.URL) {
			v.refuse("upstream.url", "is %s: Hooklock would call itself", own.path)
		}
	}
}

func (v *validator) checkLimits() {
	l := v.config.Limits
	v.checkParkedLimits()
	v.checkKeptLimits()
	v.checkSharedLimits()
	v.requireSize("limits.request_body", l.RequestBody, 1, maxBody)
	v.requireSize("limits.response_body", l.ResponseBody, 1, maxBody)
	v.requireSize("limits.request_header", l.RequestHeader, minHeader, maxHeader)
	v.requireSize("limits.request_buffer", l.RequestBuffer, 1, maxBuffer)
	if l.Suggestions > 0 {
		v.requireSize("limits.suggestions", l.Suggestions, 64*KiB, maxBuffer)
	}
	v.requireSize("limits.progress", l.Progress, minProgress, MiB)
	if l.Memory > 0 {
		v.requireSize("limits.memory", l.Memory, l.LeastMemory(), maxMemory)
	}
	v.requirePositive("limits.write_timeout", l.WriteTimeout)
	v.requirePositive("limits.stream_timeout", l.StreamTimeout)
	v.requirePositive("limits.header_timeout", l.HeaderTimeout)
	v.requirePositive("limits.body_timeout", l.BodyTimeout)
	v.requirePositive("limits.idle_timeout", l.IdleTimeout)
	v.requireNumber("limits.max_connections", l.MaxConnections, maxConnections)
	v.requireNumber("limits.waiting", l.Waiting, maxConnections)
}

// warnShutdown compares the time that shutdown gives with the time that one delivery may take.
func (v *validator) warnShutdown() {
	c := v.config
	var wait time.Duration
	for i := range c.Routes {
		wait = max(wait, c.Routes[i].LongestWait())
	}
	needed := c.Upstream.Timeout + c.Etcd.RequestTimeout + wait
	if c.ShutdownTimeout >= needed {
		return
	}
	what := "upstream.timeout + etcd.request_timeout"
	if wait > 0 {
		what += " + the longest lock.wait_timeout"
	}
	v.warn("shutdown_timeout", "%s is shorter than %s (%s): a shutdown can cut off "+
		"deliveries, and their outcome is unknown",
		idem.DurationText(c.ShutdownTimeout), what, idem.DurationText(needed))
}
