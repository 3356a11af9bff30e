package config

import (
	"fmt"
	"strconv"
	"strings"
)

// layer is what one source says: the file, the environment, or presets and schemes. Short forms are already spelled out.
type layer struct {
	kind   string            // of its origins
	values map[string]any    // path in koanf's form, such as routes.0.lock.strategy, to a value of the field's type
	places map[string]Origin // path, also of groups and of items of lists
	// seen are the paths whose problem is known. A later check of the same value says nothing new.
	seen     map[string]bool
	items    map[string]map[int]bool // which items it speaks of, by the path of their list: routes, admin.tokens
	problems Problems
}

func newLayer(kind string) *layer {
	return &layer{
		kind:   kind,
		values: map[string]any{},
		places: map[string]Origin{},
		seen:   map[string]bool{},
		items:  map[string]map[int]bool{},
	}
}

// set keeps a value, unless the layer has one for this path already.
func (l *layer) set(path string, value any, at Origin) {
	dotted := koanfPath(path)
	if _, twice := l.values[dotted]; twice {
		l.refuse(at, path, "given twice, also at %s", l.places[path])
		return
	}
	l.values[dotted] = value
	l.places[path] = at
}

// addItem notes that the layer speaks of an item of the list at path.
func (l *layer) addItem(path string, i int) {
	if l.items[path] == nil {
		l.items[path] = map[int]bool{}
	}
	l.items[path][i] = true
}

// maxProblems is how many problems one source may have; a file with more is not a configuration.
const maxProblems = 500

func (l *layer) full() bool { return len(l.problems) > maxProblems }

func (l *layer) refuse(at Origin, path, format string, args ...any) {
	l.seen[path] = true
	if l.full() {
		return
	}
	if len(l.problems) == maxProblems {
		l.problems = append(l.problems, Problem{Origin: at, Text: "there are more problems after this one"})
		return
	}
	l.problems = append(l.problems, Problem{Origin: at, Path: path, Text: fmt.Sprintf(format, args...)})
}

// refuseUnknown reports a key that parent does not have.
func (l *layer) refuseUnknown(at Origin, parent *key, parentPath, name string) {
	path := join(parentPath, name)
	if l.full() {
		return
	}
	suggestion := suggest(parent, name)
	if suggestion == "" {
		l.refuse(at, path, "unknown key; known here are %s", parent.names())
		return
	}
	// Whoever misspelled a required key needs to hear only that.
	l.seen[join(parentPath, suggestion)] = true
	l.refuse(at, path, "unknown key, did you mean %q?", suggestion)
}

// koanfPath turns routes[0].name into routes.0.name.
func koanfPath(path string) string {
	return strings.NewReplacer("[", ".", "]", "").Replace(path)
}

func indexed(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
