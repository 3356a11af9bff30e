package config

import (
	"regexp"
	"slices"
	"strings"
)

// nearMisses warns about variables of the environment that look like settings but are none, because
// their underscores are not doubled: HOOKLOCK_ETCD_ENDPOINTS. The variables that Kubernetes makes
// for a Service named hooklock are not like any setting.
func nearMisses(environ []string) Problems {
	meant := map[string]string{}
	eachVariable(rootKey(), strings.TrimSuffix(envPrefix, "__"), func(name string) { meant[looseName(name)] = name })
	var warnings Problems
	for _, entry := range slices.Sorted(slices.Values(environ)) {
		name, _, _ := strings.Cut(entry, "=")
		right, found := meant[looseName(name)]
		if !found || strings.HasPrefix(name, envPrefix) {
			continue
		}
		for _, number := range numbers.FindAllString(name, -1) {
			right = strings.Replace(right, anyNumber, number, 1)
		}
		warnings = append(warnings, Problem{
			Origin: Origin{Kind: FromEnvironment, Name: name},
			Text:   "is not read: a setting is in capitals, with doubled underscores; did you mean " + right + "?",
		})
	}
	return warnings
}

// anyNumber stands for the number of an item in a list.
const anyNumber = "0"

var (
	underscores = regexp.MustCompile(`_+`)
	numbers     = regexp.MustCompile(`[0-9]+`)
)

// looseName returns a variable's name without the differences that are easily overlooked.
func looseName(name string) string {
	return numbers.ReplaceAllString(underscores.ReplaceAllString(strings.ToUpper(name), "_"), anyNumber)
}

// eachVariable calls tell with the variable of each setting below k, whose own variable is prefix.
func eachVariable(k *key, prefix string, tell func(name string)) {
	for _, child := range k.keys {
		name := prefix + "__" + strings.ToUpper(child.name)
		switch child.kind { //nolint:exhaustive // the others are leaves
		case kindItems:
			eachVariable(child, name+"__"+anyNumber, tell)
		case kindGroup:
			eachVariable(child, name, tell)
		}
		if child.isLeaf() || child.short != "" {
			tell(name)
		}
		if child.beside != "" {
			tell(prefix + "__" + strings.ToUpper(child.beside))
		}
	}
}
