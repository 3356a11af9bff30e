package inject

import (
	"strconv"

	"go.yaml.in/yaml/v3"
)

// get follows keys of mappings; nil where one is not there.
func get(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		if n = plain(n); n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		var found *yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				found = n.Content[i+1]
			}
		}
		n = found
	}
	return plain(n)
}

// plain is what an alias stands for.
func plain(n *yaml.Node) *yaml.Node {
	for depth := 0; n != nil && n.Kind == yaml.AliasNode && depth < 10; depth++ {
		n = n.Alias
	}
	return n
}

// text is the scalar at keys; empty where there is none.
func text(n *yaml.Node, keys ...string) string {
	if n = get(n, keys...); n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// list is the sequence at keys; nil where there is none.
func list(n *yaml.Node, keys ...string) []*yaml.Node {
	if n = get(n, keys...); n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// set puts a value under a key of a mapping, in place of what is there.
func set(n *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content[i+1] = value
			return
		}
	}
	n.Content = append(n.Content, str(key), value)
}

// under is the mapping at a key, which is made where there is none.
func under(n *yaml.Node, key string) *yaml.Node {
	if m := get(n, key); m != nil && m.Kind == yaml.MappingNode {
		return m
	}
	m := &yaml.Node{Kind: yaml.MappingNode}
	set(n, key, m)
	return m
}

// add puts items at the begin or the end of the sequence at a key, which is made where there is none.
func add(n *yaml.Node, key string, first bool, items ...*yaml.Node) {
	have := list(n, key)
	if first {
		have, items = items, have
	}
	set(n, key, &yaml.Node{Kind: yaml.SequenceNode, Content: append(append([]*yaml.Node{}, have...), items...)})
}

func str(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

func number(i int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(i)}
}

// bare takes the comments out of a tree: they are about the file that it comes from.
func bare(n *yaml.Node) *yaml.Node {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	for _, c := range n.Content {
		bare(c)
	}
	return n
}
