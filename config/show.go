package config

import (
	"encoding"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"

	"go.yaml.in/yaml/v3"
)

// Show writes the effective configuration as YAML that Load reads back. With origin, each value has
// a comment that says where it came from. It has no secrets, only the files and variables that they
// come from.
func (l *Loaded) Show(w io.Writer, origin bool) error {
	p := printer{loaded: l, origin: origin}
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(p.groupNode(rootKey(), "", reflect.ValueOf(l.Config).Elem())); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return encoder.Close()
}

type printer struct {
	loaded *Loaded
	origin bool
}

func (p printer) groupNode(k *key, path string, v reflect.Value) *yaml.Node {
	group := &yaml.Node{Kind: yaml.MappingNode}
	for _, child := range k.keys {
		name := &yaml.Node{Kind: yaml.ScalarNode, Value: child.name}
		group.Content = append(group.Content, name,
			p.valueNode(child, joinPath(path, child.name), v.Field(child.index)))
	}
	return group
}

func (p printer) valueNode(k *key, path string, v reflect.Value) *yaml.Node {
	switch k.kind {
	case kindGroup:
		return p.groupNode(k, path, v)
	case kindItems:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			list.Content = append(list.Content, p.groupNode(k, indexedPath(path, i), v.Index(i)))
		}
		if v.Len() == 0 {
			list.Style = yaml.FlowStyle
			p.addOrigin(list, path)
		}
		return list
	case kindTexts, kindChoices, kindStatuses:
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for i := range v.Len() {
			list.Content = append(list.Content, k.shownNode(v.Index(i)))
		}
		p.addOrigin(list, path)
		return list
	case kindEntries:
		return p.blockMapNode(path, v)
	case kindCounts, kindMembers:
		return p.flowMapNode(path, v)
	}
	scalar := k.shownNode(v)
	p.addOrigin(scalar, path)
	return scalar
}

// flowMapNode returns a map on one line, as in sidecar.yaml.
func (p printer) flowMapNode(path string, v reflect.Value) *yaml.Node {
	mapping := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	for _, name := range entryNames(v) {
		text := &yaml.Node{}
		text.SetString(name)
		mapping.Content = append(mapping.Content, text, scalarNode(v.MapIndex(reflect.ValueOf(name))))
	}
	p.addOrigin(mapping, path)
	return mapping
}

// blockMapNode returns a map line by line, because each entry may have an origin of its own.
func (p printer) blockMapNode(path string, v reflect.Value) *yaml.Node {
	mapping := &yaml.Node{Kind: yaml.MappingNode}
	for _, name := range entryNames(v) {
		value := scalarNode(v.MapIndex(reflect.ValueOf(name)))
		p.addOrigin(value, joinPath(path, name))
		mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, value)
	}
	if v.Len() == 0 {
		mapping.Style = yaml.FlowStyle
		p.addOrigin(mapping, path)
	}
	return mapping
}

// entryNames returns the keys of a map of kindEntries, sorted.
func entryNames(v reflect.Value) []string {
	names := make([]string, 0, v.Len())
	for _, name := range v.MapKeys() {
		names = append(names, name.String())
	}
	slices.Sort(names)
	return names
}

func (p printer) addOrigin(n *yaml.Node, path string) {
	if p.origin {
		n.LineComment = p.loaded.Origin(path).String()
	}
}

// shownNode returns a value of k in the spelling of the file, or *** for what looks like a secret.
func (k *key) shownNode(v reflect.Value) *yaml.Node {
	n := scalarNode(v)
	if n.Value = naming.HideSecrets(n.Value); k.ofSecret && n.Value != "" && !isFileName(n.Value) &&
		!isVariable(n.Value) {
		n.Value = redacted
	}
	return n
}

// scalarNode returns a value in the spelling of the file.
func scalarNode(v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode}
	switch value := v.Interface().(type) {
	case time.Duration:
		n.Value = idem.DurationText(value)
	case encoding.TextMarshaler:
		n.Value = textOf(value)
		if _, err := strconv.Atoi(n.Value); err == nil {
			n.Tag = "!!int"
		}
	case bool, int:
		n.Value = fmt.Sprint(value)
	default:
		n.SetString(v.String())
	}
	return n
}

// textOf returns the text of a Size or a StatusRange, whose marshalling cannot fail.
func textOf(m encoding.TextMarshaler) string {
	text, _ := m.MarshalText()
	return string(text)
}

// Setting is one value of a route, for display.
type Setting struct {
	Path   string // inside of the route, such as lock.strategy
	Value  string // in the spelling of the file
	Origin Origin // where it was written
}

// RouteSettings lists the settings of the route at index i that are not defaults.
func (l *Loaded) RouteSettings(i int) []Setting {
	var settings []Setting
	add := func(path string, n *yaml.Node) {
		at := l.Origin(path)
		if at.Kind == FromDefault {
			return
		}
		value := n.Value
		if n.Kind == yaml.SequenceNode {
			var items []string
			for _, item := range n.Content {
				items = append(items, item.Value)
			}
			value = "[" + strings.Join(items, ", ") + "]"
		}
		settings = append(settings, Setting{strings.TrimPrefix(path, indexedPath("routes", i)+"."), value, at})
	}
	p := printer{loaded: l}
	eachValue(rootKey(), "", reflect.ValueOf(l.Config).Elem(), func(k *key, path string, v reflect.Value) {
		switch {
		case !strings.HasPrefix(path, indexedPath("routes", i)+"."):
		case k.kind == kindEntries:
			for _, name := range entryNames(v) {
				add(joinPath(path, name), scalarNode(v.MapIndex(reflect.ValueOf(name))))
			}
		default:
			add(path, p.valueNode(k, path, v))
		}
	})
	return settings
}
