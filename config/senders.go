package config

import (
	"cmp"
	"slices"
	"strings"
)

// Senders are the known webhook senders, as plain data: this package knows none. The zero value has
// no presets, and no schemes but none.
type Senders struct {
	Presets []Known // what routes[].sender may name
	Schemes []Known // what verify.scheme may name
}

// Known is a word of the configuration that fills settings which the user leaves out.
type Known struct {
	Name    string   // as it is written in the file
	Aliases []string // other spellings that mean it
	// Settings are settings inside of a route, such as lock.strategy, in the form of a variable:
	// lists with commas.
	Settings map[string]string
}

// find returns the word with that name, or alias.
func find(words []Known, name string) *Known {
	for i := range words {
		if words[i].Name == name || slices.Contains(words[i].Aliases, name) {
			return &words[i]
		}
	}
	return nil
}

// nameError returns an error for a name that is none of words.
func nameError(words []Known, name string) error {
	var names []string
	for _, w := range words {
		names = append(names, w.Name)
	}
	return unknownWord(name, names)
}

// fillIn sets what the presets and schemes of routes stand for, unless the user has set it.
func (r *reading) fillIn(senders *Senders) {
	r.tokens, r.routes = r.count("admin.tokens"), r.count("routes")
	for i := range r.routes {
		path := indexed("routes", i)
		preset := find(senders.Presets, r.merged.String(koanfPath(path+".preset")))
		schemeName := r.merged.String(koanfPath(path + ".verify.scheme"))
		if preset != nil {
			schemeName = cmp.Or(schemeName, preset.Settings["verify.scheme"])
			r.fill(path, preset.Settings, Origin{Kind: FromPreset, Name: preset.Name})
		}
		if scheme := find(senders.Schemes, schemeName); scheme != nil {
			r.fill(path, scheme.Settings, Origin{Kind: FromScheme, Name: scheme.Name})
		}
	}
}

func (r *reading) fill(path string, values map[string]string, at Origin) {
	for _, name := range sortedKeys(values) {
		full := join(path, name)
		if _, said := r.places[full]; !said {
			r.override(rootKey(), "", strings.Split(koanfPath(full), "."), values[name], at)
		}
	}
}
