package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
)

// reading is the merged sources: the file, the environment over it, and presets where neither has a
// value. Short forms are expanded already.
type reading struct {
	merged *koanf.Koanf   // the values of all sources; a list of groups is a map with its numbers as keys
	values map[string]any // of the source that is being read, by path in koanf's form, such as routes.0.lock.strategy
	places map[string]Origin
	// tooLarge are the paths of numbers that do not fit. The largest one that does stands in their
	// place.
	tooLarge map[string]tooLarge
	// seen are the paths with a known problem. Later checks of the same value report nothing.
	seen map[string]bool
	// the items that the sources have, by the path of their list: routes, admin.tokens
	items    map[string]map[int]Origin
	tokens   int // number of tokens, without those behind a gap
	routes   int // likewise
	problems Problems
}

// readSources reads all sources, and returns the text of the file, too. An error is a file that
// cannot be read, or a bug: problems of a source are in reading.problems.
func readSources(src Source) (r *reading, text []byte, err error) {
	if text = src.Bytes; text == nil && src.Path != "" {
		if text, err = os.ReadFile(src.Path); err != nil {
			return nil, nil, fmt.Errorf("read configuration: %w", err)
		}
	}
	r = &reading{merged: koanf.New("."), places: map[string]Origin{}, tooLarge: map[string]tooLarge{},
		seen: map[string]bool{}, items: map[string]map[int]Origin{}}
	if src.Path != "" {
		r.places[""] = Origin{Kind: FromFile, Name: src.Path}
	}
	file := &fileParser{reading: r, name: src.Path}
	for _, layer := range []func(){
		func() { file.readDocument(text) },
		func() { r.overrideAll(src.Env) },
		func() { r.fillIn(&src.Senders) },
	} {
		r.values = map[string]any{}
		layer()
		if err := r.merged.Load(confmap.Provider(r.values, "."), nil); err != nil {
			return nil, nil, fmt.Errorf("merge configuration: %w", err)
		}
	}
	return r, text, nil
}

// setValue stores a value, unless the source has one for this path.
func (r *reading) setValue(path string, value any, at Origin) {
	dotted := koanfPath(path)
	if _, twice := r.values[dotted]; twice {
		in := "as"
		if at.Kind == FromFile {
			in = "at"
		}
		r.refuse(at, path, "given twice, also %s %s", in, r.places[path])
		return
	}
	r.values[dotted] = value
	r.places[path] = at
}

// addItem notes that a source has an item of the list at path.
func (r *reading) addItem(path string, i int, at Origin) {
	if r.items[path] == nil {
		r.items[path] = map[int]Origin{}
	}
	if first, found := r.items[path][i]; !found || at.Name < first.Name {
		r.items[path][i] = at
	}
}

// countItems returns the number of items of the list at path. Items after a gap are refused.
func (r *reading) countItems(path string) (n int) {
	for _, i := range sortedKeys(r.items[path]) {
		if i == n {
			n++
			continue
		}
		r.refuse(r.items[path][i], indexedPath(path, i), "leaves a gap; the next new one is %s", indexedPath(path, n))
	}
	return n
}

// makeConfig returns the defaults with what was read over them. An error is a bug, because the
// values were made for the fields.
func (r *reading) makeConfig() (*Config, error) {
	config := Default()
	for range r.tokens {
		config.Admin.Tokens = append(config.Admin.Tokens, defaultToken())
	}
	for range r.routes {
		config.Routes = append(config.Routes, defaultRoute())
	}
	decoder := &mapstructure.DecoderConfig{DecodeHook: numberedItems}
	if err := r.merged.UnmarshalWithConf("", config, koanf.UnmarshalConf{DecoderConfig: decoder}); err != nil {
		return nil, fmt.Errorf("decode configuration: %w", err)
	}
	return config, nil
}

// numberedItems turns a map with the keys 0, 1 … into a list as long as the one that it replaces.
// nil changes nothing there.
func numberedItems(from, to reflect.Value) (any, error) {
	numbered, ok := reflect.TypeAssert[map[string]any](from)
	if !ok || to.Kind() != reflect.Slice {
		return from.Interface(), nil
	}
	items := make([]any, to.Len())
	for i := range items {
		items[i] = numbered[strconv.Itoa(i)]
	}
	return items, nil
}

// maxProblems is how many problems the sources may have; a file with more is not a configuration.
const maxProblems = 500

func (r *reading) isFull() bool { return len(r.problems) > maxProblems }

func (r *reading) refuse(at Origin, path, format string, args ...any) {
	r.seen[path] = true
	if r.isFull() {
		return
	}
	if len(r.problems) == maxProblems {
		r.problems = append(r.problems, Problem{Origin: at, Text: "there are more problems after this one"})
		return
	}
	r.problems = append(r.problems, Problem{Origin: at, Path: path, Text: fmt.Sprintf(format, args...)})
}

// refuseUnknown reports a key that parent does not have.
func (r *reading) refuseUnknown(at Origin, parent *key, parentPath, name string) {
	path := joinPath(parentPath, name)
	if r.isFull() {
		return
	}
	if places := parent.placesOf(strings.TrimSuffix(strings.ToLower(name), "s")); len(places) > 0 {
		r.seen[joinPath(parentPath, places[0].name)] = true
		r.refuse(at, path, "a secret does not stand in this file: %s", placesText(places))
		return
	}
	suggestion := suggestKey(parent, name)
	if suggestion == "" {
		r.refuse(at, path, "unknown key; known here are %s", parent.childNames())
		return
	}
	// A user who misspelled a required key needs only this message.
	r.seen[joinPath(parentPath, suggestion)] = true
	if known, _ := parent.findChild(suggestion); known == nil && !strings.Contains(suggestion, ".") {
		r.refuse(at, path, "unknown key here, did you mean %q at the top level?", suggestion)
		return
	}
	r.refuse(at, path, "unknown key, did you mean %q?", suggestion)
}

// placesText says where a secret may stand instead.
func placesText(places []*key) string {
	text := "write it into a file of its own, and the path of that file into " + places[0].name
	if i := slices.IndexFunc(places, func(k *key) bool { return strings.HasSuffix(k.name, "_env") }); i >= 0 {
		text += "; or the name of a variable of the environment into " + places[i].name
	}
	return text
}

// orLargest returns the value of path, or the largest one if that is its error.
func (r *reading) orLargest(path string, value any, err error) (any, error) {
	large, is := errors.AsType[tooLarge](err)
	if !is {
		return value, err
	}
	r.tooLarge[path] = large
	return large.most, nil
}

// refuseTooLarge refuses the numbers that do not fit and have no limit of their own, after all else
// is checked.
func (r *reading) refuseTooLarge() {
	for _, path := range sortedKeys(r.tooLarge) {
		if !slices.ContainsFunc(r.problems, func(p Problem) bool { return p.Path == path }) {
			r.addUnplaced(Problems{{Path: path, Text: r.tooLarge[path].Error()}})
		}
	}
}

// addUnplaced adds problems that have no place yet, except for those of a value that is known to be
// wrong.
func (r *reading) addUnplaced(problems Problems) {
	for _, p := range problems {
		if !r.hasProblem(p.Path) {
			if large, is := r.tooLarge[p.Path]; is {
				p.Text = strings.Replace(p.Text, textOfLargest(large.most), large.text, 1)
			}
			p.Origin = nearestPlace(r.places, p.Path)
			r.problems = append(r.problems, p)
		}
	}
}

// hasProblem reports whether path, or something that it is in, has a problem already.
func (r *reading) hasProblem(path string) bool {
	for ; path != ""; path = parentPath(path) {
		if r.seen[path] {
			return true
		}
	}
	return false
}

// nearestPlace returns the place of path, or of the nearest setting around it that was written; in
// the end the file, whose place has the empty path.
func nearestPlace(places map[string]Origin, path string) Origin {
	for path != "" {
		if at, found := places[path]; found && !at.isFilledIn() {
			return at
		}
		path = parentPath(path)
	}
	return places[""]
}

// parentPath cuts the last step off a path: routes[0].name, routes[0], routes.
func parentPath(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// koanfPath turns routes[0].name into routes.0.name.
func koanfPath(path string) string {
	return strings.NewReplacer("[", ".", "]", "").Replace(path)
}

// namedPath returns the path of an entry with a name of the user's:
// limits.shared["tenant/{path.account}"].
func namedPath(path, name string) string { return path + "[" + strconv.Quote(name) + "]" }

func indexedPath(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
