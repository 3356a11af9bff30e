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

// findKnown returns the word with that name, or alias.
func findKnown(words []Known, name string) *Known {
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
	r.tokens, r.routes = r.countItems("admin.tokens"), r.countItems("routes")
	for i := range r.routes {
		path := indexedPath("routes", i)
		preset := findKnown(senders.Presets, r.merged.String(koanfPath(path+".preset")))
		schemeName := r.merged.String(koanfPath(path + ".verify.scheme"))
		if preset != nil {
			schemeName = cmp.Or(schemeName, preset.Settings["verify.scheme"])
			r.fillFrom(path, preset.Settings, Origin{Kind: FromPreset, Name: preset.Name})
		}
		if scheme := findKnown(senders.Schemes, schemeName); scheme != nil {
			r.fillFrom(path, scheme.Settings, Origin{Kind: FromScheme, Name: scheme.Name})
		}
	}
}

func (r *reading) fillFrom(path string, values map[string]string, at Origin) {
	for _, name := range sortedKeys(values) {
		full := joinPath(path, name)
		if _, said := r.places[full]; !said {
			r.setFromText(rootKey(), "", strings.Split(koanfPath(full), "."), values[name], at)
		}
	}
}
