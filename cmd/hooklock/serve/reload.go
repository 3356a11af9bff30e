package serve

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
)

// reloader takes over a changed configuration, or keeps the old one whole and says why. It belongs to the loop that takes signals.
type reloader struct {
	service *Service
	env     *cli.Environment
	path    string
	watcher *config.Watcher
	boss    *supervisor
	read    chan reading      // what the reload that goes on has read; nil = none goes on
	asked   chan reloadResult // who waits for it; nil = nobody
}

// reading is a configuration, or why there is none.
type reading struct {
	loaded *config.Loaded
	err    error
}

// begin reads the file and those that it names. That is not the loop's work, and nobody waits for its end: where they are on a disk or a network that hangs,
// nothing ends it, and the process goes on, and stops, as without. The watcher hears what was read: it may have seen another content, before or never.
func (r *reloader) begin(asked chan reloadResult) {
	r.boss.reloading()
	read := make(chan reading, 1)
	r.read, r.asked = read, asked
	go func() {
		text, err := os.ReadFile(r.path)
		if err != nil {
			text = nil // reading it once more says why
		}
		r.watcher.Read(text)
		loaded, err := wiring.Load(r.env, r.path, text, true)
		read <- reading{loaded, err}
	}()
}

// end takes over what was read.
func (r *reloader) end(read reading) {
	s, result := r.service, reloadResult{err: read.err}
	if read.err == nil {
		result.changed, result.err = s.takeOver(r.path, read.loaded)
	}
	s.telemetry.Reloaded(result.err == nil)
	if result.err == nil {
		s.Log.Info("config.reloaded", "changed", result.changed)
	} else {
		problems := problemsOf(result.err)
		for _, problem := range problems {
			s.Log.Error("config.refused", "problem", problem)
		}
		s.inForce.refuse(problems)
	}
	r.boss.reloaded(result.err == nil)
	if r.asked != nil {
		r.asked <- result
	}
	r.read, r.asked = nil, nil
}

// takeOver puts a configuration in the place of the one before, or changes nothing.
func (s *Service) takeOver(path string, loaded *config.Loaded) (changed []string, err error) {
	if s.inForce.emptiedBy(loaded) {
		return nil, fmt.Errorf("%s is empty, as a file is that is just being written or that a full disk has cut off: a reload takes away no configuration as a whole; "+
			"write at least a comment into it if that is meant", path)
	}
	restart, reload := config.Changes(s.config, loaded.Config)
	if len(restart) > 0 {
		return nil, fmt.Errorf("needs a restart: %s", strings.Join(restart, ", "))
	}
	rules, err := wiring.NewRules(loaded.Config)
	if err != nil {
		return nil, err
	}
	requests, err := wiring.ParkOptions(loaded.Config)
	if err == nil {
		err = s.requests.Reload(requests)
	}
	if err != nil {
		return nil, err
	}
	s.reloadAccess(loaded.Config)
	for _, w := range loaded.Warnings {
		s.Log.Warn("config.warning", "problem", w.String())
	}
	s.config = loaded.Config
	s.inForce.take(loaded)
	s.maxWaiting.Store(int64(loaded.Config.Limits.Waiting))
	s.setParked(loaded.Config)
	s.setLimits(loaded.Config)
	s.setMemory(&loaded.Config.Limits)
	s.setRoutes(rules.Table.Routes)
	s.telemetry.SetSampling(loaded.Config.Log.Sample)
	s.telemetry.SetEventIDs(loaded.Config.Log.EventID)
	s.handler.SetRules(rules)
	s.carrier.Reloaded()
	return slices.Clip(reload), nil
}
