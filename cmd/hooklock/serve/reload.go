package serve

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"hooklock/admin"
	"hooklock/admin/client"
	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/idem"
	"hooklock/idem/naming"
)

const (
	// readPatience bounds the reading of a reload, because a disk or a network can hang.
	readPatience = 10 * time.Second
	// secondLook is the delay before a configuration that could not be loaded is read again. What
	// it names may come later: in a pod, a Secret up to two minutes after the ConfigMap.
	secondLook = 10 * time.Second
)

// reloader takes over a changed configuration, or keeps the old one and says why. Only the signal
// loop uses it.
type reloader struct {
	service    *Service
	env        *cli.Environment
	path       string
	watcher    *config.Watcher
	supervisor *supervisor

	read   chan reading      // the result of the running reload; nil = none runs
	late   <-chan time.Time  // when it times out
	asked  chan reloadResult // the caller that waits for it, and audits it; nil = none
	cause  string            // why the file is read, for the audit
	second bool              // a second look, which is reported only if it succeeds

	lacking []byte           // the text that could not be loaded; nil = the last one was
	look    <-chan time.Time // when it is read again; nil = never
}

// reading is a loaded configuration, or an error.
type reading struct {
	text   []byte // of the file; nil = not read
	loaded *config.Loaded
	err    error
	// localToken is the result of admin.LocalToken; nil = the process needs none.
	localToken func() (string, error)
}

// beginReload starts a reload. The watcher is given the content, which it may not have seen.
func (r *reloader) beginReload(cause string, asked chan reloadResult) {
	r.supervisor.beginReload()
	r.cause, r.asked = cause, asked
	r.startReading(r.watcher.Read)
}

// lookAgain starts a second look at a configuration that could not be loaded.
func (r *reloader) lookAgain() {
	r.second = true
	r.startReading(func([]byte) {})
}

// startReading reads the file and the files that it names, in a goroutine of its own: if a disk
// hangs, the goroutine never ends, and the process goes on and stops without it.
func (r *reloader) startReading(heard func([]byte)) {
	read := make(chan reading, 1)
	r.read, r.late, r.look = read, time.After(readPatience), nil
	dir := r.service.config.DataDir
	go func() {
		text, err := os.ReadFile(r.path)
		if err != nil {
			text = nil // the next read has the error
		}
		heard(text)
		result := reading{text: text}
		result.loaded, result.err = wiring.Load(r.env, r.path, text, true)
		if result.err == nil && len(result.loaded.Config.Admin.Tokens) == 0 {
			token, err := admin.LocalToken(dir)
			result.localToken = func() (string, error) { return token, err }
		}
		read <- result
	}()
}

// giveUp ends a reload that takes too long to read. There is no second look, which would leave
// another hanging read.
func (r *reloader) giveUp() {
	if r.second {
		r.read, r.late, r.second, r.lacking = nil, nil, false, nil
		return
	}
	r.endReload(reading{err: fmt.Errorf(
		"%s, or a file that it names, takes longer than %v to read: is one a pipe, or on "+
			"a file system that hangs? "+
			"Send SIGHUP when that is over", r.path, readPatience)})
}

// endReload takes over the result of a read.
func (r *reloader) endReload(read reading) {
	second := r.second
	r.read, r.late, r.second = nil, nil, false
	if second {
		// the watcher reloads another text, which may be half written
		if read.err != nil || !bytes.Equal(read.text, r.lacking) {
			r.look = time.After(secondLook)
			return
		}
		r.supervisor.beginReload()
	}
	s, result := r.service, reloadResult{err: read.err}
	r.lacking = nil
	switch {
	case read.err == nil:
		result.changed, result.err = s.takeOver(r.path, &read)
	case read.text != nil:
		r.lacking, r.look = read.text, time.After(secondLook)
	}
	s.telemetry.OnReload(result.err == nil)
	if result.err == nil {
		s.Log.Info("config.reloaded", "changed", result.changed)
	} else {
		problems := problemsOf(result.err)
		for _, problem := range problems {
			s.Log.Error("config.refused", "problem", problem)
		}
		s.inForce.setRefusal(problems)
	}
	r.supervisor.endReload(result.err == nil)
	if r.asked != nil {
		r.asked <- result
		r.asked = nil
		return
	}
	s.Store.AuditRefusal(auditOfReload(s.replica, r.path+" ("+r.cause+")", result, time.Now()))
}

// auditOfReload returns the audit of a reload that was not asked for over the API. from is the
// file, and why it was read.
func auditOfReload(replica, from string, result reloadResult, now time.Time) idem.Audit {
	a := idem.Audit{
		At: now, Who: "replica " + replica, What: admin.ReloadConfig, Result: idem.AuditDone, Remote: from,
		After: cutText(strings.Join(result.changed, ", ")),
	}
	switch {
	case result.err != nil:
		a.Result, a.Code, a.After = idem.AuditRefused, client.CodeConfigRefused,
			cutText(strings.Join(problemsOf(result.err), "; "))
	case len(result.changed) == 0:
		a.Result = idem.AuditNothing
	}
	return a
}

// mostAudited bounds what an audit says of a reload, in bytes.
const mostAudited = 2 << 10

func cutText(text string) string {
	text = naming.HideSecrets(text)
	if len(text) > mostAudited {
		return strings.ToValidUTF8(text[:mostAudited], "") + "…"
	}
	return text
}

// rememberLockKinds notes the kind of lock of each route. It returns routes that this process
// removed before and that had the other kind of lock: config.Changes says why that needs a restart.
func (s *Service) rememberLockKinds(routes []config.Route) (restart []string) {
	if s.perEvent == nil {
		s.perEvent = map[string]bool{}
	}
	for i := range s.config.Routes {
		s.perEvent[s.config.Routes[i].Name] = s.config.Routes[i].Lock.Strategy == idem.NoLock
	}
	for i := range routes {
		r := &routes[i]
		now := slices.ContainsFunc(s.config.Routes, func(c config.Route) bool { return c.Name == r.Name })
		if was, known := s.perEvent[r.Name]; known && !now && was != (r.Lock.Strategy == idem.NoLock) {
			restart = append(restart, fmt.Sprintf("route %s: lock.strategy (it was another one before the route was "+
				"removed)", r.Name))
		}
	}
	return restart
}

// takeOver replaces the configuration, or changes nothing.
func (s *Service) takeOver(path string, read *reading) (changed []string, err error) {
	loaded := read.loaded
	if s.inForce.emptiedBy(loaded) {
		return nil, fmt.Errorf("%s is empty, as a file is that is just being written or that a full disk has cut "+
			"off: a reload takes away no configuration as a whole; "+
			"write at least a comment into it if that is meant", path)
	}
	restart, reload := config.Changes(s.config, loaded.Config)
	restart = append(restart, s.rememberLockKinds(loaded.Config.Routes)...)
	if len(restart) > 0 {
		return nil, errors.Join(fmt.Errorf("needs a restart: %s", strings.Join(restart, ", ")),
			s.revokeTokens(loaded.Config))
	}
	rules, err := wiring.NewRules(loaded.Config)
	if err != nil {
		return nil, err
	}
	if err := s.requests.Reload(wiring.ParkOptions(loaded.Config)); err != nil {
		return nil, err
	}
	if read.localToken != nil && s.takeLocalToken(read.localToken()) {
		reload = append(reload, "the generated token: another one is in its place")
	}
	s.api.SetAccess(s.accessOf(loaded.Config))
	if len(loaded.Config.Admin.Tokens) > 0 {
		s.localToken = "" // its file may have been removed, too
	}
	for _, w := range loaded.Warnings {
		s.Log.Warn("config.warning", "problem", w.String())
	}
	s.config = loaded.Config
	s.inForce.setLoaded(loaded)
	s.setLimits(loaded.Config)
	s.setRoutes(rules.Table.Routes)
	s.notifier.SetSettings(notifySettings(loaded.Config))
	s.telemetry.SetSampling(loaded.Config.Log.Sample)
	s.telemetry.SetEventIDs(loaded.Config.Log.EventID)
	s.handler.SetRules(rules)
	s.worker.OnReload()
	return append(reload, s.warnUnrouted()...), nil
}
