package config

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
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
	// Flags are values by path, such as etcd.endpoints or routes[0].workflow, with lists between commas. They win over all
	// else.
	Flags map[string]string
	// NeedFiles makes a secret or certificate file that is missing here a problem (serve) instead of a warning (validate).
	NeedFiles bool
	// Senders fill what a route's preset and verify.scheme stand for.
	Senders Senders
	// Checks judge what this package cannot.
	Checks Checks
}

// Checks are the judgements of other rooms. A nil function finds nothing wrong.
type Checks struct {
	// Template reports what is wrong with a template. vars are the names that the route's path pattern captures.
	Template func(text string, vars []string) error
	// Pattern reports what is wrong with a path pattern that this package takes for valid.
	Pattern func(pattern string) error
	// Route judges a whole route. The paths of what it finds are inside of the route, such as lock.strategy.
	Route func(c *Config, r *Route) (problems, warnings Problems)
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
	m := &merger{places: map[string]Origin{"": {}}, seen: map[string]bool{}, items: map[string]int{}, merged: koanf.New(".")}
	if err := m.read(src, text); err != nil {
		return nil, err
	}
	config, err := m.decode()
	if err != nil {
		return nil, err
	}
	var notes Problems
	if _, said := m.places["unmatched"]; !said {
		notes = config.rejectUnmatched()
	}
	env := environment(src.Env)
	secrets := secretReader{env: env, required: src.NeedFiles}
	secrets.fill(rootKey(), "", reflect.ValueOf(config).Elem())
	secrets.readable(config)
	v := &validator{config: config, senders: src.Senders, checks: src.Checks, places: m.places, inKubernetes: env["KUBERNETES_SERVICE_HOST"] != ""}
	v.run()
	m.add(secrets.problems)
	m.add(v.problems)
	if len(m.problems) > 0 {
		m.problems.sort()
		return nil, m.problems
	}
	loaded := &Loaded{Config: config, Notes: notes, File: text, places: m.places}
	for _, w := range slices.Concat(secrets.warnings, v.warnings) {
		w.Origin = loaded.nearest(w.Path)
		loaded.Warnings = append(loaded.Warnings, w)
	}
	loaded.Warnings.sort()
	return loaded, nil
}

// Origin says where the value at path came from, such as routes[0].lock.strategy.
func (l *Loaded) Origin(path string) Origin {
	if at, found := l.places[path]; found {
		return at
	}
	return Origin{Kind: FromDefault}
}

func (l *Loaded) nearest(path string) Origin { return nearestPlace(l.places, path) }

// nearestPlace is where somebody wrote path, or else what it is in; in the end the file, whose place has the empty path.
func nearestPlace(places map[string]Origin, path string) Origin {
	for path != "" {
		if at, found := places[path]; found && !at.filled() {
			return at
		}
		path = parent(path)
	}
	return places[""]
}

// parent cuts the last step off a path: routes[0].name, routes[0], routes.
func parent(path string) string {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '.' || path[i] == '[' {
			return path[:i]
		}
	}
	return ""
}

// merger puts the layers one over the other.
type merger struct {
	merged   *koanf.Koanf
	places   map[string]Origin
	seen     map[string]bool
	items    map[string]int // how many each list has, by its path
	problems Problems
}

func (m *merger) read(src Source, text []byte) error {
	file := newFileLayer(src.Path)
	fromEnv, environ := envLayer(src.Env)
	fromFlags, flags := flagLayer(src.Flags)
	above := koanf.New(".")
	if err := above.Load(rawbytes.Provider(text), file); err != nil {
		return fmt.Errorf("load file: %w", err)
	}
	if err := above.Load(environ, nil); err != nil {
		return fmt.Errorf("load environment: %w", err)
	}
	if err := above.Load(flags, nil); err != nil {
		return fmt.Errorf("load flags: %w", err)
	}
	if src.Path != "" {
		m.places[""] = Origin{Kind: FromFile, Name: src.Path}
	}
	for _, l := range []*layer{file.layer, fromEnv, fromFlags} {
		m.addItems(l)
	}
	filled := src.Senders.layer(m.items["routes"], func(path string) string { return above.String(koanfPath(path)) })
	for _, l := range []*layer{filled, file.layer, fromEnv, fromFlags} {
		maps.Copy(m.places, l.places)
		maps.Copy(m.seen, l.seen)
		m.problems = append(m.problems, l.problems...)
	}
	if err := m.merged.Load(confmap.Provider(defaultValues(m.items), "."), nil); err != nil {
		return fmt.Errorf("load defaults: %w", err)
	}
	if err := m.merged.Load(confmap.Provider(filled.values, "."), nil); err != nil {
		return fmt.Errorf("load presets: %w", err)
	}
	if err := m.merged.Merge(above); err != nil {
		return fmt.Errorf("merge configuration: %w", err)
	}
	return nil
}

// addItems takes over the items of lists that l speaks of: existing ones, and new ones at the end.
func (m *merger) addItems(l *layer) {
	for _, list := range sortedKeys(l.items) {
		for _, i := range slices.Sorted(maps.Keys(l.items[list])) {
			if i < m.items[list] {
				continue
			}
			if i == m.items[list] {
				m.items[list]++
				continue
			}
			m.problems = append(m.problems, Problem{
				Origin: l.firstPlace(indexed(list, i)), Path: indexed(list, i), Text: fmt.Sprintf("leaves a gap; the next new one is %s", indexed(list, m.items[list])),
			})
		}
	}
}

// firstPlace is the place of one of the settings inside of path, the same one each time.
func (l *layer) firstPlace(path string) (at Origin) {
	for p, origin := range l.places {
		if strings.HasPrefix(p, path) && (at.Name == "" || origin.Name < at.Name) {
			at = origin
		}
	}
	return at
}

// decode turns the merged values into a Config. They have the types of the fields already, so that an error is a bug.
func (m *merger) decode() (*Config, error) {
	config := &Config{}
	root := reflect.ValueOf(config).Elem()
	err := eachList(rootKey(), "", root, func(path string, list reflect.Value) error {
		list.Set(reflect.MakeSlice(list.Type(), m.items[path], m.items[path]))
		for i := range list.Len() {
			if err := decodeInto(m.merged, fmt.Sprintf("%s.%d", path, i), list.Index(i).Addr().Interface()); err != nil {
				return err
			}
		}
		m.merged.Delete(path)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range config.Routes {
		if config.Routes[i].Respond == nil {
			config.Routes[i].Respond = map[string]int{}
		}
	}
	return config, decodeInto(m.merged, "", config)
}

// eachSetting calls f for every setting below k that is not inside a list of groups. v is what k is in the configuration.
func eachSetting(k *key, path string, v reflect.Value, f func(path string, v reflect.Value)) {
	switch k.kind {
	case kindItems:
	case kindGroup:
		for _, child := range k.keys {
			eachSetting(child, join(path, child.name), v.Field(child.index), f)
		}
	default:
		f(path, v)
	}
}

// eachList calls f for every list of groups below k, until there is an error. v is what k is in the configuration.
func eachList(k *key, path string, v reflect.Value, f func(path string, list reflect.Value) error) error {
	for _, child := range k.keys {
		var err error
		switch child.kind {
		case kindItems:
			err = f(join(path, child.name), v.Field(child.index))
		case kindGroup:
			err = eachList(child, join(path, child.name), v.Field(child.index), f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func decodeInto(k *koanf.Koanf, path string, into any) error {
	strict := koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{Result: into, TagName: "koanf"}}
	if err := k.UnmarshalWithConf(path, into, strict); err != nil {
		return fmt.Errorf("decode configuration: %w", err)
	}
	return nil
}

// add takes over problems that have no place yet, but for those with a value that is known to be wrong.
func (m *merger) add(problems Problems) {
	for _, p := range problems {
		if !m.known(p.Path) {
			p.Origin = nearestPlace(m.places, p.Path)
			m.problems = append(m.problems, p)
		}
	}
}

// known reports whether path, or something that it is in, has a problem already.
func (m *merger) known(path string) bool {
	for ; path != ""; path = parent(path) {
		if m.seen[path] {
			return true
		}
	}
	return false
}

// defaultValues is Default and, for each item of a list, what nothing was said of, as koanf wants them.
func defaultValues(items map[string]int) map[string]any {
	values := map[string]any{}
	keep := func(_ *key, path string, v reflect.Value) {
		if v.Kind() != reflect.Map {
			values[koanfPath(path)] = v.Interface()
		}
	}
	config := Default()
	for range items["routes"] {
		config.Routes = append(config.Routes, DefaultRoute())
	}
	for range items["admin.tokens"] {
		config.Admin.Tokens = append(config.Admin.Tokens, DefaultToken())
	}
	eachValue(rootKey(), "", reflect.ValueOf(config).Elem(), keep)
	return values
}

// eachValue calls f for every setting below k, in the order of the types. v is what k is in the configuration.
func eachValue(k *key, path string, v reflect.Value, f func(k *key, path string, v reflect.Value)) {
	switch k.kind {
	case kindGroup:
		for _, child := range k.keys {
			eachValue(child, join(path, child.name), v.Field(child.index), f)
		}
	case kindItems:
		for i := range v.Len() {
			for _, child := range k.keys {
				eachValue(child, join(indexed(path, i), child.name), v.Index(i).Field(child.index), f)
			}
		}
	default:
		f(k, path, v)
	}
}
