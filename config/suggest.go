package config

import (
	"strings"

	"hooklock/idem/naming"
)

// suggestKey finds the key that was probably meant by name inside parent: below parent, or else
// anywhere. It returns "" if none is near.
func suggestKey(parent *key, name string) string {
	name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	for _, k := range []*key{parent, rootKey()} {
		best := candidate{cost: naming.Tolerance(name) + 1}
		best.searchBelow(k, "", name)
		if best.path != "" {
			return best.path
		}
	}
	return ""
}

type candidate struct {
	path  string
	cost  int
	depth int
}

// searchBelow looks through the keys below k for one that is nearer to name; among equally near
// ones the least deep wins, and of those the first.
func (c *candidate) searchBelow(k *key, path, name string) {
	for _, child := range k.keys {
		childPath := joinPath(path, child.name)
		cost, depth := nameCost(name, child.name), strings.Count(childPath, ".")
		if cost < c.cost || cost == c.cost && c.path != "" && depth < c.depth {
			*c = candidate{childPath, cost, depth}
		}
		if child.kind == kindItems {
			childPath += "[]"
		}
		c.searchBelow(child, childPath, name)
	}
}

// nameCost returns the distance of two names. A missing _file, _env or _timeout costs one letter,
// not five: password means password_file.
func nameCost(name, known string) int {
	cost := naming.Distance(name, known)
	if i := strings.LastIndexByte(known, '_'); i > 0 {
		cost = min(cost, naming.Distance(name, known[:i])+1)
	}
	return cost
}

// nearestWord returns the word that is probably meant by text, or "".
func nearestWord(text string, words []string) string {
	return naming.Nearest(strings.ToLower(strings.ReplaceAll(text, "-", "_")), words)
}
