package config

import (
	"fmt"
	"os"
	"reflect"
	"slices"
)

// Source is what a configuration is made of. The zero value gives the defaults.
type Source struct {
	// Path is the file, as the user named it; messages name it so. Empty: there is no file.
	Path string
	// Bytes is the file's text, where somebody has read it already (Watcher). nil: Load reads Path. Load does not keep it.
	Bytes []byte
	// Env is the environment as os.Environ gives it. Settings, secrets named by …_env, and KUBERNETES_SERVICE_HOST are looked
	// up in it.
	Env []string
	// NeedFiles makes a secret or certificate file that is missing here a problem (serve) instead of a warning (validate).
	NeedFiles bool
	// Senders fill what a route's preset and verify.scheme stand for.
	Senders Senders
	// CheckRoute judges what needs to know senders, with the paths inside of the route, such as verify. It is not asked about a
	// route that is known to be wrong. nil finds nothing wrong.
	CheckRoute func(c *Config, r *Route) (problems, warnings Problems)
	// CheckKeys judges the text of park_store.key_file, and says nothing of it. nil finds nothing wrong.
	CheckKeys func(text string) error
}

// Loaded is a configuration without problems, and what is known about it.
type Loaded struct {
	Config *Config
	// Warnings are what is allowed and most likely not meant, in the order of the file.
	Warnings Problems
	// Notes are what is in force although nobody said it, because of what else was said.
	Notes Problems
	// File is the text that was read, nil where there was no file. It is what a Watcher compares with.
	File []byte

	places map[string]Origin
}

// Load reads, merges and checks a configuration. An error is of type Problems, with everything that is wrong, unless the file
// cannot be read at all.
func Load(src Source) (*Loaded, error) {
	text := src.Bytes
	if text == nil && src.Path != "" {
		var err error
		if text, err = os.ReadFile(src.Path); err != nil {
			return nil, fmt.Errorf("read configuration: %w", err)
		}
	}
	r := newReading()
	if err := r.read(src, text); err != nil {
		return nil, err
	}
	config, err := r.config()
	if err != nil {
		return nil, err
	}
	var notes Problems
	if _, said := r.places["unmatched"]; !said {
		notes = config.rejectUnmatched()
	}
	env := environment(src.Env)
	secrets := secretReader{env: env, required: src.NeedFiles}
	secrets.fill(rootKey(), "", reflect.ValueOf(config).Elem())
	secrets.readable(config)
	v := &validator{config: config, senders: src.Senders, checkRoute: src.CheckRoute, checkKeys: src.CheckKeys, places: r.places, inKubernetes: env["KUBERNETES_SERVICE_HOST"] != ""}
	v.run()
	notes = append(notes, v.notes...)
	r.add(secrets.problems)
	r.add(v.problems)
	if len(r.problems) > 0 {
		r.problems.sort()
		return nil, r.problems
	}
	loaded := &Loaded{Config: config, Notes: notes, File: text, places: r.places}
	for _, w := range slices.Concat(secrets.warnings, v.warnings) {
		w.Origin = nearestPlace(r.places, w.Path)
		loaded.Warnings = append(loaded.Warnings, w)
	}
	loaded.Warnings = append(loaded.Warnings, nearMisses(src.Env)...)
	loaded.Warnings.sort()
	return loaded, nil
}

// Legible is what can be read of a configuration that may have problems: the defaults stand where it cannot be read, nothing is checked, and
// secrets are left out. It is for whoever looks for a process that runs with an earlier one. Without a path it is the environment's.
func Legible(src Source) (*Config, error) {
	text := src.Bytes
	if src.Path != "" {
		var err error
		if text, err = os.ReadFile(src.Path); err != nil {
			return nil, fmt.Errorf("read configuration: %w", err)
		}
	}
	r := newReading()
	if err := r.read(src, text); err != nil {
		return nil, err
	}
	return r.config()
}

// Origin says where the value at path came from, such as routes[0].lock.strategy.
func (l *Loaded) Origin(path string) Origin {
	if at, found := l.places[path]; found {
		return at
	}
	return Origin{Kind: FromDefault}
}
