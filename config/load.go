package config

import (
	"reflect"
	"slices"

	"hooklock/idem/naming"
)

// Source is the input of Load. The zero value gives the defaults.
type Source struct {
	// Path is the file, as the user named it; messages name it so. Empty: there is no file.
	Path string
	// Bytes is the file's text, if it has been read already (Watcher). nil: Load reads Path. Load
	// does not keep it.
	Bytes []byte
	// Env is the environment as os.Environ gives it. Settings, secrets named by …_env, and
	// KUBERNETES_SERVICE_HOST are looked up in it.
	Env []string
	// NeedFiles makes a secret or certificate file that is missing here a problem (serve) instead
	// of a warning (validate).
	NeedFiles bool
	// Senders are the presets and schemes that fill settings.
	Senders Senders
	// CheckRoute makes the checks that need to know senders, with the paths inside of the route,
	// such as verify. It is not called for a route that is known to be wrong. nil finds nothing
	// wrong.
	CheckRoute func(c *Config, r *Route) (problems, warnings Problems)
	// CheckKeys checks the text of park_store.key_file, without quoting it. nil finds nothing
	// wrong.
	CheckKeys func(text string) error
}

// Loaded is a valid configuration, and what is known about it.
type Loaded struct {
	Config *Config // with defaults, checked; the caller does not change it
	// Warnings are settings that are allowed and most likely not meant, in the order of the file.
	Warnings Problems
	// Notes are settings that are in force because of other settings.
	Notes Problems
	// File is the text that was read, nil if there was no file. A Watcher compares with it.
	File []byte

	places map[string]Origin
}

// Load reads, merges and checks a configuration. Its error is of type Problems, with everything
// that is wrong, unless the file cannot be read at all.
func Load(src Source) (*Loaded, error) {
	r, text, err := readSources(src)
	if err != nil {
		return nil, err
	}
	config, err := r.makeConfig()
	if err != nil {
		return nil, err
	}
	var notes Problems
	if _, said := r.places["unmatched"]; !said {
		notes = config.rejectUnmatched()
	}
	env := environmentByName(src.Env)
	secrets := secretReader{env: env, required: src.NeedFiles}
	secrets.fillSecrets(rootKey(), "", reflect.ValueOf(config).Elem())
	secrets.checkReadable(config)
	v := &validator{config: config, senders: src.Senders, checkRoute: src.CheckRoute, checkKeys: src.CheckKeys,
		places: r.places, inKubernetes: env["KUBERNETES_SERVICE_HOST"] != ""}
	v.run()
	notes = append(notes, v.notes...)
	r.addUnplaced(secrets.problems)
	r.addUnplaced(v.problems)
	r.refuseTooLarge()
	if len(r.problems) > 0 {
		r.problems.sort()
		r.problems.hideSecrets()
		return nil, r.problems
	}
	loaded := &Loaded{Config: config, Notes: notes, File: text, places: r.places}
	for _, w := range slices.Concat(secrets.warnings, v.warnings) {
		w.Origin = nearestPlace(r.places, w.Path)
		loaded.Warnings = append(loaded.Warnings, w)
	}
	loaded.Warnings = append(loaded.Warnings, nearMisses(src.Env)...)
	loaded.Warnings.sort()
	loaded.Warnings.hideSecrets()
	loaded.Notes.hideSecrets()
	return loaded, nil
}

// Legible returns what can be read of a configuration that may have problems: unreadable values
// have their defaults, nothing is checked, and secrets are left out. It is for commands that look
// for a process which runs with an earlier version. Without a path it reads the environment.
func Legible(src Source) (*Config, error) {
	r, _, err := readSources(src)
	if err != nil {
		return nil, err
	}
	return r.makeConfig()
}

// Locate returns a problem with the place of its path, and without secrets.
func (l *Loaded) Locate(p Problem) Problem {
	p.Origin = nearestPlace(l.places, p.Path)
	p.Path, p.Text = naming.HideSecrets(p.Path), naming.HideSecrets(p.Text)
	return p
}

// Origin returns where the value at path came from, such as routes[0].lock.strategy.
func (l *Loaded) Origin(path string) Origin {
	if at, found := l.places[path]; found {
		return at
	}
	return Origin{Kind: FromDefault}
}
