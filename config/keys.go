package config

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// kind says what a setting's value looks like.
type kind uint8

const (
	kindText     kind = iota // string
	kindChoice               // one of a fixed set of words
	kindInt                  // int
	kindBool                 // bool
	kindDuration             // time.Duration
	kindSize                 // Size
	kindTexts                // []string
	kindChoices              // several of a fixed set of words
	kindStatuses             // []StatusRange
	kindEntries              // map whose entries are settings of their own: respond, labels
	kindCounts               // map of names to numbers, as a whole
	kindMembers              // map of names to texts, as a whole
	kindGroup                // a struct with settings of its own
	kindItems                // list of such structs, which are never inside another list
)

// key is one setting, or a group of them, as found in the Go types. Reading, printing, comparing
// and the JSON Schema all walk this tree, so a setting that is added to the types is known
// everywhere.
type key struct {
	name    string // as written in the file
	owner   string // the Go struct that has the field
	field   string // the Go field
	index   int    // its number in owner
	kind    kind
	typ     reflect.Type
	choices []string
	keys    []*key      // of a group, or of each item of a list
	secrets []secretKey // of a group
	// ofSecret says that the value names a secret's file or variable. Many write the secret itself
	// there, so messages do not quote it.
	ofSecret bool
	// short is the child that a plain value in place of the group stands for: `upstream: URL` is
	// `upstream: {url: URL}`.
	short string
	// beside is the child that may stand next to the group instead of in it: a route's `path` is
	// its `match.path`.
	beside string
	// empty is what an empty value would silently mean, where that gives a protection up; "" = it
	// may be empty. A variable of the environment is often empty by accident: a value of a chart or
	// a script that is not set.
	empty string
	// reload says that a reload takes the setting over. All others outside of routes are built into
	// listeners and clients when the process starts; those of routes are reloaded, but for one
	// case.
	reload bool
	// days says that a duration may be written in days, as 7d. Elsewhere a day is refused, because
	// it is not always 24 hours.
	days bool
}

// secretKey is a field that is filled from <name>_file or <name>_env.
type secretKey struct {
	name  string
	index int
}

// rootKey returns Config as a group without a name. The tree is made once and never changed.
var rootKey = sync.OnceValue(func() *key {
	root := &key{kind: kindGroup, typ: reflect.TypeFor[Config]()}
	root.addFields(root.typ)
	return root
})

func (k *key) addFields(typ reflect.Type) {
	for i := range typ.NumField() {
		field := typ.Field(i)
		if name, found := field.Tag.Lookup("secret"); found {
			k.secrets = append(k.secrets, secretKey{name: name, index: i})
			continue
		}
		child := &key{
			name:   field.Tag.Get("koanf"),
			owner:  typ.Name(),
			field:  field.Name,
			index:  i,
			typ:    field.Type,
			short:  field.Tag.Get("short"),
			beside: field.Tag.Get("beside"),
			empty:  field.Tag.Get("empty"),
			reload: field.Tag.Get("reload") == "true",
			days:   field.Tag.Get("days") == "true",
		}
		child.setKind()
		k.keys = append(k.keys, child)
	}
	for _, child := range k.keys {
		child.ofSecret = child.name == "key_file" || slices.ContainsFunc(k.secrets, func(s secretKey) bool {
			return slices.Contains(secretEndings, strings.TrimPrefix(child.name, s.name))
		})
	}
}

// secretEndings are those of the settings that say where the secret <name> is.
var secretEndings = []string{"_file", "_env", "_files"}

// placesOf returns the settings inside of k that say where the secret called name is.
func (k *key) placesOf(name string) (settings []*key) {
	for _, ending := range secretEndings {
		if setting, _ := k.findChild(name + ending); setting != nil {
			settings = append(settings, setting)
		}
	}
	return settings
}

func (k *key) setKind() {
	if c, ok := reflect.TypeAssert[choice](reflect.Zero(k.typ)); ok {
		k.kind, k.choices = kindChoice, c.Choices()
		return
	}
	if k.typ.Kind() == reflect.Slice {
		if c, ok := reflect.TypeAssert[choice](reflect.Zero(k.typ.Elem())); ok {
			k.kind, k.choices = kindChoices, c.Choices()
			return
		}
	}
	switch k.typ {
	case reflect.TypeFor[string]():
		k.kind = kindText
	case reflect.TypeFor[int]():
		k.kind = kindInt
	case reflect.TypeFor[bool]():
		k.kind = kindBool
	case reflect.TypeFor[time.Duration]():
		k.kind = kindDuration
	case reflect.TypeFor[Size]():
		k.kind = kindSize
	case reflect.TypeFor[[]string]():
		k.kind = kindTexts
	case reflect.TypeFor[[]StatusRange]():
		k.kind = kindStatuses
	case reflect.TypeFor[map[string]int](), reflect.TypeFor[Labels]():
		k.kind = kindEntries
	case reflect.TypeFor[SharedLimits]():
		k.kind = kindCounts
	case reflect.TypeFor[Members]():
		k.kind = kindMembers
	default:
		if k.typ.Kind() == reflect.Slice {
			k.kind = kindItems
			k.addFields(k.typ.Elem())
			return
		}
		k.kind = kindGroup
		k.addFields(k.typ)
	}
}

// findChild finds the key that is written as name inside k. If the name stands for a setting of a
// neighbouring group, it returns that setting, and via is the group.
func (k *key) findChild(name string) (found, via *key) {
	for _, c := range k.keys {
		if c.name == name {
			return c, nil
		}
	}
	for _, c := range k.keys {
		if c.beside == name && name != "" {
			inner, _ := c.findChild(name)
			return inner, c
		}
	}
	return nil, nil
}

// entryKey returns the key of one entry of kindEntries: a status of respond, or a template of
// labels.
func (k *key) entryKey(name string) (*key, error) {
	if k.typ == reflect.TypeFor[Labels]() {
		return &key{kind: kindText}, checkLabelName(name)
	}
	return &key{kind: kindInt}, checkDecision(name)
}

// childNames lists the keys inside k, for messages.
func (k *key) childNames() string {
	names := make([]string, len(k.keys))
	for i, c := range k.keys {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}

// isLeaf reports whether k has a value of its own.
func (k *key) isLeaf() bool { return k.kind != kindGroup && k.kind != kindItems }

// joinPath appends name to a path.
func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// eachValue calls f for every setting below k, in the order of the types. v is what k is in the
// configuration.
func eachValue(k *key, path string, v reflect.Value, f func(k *key, path string, v reflect.Value)) {
	switch k.kind {
	case kindGroup:
		for _, child := range k.keys {
			eachValue(child, joinPath(path, child.name), v.Field(child.index), f)
		}
	case kindItems:
		for i := range v.Len() {
			for _, child := range k.keys {
				eachValue(child, joinPath(indexedPath(path, i), child.name), v.Index(i).Field(child.index), f)
			}
		}
	default:
		f(k, path, v)
	}
}
