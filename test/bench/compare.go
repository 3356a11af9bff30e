//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// Names of subjects, as they are printed.
const (
	subjectDirect   = "upstream alone"
	subjectHooklock = "hooklock"
	subjectBare     = "hooklock, measuring nothing"
	subjectAll      = "hooklock, with traces and OTLP"
	subjectNginx    = "nginx"
	subjectNetHTTP  = "net/http ReverseProxy"
	subjectFasthttp = "plain fasthttp proxy"
	subjectDefaults = "hooklock, at its defaults"
	subjectKeeps    = "hooklock, keeping requests"
	subjectExternal = "hooklock, one external member"
	subjectPuts     = "two puts on the same etcd"
)

// before is in front of the names of the subjects of the program of -before.
const before = "before: "

// subject is one thing that is measured, over all rounds.
type subject struct {
	name        string
	child       *child   // whose CPU is counted, and where the requests go
	beside      []*child // whose CPU is counted, too
	direct      bool     // the child is the upstream, and its CPU is not of interest
	kind        string
	prepare     func(run string) (end func() error, err error) // before a round, and after it; may be nil
	connections int                                            // 0 = as the run says
	path        string                                         // where the requests go; "" is defaultPath
	workflows   int                                            // 0 = as many as peers have
	rounds      []round
}

// round is what one round of one subject gave.
type round struct {
	rate     float64 // requests per second
	p50, p99 float64 // milliseconds
	cpu      float64 // microseconds per request, of all who are counted
	own      float64 // the same, of the child alone
	rss      float64 // MiB, right after the round
	fewest   float64 // requests of the connection that got the fewest
	most     float64 // and the most
}

// stage is the whole program: it makes room for what is started, and ends it.
func stage(ctx context.Context, o *options, out io.Writer) (err error) {
	f := &family{ctx: ctx}
	if f.self, err = os.Executable(); err != nil {
		return err
	}
	if f.dir, err = os.MkdirTemp("", "hooklock-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(f.dir)) }()
	defer f.stop()
	switch {
	case o.peers != "":
		return f.peers(o, out)
	case len(o.remembered) > 0:
		return f.remembering(o, out)
	}
	return f.compare(o, out)
}

// compare starts everything, measures in turn, and prints.
func (f *family) compare(o *options, out io.Writer) error {
	subjects, err := cast(f, o, out)
	if err != nil {
		return err
	}
	subjects = slices.DeleteFunc(subjects, func(s *subject) bool { return !o.only.MatchString(s.name + ", " + s.kind) })
	if len(subjects) == 0 {
		return errors.New("-only leaves nothing to measure")
	}
	fmt.Fprintf(out, "%d rounds of %s for each, in turn; 1 KiB POST over %d connections; median (min–max)\n\n",
		o.rounds, o.duration, o.connections)
	for n := -1; n < o.rounds; n++ { // round -1 warms up
		for i := range subjects {
			s := subjects[(i+max(n, 0))%len(subjects)] // nobody always comes after the same one
			r, err := f.measure(o, s, n)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", s.name, s.kind, err)
			}
			if n >= 0 {
				s.rounds = append(s.rounds, r)
			}
		}
	}
	if err := report(out, subjects); err != nil || o.hooklock == "" || o.outages == 0 {
		return err
	}
	return f.outages(o, out)
}

// cast starts whoever takes part.
func cast(f *family, o *options, out io.Writer) ([]*subject, error) {
	up, err := f.startSelf(roleUpstream, "-service", o.service)
	if err != nil {
		return nil, err
	}
	subjects := []*subject{{name: subjectDirect, child: up, direct: true, kind: kindPlain}}
	nginx, err := startNginx(f, o.nginx, up.addr, out)
	if err != nil {
		return nil, err
	}
	if nginx != nil {
		subjects = append(subjects, &subject{name: subjectNginx, child: nginx, kind: kindPlain})
	}
	for _, role := range []struct{ role, name string }{{roleReverseProxy, subjectNetHTTP},
		{roleFasthttp, subjectFasthttp}} {
		c, err := f.startSelf(role.role, "-target", up.addr)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, &subject{name: role.name, child: c, kind: kindPlain},
			&subject{name: role.name, child: c, kind: kindBodiless})
	}
	if nginx != nil {
		subjects = append(subjects, &subject{name: subjectNginx, child: nginx, kind: kindBodiless})
	}
	for _, program := range []struct{ program, prefix string }{{o.hooklock, ""}, {o.before, before}} {
		if program.program == "" {
			continue
		}
		hooklocks, err := castHooklock(f, o, program.program, program.prefix, up)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, hooklocks...)
	}
	return subjects, nil
}

// castHooklock starts the program with few lines of configuration and no log, with its defaults,
// measuring nothing, with everything that it can measure, with an etcd of its own process, and, if
// it is not the one of before, keeping requests.
func castHooklock(f *family, o *options, program, prefix string, up *child) ([]*subject, error) {
	run := hooklockRun{program: program, upstream: up.addr, name: prefix + "hooklock", log: quietLog}
	h, err := run.start(f)
	if err != nil {
		return nil, err
	}
	run.name, run.log = prefix+"defaults", ""
	defaults, err := run.start(f)
	if err != nil {
		return nil, err
	}
	run.name, run.log, run.env = prefix+"bare", quietLog, []string{"OTEL_SDK_DISABLED=true"}
	bare, err := run.start(f)
	if err != nil {
		return nil, err
	}
	run.name, run.env = prefix+"all", []string{ // nobody listens there
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_TRACES_SAMPLER=parentbased_traceidratio",
		"OTEL_TRACES_SAMPLER_ARG=0.0001", "OTEL_METRIC_EXPORT_INTERVAL=1000",
	}
	all, err := run.start(f)
	if err != nil {
		return nil, err
	}
	etcd, err := f.startSelf(roleEtcd, "-target", filepath.Join(f.dir, prefix+"etcd"), "-far", o.far.String())
	if err != nil {
		return nil, err
	}
	run.name, run.env, run.etcd = prefix+"external", nil, etcd.addr
	external, err := run.start(f)
	if err != nil {
		return nil, err
	}
	subjects := []*subject{
		{name: subjectHooklock, child: h, kind: kindPlain},
		{name: subjectHooklock, child: h, kind: kindBodiless},
		{name: subjectBare, child: bare, kind: kindPlain},
		{name: subjectAll, child: all, kind: kindPlain},
		{name: subjectHooklock, child: h, kind: kindReplayed, prepare: settled(h)},
		{name: subjectDefaults, child: defaults, kind: kindReplayed, prepare: settled(defaults)},
		{name: subjectBare, child: bare, kind: kindReplayed, prepare: settled(bare)},
		{name: subjectAll, child: all, kind: kindReplayed, prepare: settled(all)},
		{name: subjectHooklock, child: h, kind: kindLocked, prepare: held(h, up)},
		{name: subjectHooklock, child: h, kind: kindExecuted},
		{name: subjectDefaults, child: defaults, kind: kindExecuted},
		{name: subjectBare, child: bare, kind: kindExecuted},
		{name: subjectExternal, child: external, beside: []*child{etcd}, kind: kindExecuted},
		{name: subjectExternal, child: external, beside: []*child{etcd}, kind: kindAlone, connections: 1},
		{name: subjectPuts, child: etcd, kind: kindPuts, connections: 1},
		{name: subjectHooklock, child: h, kind: kindInTime},
		{name: subjectHooklock, child: h, kind: kindParked, prepare: accepted(f, h), connections: parkedConnections},
	}
	if prefix == "" {
		run.name, run.etcd, run.keeps = "keeps", "", true
		keeps, err := run.start(f)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, &subject{name: subjectKeeps, child: keeps, kind: kindExecuted})
	}
	for _, s := range subjects {
		s.name = prefix + s.name
	}
	return subjects, nil
}

// settled delivers the event whose duplicates follow.
func settled(h *child) func(run string) (func() error, error) {
	return func(run string) (func() error, error) {
		return func() error { return nil }, once(h.addr, delivery("/hooks/settled", settledEvent(run)))
	}
}

// held delivers an event that stays at the upstream until the round is over.
func held(h, up *child) func(run string) (func() error, error) {
	return func(run string) (func() error, error) {
		answered, arrived := make(chan error, 1), make(chan error, 1)
		go func() { answered <- once(h.addr, delivery(pathHeld, "evt_"+run+"_holder", headerHold+": 1")) }()
		go func() { arrived <- once(up.addr, delivery(pathAwaitHeld, "")) }()
		select {
		case err := <-arrived:
			return func() error {
				return errors.Join(once(up.addr, delivery(pathRelease, "")), <-answered)
			}, err
		case err := <-answered:
			return nil, fmt.Errorf("the holder was answered before it came to the upstream: %w", err)
		}
	}
}

// accepted lets what was parked in a round run before the next one, so the CPU of a round is that
// of its tries, too.
func accepted(f *family, h *child) func(run string) (func() error, error) {
	return func(string) (func() error, error) {
		return func() error { return f.await(h, func() bool { return parked(h) == 0 }) }, nil
	}
}

// measure is one round of one subject. Round -1 is a short one.
func (f *family) measure(o *options, s *subject, n int) (r round, err error) {
	duration, end := o.duration, func() error { return nil }
	if n < 0 {
		duration = min(duration, 500*time.Millisecond)
	}
	run := fmt.Sprintf("%s%d-%d", s.kind, s.connections, n+1) // an event is new once
	if s.prepare != nil {
		if end, err = s.prepare(run); err != nil {
			return r, err
		}
	}
	ownFrom, from, err := s.usage()
	if err != nil {
		return r, err
	}
	load, err := f.load(s.child.addr, loadOptions{
		kind: s.kind, run: run, connections: cmp.Or(s.connections, o.connections), duration: duration,
		path: s.path, workflows: s.workflows,
	})
	if err = errors.Join(err, end()); err != nil {
		return r, err
	}
	ownTo, to, err := s.usage()
	if err != nil {
		return r, err
	}
	r.rate = float64(load.Requests) / load.Seconds
	r.p50, r.p99 = load.P50, load.P99
	r.fewest, r.most = float64(load.Fewest), float64(load.Most)
	r.cpu = float64((to.cpu - from.cpu).Microseconds()) / float64(load.Requests)
	r.own = float64((ownTo - ownFrom).Microseconds()) / float64(load.Requests)
	r.rss = float64(to.rss) / (1 << 20)
	return r, nil
}

// usage is what the subject has used so far: the CPU of its child alone, and all of it.
func (s *subject) usage() (time.Duration, usage, error) {
	u, err := groupUsage(s.child.cmd.Process.Pid)
	if err != nil {
		return 0, u, s.child.failed(err)
	}
	own := u.cpu
	for _, c := range s.beside {
		beside, err := groupUsage(c.cmd.Process.Pid)
		if err != nil {
			return 0, u, c.failed(err)
		}
		u.cpu += beside.cpu
	}
	return own, u, nil
}

// load runs a load process to its end.
func (f *family) load(target string, o loadOptions) (loadResult, error) {
	var result loadResult
	var printed bytes.Buffer
	cmd := exec.Command(f.self, "-as", roleLoad, "-target", target, "-kind", o.kind, "-run", o.run,
		"-duration", o.duration.String(), "-connections", strconv.Itoa(o.connections), "-rate", strconv.Itoa(o.rate),
		"-path", cmp.Or(o.path, defaultPath), "-workflows", strconv.Itoa(cmp.Or(o.workflows, peerWorkflows)),
		"-requests", strconv.Itoa(o.requests))
	cmd.Stdout = &printed
	c, err := f.start(roleLoad, cmd)
	if err != nil {
		return result, err
	}
	select {
	case <-c.done:
		f.forget(c)
	case <-f.ctx.Done():
		return result, f.ctx.Err()
	}
	if err := json.Unmarshal(printed.Bytes(), &result); err != nil {
		return result, c.failed(err)
	}
	if result.Wrong > 0 {
		return result, fmt.Errorf("%d of %d requests went wrong: %s", result.Wrong, result.Wrong+result.Requests,
			result.Why)
	}
	if result.Requests == 0 {
		return result, errors.New("no request was answered")
	}
	return result, nil
}
