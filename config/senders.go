package config

import (
	"cmp"
	"slices"
	"strings"
)

// Senders is what the caller knows of webhook senders, as plain data: this package knows none. The zero value has no presets, and
// no schemes but none.
type Senders struct {
	Presets []Known
	Schemes []Known
}

// Known is a word of the configuration that fills settings which the user leaves out.
type Known struct {
	Name    string
	Aliases []string
	// Settings are those inside of a route, such as lock.strategy, as a variable would give them: lists between commas.
	Settings map[string]string
}

// find returns the word that name, or an alias, stands for.
func find(words []Known, name string) *Known {
	for i := range words {
		if words[i].Name == name || slices.Contains(words[i].Aliases, name) {
			return &words[i]
		}
	}
	return nil
}

// nameError says that name is none of words.
func nameError(words []Known, name string) error {
	var names []string
	for _, w := range words {
		names = append(names, w.Name)
	}
	return unknownWord(name, names)
}

// fillIn sets what the presets and schemes of routes stand for, where nobody has said something else.
func (r *reading) fillIn(senders *Senders) {
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
