package inject

import (
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// nodeAt follows keys of mappings. It returns nil if one is missing.
func nodeAt(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		if n = resolveAlias(n); n == nil || n.Kind != yaml.MappingNode {
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
	return resolveAlias(n)
}

// resolveAlias returns the node of an alias.
func resolveAlias(n *yaml.Node) *yaml.Node {
	for depth := 0; n != nil && n.Kind == yaml.AliasNode && depth < 10; depth++ {
		n = n.Alias
	}
	return n
}

// hasAlias reports whether a tree has an alias.
func hasAlias(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || slices.ContainsFunc(n.Content, hasAlias)
}

// withoutAliases returns a copy of a tree without aliases and merges, so that a change affects one
// place.
func withoutAliases(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		value := dropComments(withoutAliases(n.Alias))
		value.HeadComment, value.LineComment, value.FootComment = n.HeadComment, n.LineComment, n.FootComment
		return value
	}
	out := *n
	out.Anchor, out.Content = "", nil
	var merged []*yaml.Node
	for i, c := range n.Content {
		switch c = withoutAliases(c); {
		case n.Kind != yaml.MappingNode || n.Content[i-i%2].Tag != "!!merge":
			out.Content = append(out.Content, c)
		case i%2 == 1 && c.Kind == yaml.SequenceNode:
			merged = append(merged, c.Content...)
		case i%2 == 1:
			merged = append(merged, c)
		}
	}
	for _, m := range merged { // a key of its own goes before those of the first one, and these before the next one's
		for i := 0; i+1 < len(m.Content); i += 2 {
			if nodeAt(&out, m.Content[i].Value) == nil {
				out.Content = append(out.Content, m.Content[i], m.Content[i+1])
			}
		}
	}
	return &out
}

// textAt returns the scalar at keys, or "".
func textAt(n *yaml.Node, keys ...string) string {
	if n = nodeAt(n, keys...); n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// listAt returns the sequence at keys, or nil.
func listAt(n *yaml.Node, keys ...string) []*yaml.Node {
	if n = nodeAt(n, keys...); n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// setKey puts a value under a key of a mapping, in place of what is there.
func setKey(n *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content[i+1] = value
			return
		}
	}
	n.Content = append(n.Content, stringNode(key), value)
}

// mappingAt returns the mapping at a key, and creates it if it is missing.
func mappingAt(n *yaml.Node, key string) *yaml.Node {
	if m := nodeAt(n, key); m != nil && m.Kind == yaml.MappingNode {
		return m
	}
	m := &yaml.Node{Kind: yaml.MappingNode}
	setKey(n, key, m)
	return m
}

// addItems puts items at the beginning or the end of the sequence at a key, which it creates if it
// is missing.
func addItems(n *yaml.Node, key string, first bool, items ...*yaml.Node) {
	have := listAt(n, key)
	if first {
		have, items = items, have
	}
	setKey(n, key, &yaml.Node{Kind: yaml.SequenceNode, Content: append(append([]*yaml.Node{}, have...), items...)})
}

func stringNode(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

func numberNode(i int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(i)}
}

// dropComments removes the comments of a tree, which belong to its file.
func dropComments(n *yaml.Node) *yaml.Node {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	for _, c := range n.Content {
		dropComments(c)
	}
	return n
}
