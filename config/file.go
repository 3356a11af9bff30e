package config

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds the file, maxNodes the values in it once aliases are followed. maxItems routes
// with every setting need half of either.
const (
	maxFile  = 4 << 20
	maxNodes = 200_000
	maxItems = 1000 // of one list
)

// fileParser reads sidecar.yaml more strictly than a parser of koanf would, and keeps where each
// value stands.
type fileParser struct {
	*reading
	name  string
	lines []string // of the file, without their ends
	nodes int
}

// readDocument reads one YAML or JSON document.
func (f *fileParser) readDocument(text []byte) {
	if root := f.parseMapping(text); root != nil {
		f.readGroup(rootKey(), "", root)
	}
}

// parseMapping returns the top mapping, or nil if there is none.
func (f *fileParser) parseMapping(text []byte) *yaml.Node {
	if len(text) > maxFile {
		f.refuse(f.originOf(nil), "", "larger than %d MiB", maxFile>>20)
		return nil
	}
	f.lines = splitLines(text)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if !errors.Is(err, io.EOF) {
			f.reportSyntax(err)
		}
		return nil
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		f.refuse(f.originOf(&second), "", "a second document begins here; one file holds one configuration")
	case !errors.Is(err, io.EOF):
		f.reportSyntax(err)
	}
	if key := strangeKey(&document); key != nil {
		r, _ := utf8.DecodeRuneInString(key.Value)
		f.refuse(f.originOf(key), "", "not valid YAML: %s", describeStrange(r))
		return nil
	}
	return document.Content[0]
}

func (f *fileParser) originOf(n *yaml.Node) Origin {
	at := Origin{Kind: FromFile, Name: f.name}
	if n != nil {
		at.Line, at.Column = n.Line, n.Column
	}
	return at
}

// followAlias follows an alias. It returns nil when the budget of values is used up: a few lines of
// aliases to aliases can stand for billions of values.
func (f *fileParser) followAlias(n *yaml.Node) *yaml.Node {
	f.nodes++
	if f.nodes > maxNodes {
		if f.nodes == maxNodes+1 {
			f.refuse(f.originOf(n), "", "more than %d values", maxNodes)
		}
		return nil
	}
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// readGroup reads a mapping with the keys of k.
func (f *fileParser) readGroup(k *key, path string, n *yaml.Node) {
	if n = f.followAlias(n); n == nil || isNull(n) {
		return // every setting below is commented out
	}
	if k.short != "" && n.Kind == yaml.ScalarNode {
		child, _ := k.findChild(k.short)
		f.readValue(child, joinPath(path, k.short), n)
		return
	}
	if n.Kind != yaml.MappingNode {
		f.refuse(f.originOf(n), path, "needs a mapping with %s", k.childNames())
		return
	}
	// a block that is present is on; idempotency, which is on anyway, is a preset's to switch off
	if k.short == "enabled" && !hasKey(n, k.short) {
		on, _ := k.findChild(k.short)
		f.readValue(on, joinPath(path, on.name),
			&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true", Line: n.Line,
				Column: n.Column})
	}
	f.eachPair(n, path, func(name string, keyNode, value *yaml.Node) {
		child, via := k.findChild(name)
		switch {
		case child == nil:
			f.refuseUnknown(f.originOf(keyNode), k, path, name)
		case via != nil:
			f.readValue(child, joinPath(joinPath(path, via.name), name), value)
		default:
			childPath := joinPath(path, name)
			if !child.isLeaf() {
				f.places[childPath] = f.originOf(keyNode)
			}
			f.readValue(child, childPath, value)
		}
	})
}

// hasKey reports whether a mapping has a key of that name.
func hasKey(n *yaml.Node, name string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return true
		}
	}
	return false
}

// eachPair calls each for every key of a mapping that is a plain word and occurs once.
func (f *fileParser) eachPair(n *yaml.Node, path string, each func(name string, keyNode, value *yaml.Node)) {
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		keyNode, value := n.Content[i], n.Content[i+1]
		name := keyNode.Value
		switch line := lines[name]; {
		case keyNode.Kind != yaml.ScalarNode:
			f.refuse(f.originOf(keyNode), path, "a key must be a word")
		case keyNode.ShortTag() == "!!merge":
			f.refuse(f.originOf(keyNode), path,
				"merge keys (<<) are not supported; an alias can stand for a whole value")
		case line > 0:
			f.refuse(f.originOf(keyNode), joinPath(path, name), "given twice, first in line %d", line)
		default:
			lines[name] = keyNode.Line
			if f.refuseStrange(keyNode, joinPath(path, name)) {
				name = withoutQuoteMarks(name)
			}
			each(name, keyNode, value)
		}
	}
}

// readValue reads a value of k.
func (f *fileParser) readValue(k *key, path string, n *yaml.Node) {
	switch k.kind {
	case kindGroup:
		f.readGroup(k, path, n)
	case kindItems:
		f.readItems(k, path, n)
	case kindTexts, kindChoices, kindStatuses:
		f.readList(k, path, n)
	case kindEntries:
		f.readEntries(k, path, n)
	case kindCounts:
		f.readCounts(k, path, n)
	case kindMembers:
		f.readMembers(k, path, n)
	default:
		f.readScalar(k, path, n)
	}
}

func (f *fileParser) readItems(k *key, path string, n *yaml.Node) {
	if n = f.followAlias(n); n == nil || isNull(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		f.refuse(f.originOf(n), path, "needs %s", k.exampleValue())
		return
	}
	if len(n.Content) > maxItems {
		f.refuse(f.originOf(n), path, "has %d items; at most %d are read", len(n.Content), maxItems)
		return
	}
	for i, item := range n.Content {
		f.addItem(path, i, f.originOf(item))
		f.places[indexedPath(path, i)] = f.originOf(item)
		f.readGroup(k, indexedPath(path, i), item)
	}
}

func (f *fileParser) readEntries(k *key, path string, n *yaml.Node) {
	if n = f.followAlias(n); n == nil || isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		f.refuse(f.originOf(n), path, "needs %s", k.exampleValue())
		return
	}
	f.eachPair(n, path, func(name string, keyNode, value *yaml.Node) {
		entry, err := k.entryKey(name)
		if err != nil {
			f.refuse(f.originOf(keyNode), joinPath(path, name), "%s", err)
			return
		}
		f.readScalar(entry, joinPath(path, name), value)
	})
}

// readCounts reads k as one value, because its names may have dots.
func (f *fileParser) readCounts(k *key, path string, n *yaml.Node) {
	at, counts := f.originOf(n), map[string]int{}
	whole := f.wholeMap(k, path, n, func(name, entry string, value *yaml.Node) {
		if value.Kind != yaml.ScalarNode || value.ShortTag() != "!!int" && !isHugeInt(value) {
			f.refuse(f.originOf(value), entry, "needs a whole number without quotes, e.g. 20")
			return
		}
		number, err := wholeNumber(value.Value)
		count, err := f.orLargest(entry, number, err)
		if err != nil {
			f.refuse(f.originOf(value), entry, "%s", err)
			return
		}
		counts[name], _ = count.(int)
	})
	if whole {
		f.setValue(path, counts, at)
	}
}

// wholeMap calls visit with each entry of a map that is one value, and returns false if there is no
// map.
func (f *fileParser) wholeMap(k *key, path string, n *yaml.Node,
	visit func(name, entry string, value *yaml.Node)) bool {
	if n = f.followAlias(n); n == nil || isNull(n) {
		return false
	}
	if n.Kind != yaml.MappingNode {
		f.refuse(f.originOf(n), path, "needs %s", k.exampleValue())
		return false
	}
	f.eachPair(n, path, func(name string, keyNode, value *yaml.Node) {
		entry := namedPath(path, name)
		f.places[entry] = f.originOf(keyNode)
		if value = f.followAlias(value); value != nil {
			visit(name, entry, value)
		}
	})
	return true
}

// readMembers reads a map of scalars as their texts.
func (f *fileParser) readMembers(k *key, path string, n *yaml.Node) {
	at, members := f.originOf(n), map[string]string{}
	whole := f.wholeMap(k, path, n, func(name, entry string, value *yaml.Node) {
		if value.Kind != yaml.ScalarNode {
			f.refuse(f.originOf(value), entry,
				"needs a text, a number, true or false; a member inside of another one is "+
					"written data.state")
			return
		}
		members[name] = value.Value
	})
	if whole {
		f.setValue(path, members, at)
	}
}

// readList reads the list at path, and refuses each item that is wrong.
func (f *fileParser) readList(k *key, path string, n *yaml.Node) {
	at := f.originOf(n)
	if n = f.followAlias(n); n == nil {
		return
	}
	n = k.oneAsList(n)
	if n.Kind == yaml.ScalarNode && !isNull(n) {
		f.refuse(f.originOf(n), path, "needs a list: [%s]", k.quotableText(n.Value))
		return
	}
	if n.Kind != yaml.SequenceNode {
		f.refuse(at, path, "needs %s", k.exampleValue())
		return
	}
	if len(n.Content) > maxItems {
		f.refuse(at, path, "has %d items; at most %d are read", len(n.Content), maxItems)
		return
	}
	values := make([]any, 0, len(n.Content))
	for i, written := range n.Content {
		item := f.followAlias(written)
		if item == nil {
			return
		}
		f.places[indexedPath(path, i)] = f.originOf(item)
		if value, ok := f.listItem(k, indexedPath(path, i), item, written); ok {
			values = append(values, value)
		}
	}
	if len(values) < len(n.Content) {
		f.seen[path] = true // the rest of it means nothing
	}
	f.setValue(path, values, at)
}

// listItem returns the value of an item at that path. It refuses the item and returns false if it
// is wrong. item is what written stands for, where that is an alias.
func (f *fileParser) listItem(k *key, path string, item, written *yaml.Node) (any, bool) {
	isStatus := k.kind == kindStatuses && item.ShortTag() == "!!int"
	if item.Kind != yaml.ScalarNode || item.ShortTag() != "!!str" && !isStatus {
		f.refuse(f.originOf(item), path, "%s", cmp.Or(f.quotesNeeded(item), "needs "+k.itemHint(item)))
		return nil, false
	}
	if f.refuseStrange(item, path) {
		return nil, false
	}
	value, err := k.parseItem(item.Value)
	if err != nil {
		f.refuse(f.originOf(written), path, "%s", err)
		return nil, false
	}
	return value, true
}

// oneAsList returns a list of one status where one is usual: of ask.executed and ask.not_executed.
func (k *key) oneAsList(n *yaml.Node) *yaml.Node {
	if k.owner != "Reply" || n.Kind != yaml.ScalarNode || isNull(n) {
		return n
	}
	return &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{n}, Line: n.Line, Column: n.Column}
}

// itemHint says how an item is written.
func (k *key) itemHint(item *yaml.Node) string {
	switch k.kind {
	case kindTexts:
		return k.quoteHint(item)
	case kindChoices:
		return "one of " + strings.Join(k.choices, ", ")
	}
	return "a status, e.g. 2xx, 404 or 200-299"
}

// scalarTags are the YAML types that a kind is read from. Others are refused rather than converted:
// `1` is not "1".
var scalarTags = map[kind]string{
	kindText: "!!str", kindChoice: "!!str", kindDuration: "!!str", kindSize: "!!str",
	kindInt: "!!int", kindBool: "!!bool",
}

func (f *fileParser) readScalar(k *key, path string, n *yaml.Node) {
	at := f.originOf(n)
	if n = f.followAlias(n); n == nil {
		return
	}
	tag := n.ShortTag()
	number := tag == "!!int" || tag == "!!float"
	switch {
	case isNull(n):
		f.refuse(at, path, "has no value; give one, or remove the line")
		return
	case n.Kind != yaml.ScalarNode:
		f.refuse(at, path, "%s", cmp.Or(f.quotesNeeded(n), "needs "+k.exampleValue()))
		return
	case number && (k.kind == kindDuration || k.kind == kindSize), k.kind == kindInt && isHugeInt(n):
		// Goes on to the parser, which knows the hint about the missing unit. YAML takes a huge
		// number for a float.
	case tag == "!!bool" && k.kind == kindChoice && slices.Contains(k.choices, n.Value):
		// auto, true or false: YAML takes two of the words for a boolean.
	case tag != scalarTags[k.kind]:
		if k.kind == kindText {
			f.refuse(at, path, "needs %s", k.quoteHint(n))
		} else {
			f.refuse(at, path, "needs %s", k.exampleValue())
		}
		return
	}
	if f.refuseStrange(n, path) {
		return
	}
	value, err := k.parseScalar(n.Value)
	value, err = f.orLargest(path, value, err)
	if err != nil {
		f.refuse(at, path, "%s", err)
		return
	}
	f.setValue(path, value, at)
}

// isHugeInt reports whether n is a whole number that YAML takes for a float, because it is so
// large.
func isHugeInt(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!float" && madeOf(n.Value, digits)
}

// quoteHint says how to write as text what YAML took for another type.
func (k *key) quoteHint(n *yaml.Node) string {
	switch {
	case n.Kind != yaml.ScalarNode || n.Value == "":
		return "text"
	case k.ofSecret:
		return "text in quotes"
	}
	return "text; put it in quotes: " + strconv.Quote(n.Value)
}

// quotableText returns text as a message may quote it.
func (k *key) quotableText(text string) string {
	if k.ofSecret {
		return "…"
	}
	return text
}
