package config

import (
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
	// Values are settings inside of a route, such as lock.strategy, as a variable would give them: lists between commas.
	Values map[string]string
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

// layer is what presets and schemes fill in. text looks up a setting of the layers above: routes[0].preset.
func (s *Senders) layer(routes int, text func(path string) string) *layer {
	l := newLayer(FromPreset)
	for i := range routes {
		path := indexed("routes", i)
		preset := find(s.Presets, text(path+".preset"))
		schemeName := text(path + ".verify.scheme")
		if schemeName == "" && preset != nil {
			schemeName = preset.Values["verify.scheme"]
		}
		if preset != nil {
			l.fill(path, preset.Values, Origin{Kind: FromPreset, Name: preset.Name})
		}
		if scheme := find(s.Schemes, schemeName); scheme != nil {
			l.fill(path, scheme.Values, Origin{Kind: FromScheme, Name: scheme.Name})
		}
	}
	return l
}

// fill sets the values of one route that are not set yet.
func (l *layer) fill(path string, values map[string]string, at Origin) {
	for _, name := range sortedKeys(values) {
		full := join(path, name)
		if _, set := l.values[koanfPath(full)]; !set {
			l.override(strings.Split(koanfPath(full), "."), values[name], at)
		}
	}
}
