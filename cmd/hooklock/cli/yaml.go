package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// YAML converts a JSON text of the server to YAML, in the same order. Characters that are not
// printable become YAML escapes.
func YAML(raw []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil { // JSON is YAML
		return nil, fmt.Errorf("read the answer as YAML: %w", err)
	}
	setStyle(&doc)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&doc); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	var text strings.Builder
	for line := range strings.Lines(out.String()) {
		text.WriteString(Plain(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return []byte(text.String()), nil
}

// setStyle sets the block style for collections, and plain style for texts that need no quotes.
func setStyle(n *yaml.Node) {
	switch {
	case n.Kind != yaml.ScalarNode:
		n.Style = 0
	case n.Tag == "!!str" && strings.ContainsFunc(n.Value, Odd):
		n.Style = yaml.DoubleQuotedStyle // in which Plain's escapes are valid
	case n.Tag == "!!str":
		n.Style = 0
		n.SetString(n.Value)
	default:
		n.Style = 0
	}
	for _, child := range n.Content {
		setStyle(child)
	}
}

// PrintYAML prints one object.
func PrintYAML(out io.Writer, raw []byte) error {
	text, err := YAML(raw)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}
