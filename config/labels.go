package config

import (
	"fmt"

	"hooklock/idem/naming"
)

// Labels are templates by the names of the labels. An empty template stands for none.
type Labels map[string]string

// Used returns the labels that have a template, sorted by name.
func (l Labels) Used() []naming.LabelSpec {
	used := make([]naming.LabelSpec, 0, len(l))
	for _, name := range sortedKeys(l) {
		if l[name] != "" {
			used = append(used, naming.LabelSpec{Name: name, Template: l[name]})
		}
	}
	return used
}

const maxLabelName = 32

// checkLabelName refuses names that a search or a variable could not contain.
func checkLabelName(name string) error {
	if name == "" || len(name) > maxLabelName || !madeOf(name, lowerCase+digits+"-_") {
		return fmt.Errorf("%q: a label's name is 1 to %d of a-z, 0-9, - and _", name, maxLabelName)
	}
	return nil
}
