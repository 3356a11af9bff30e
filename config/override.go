package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// envPrefix begins the environment variables that are settings. Its underscores are doubled because
// Kubernetes makes variables such as HOOKLOCK_PORT for every Service named hooklock.
const envPrefix = "HOOKLOCK__"

// overrideAll reads HOOKLOCK__ETCD__ENDPOINTS=a,b and HOOKLOCK__ROUTES__0__WORKFLOW=… from environ,
// which has the form of os.Environ.
func (r *reading) overrideAll(environ []string) {
	for _, variable := range slices.Sorted(slices.Values(environ)) {
		name, text, _ := strings.Cut(variable, "=")
		if path, is := strings.CutPrefix(name, envPrefix); is {
			r.setFromText(rootKey(), "", strings.Split(strings.ToLower(path), "__"), text,
				Origin{Kind: FromEnvironment, Name: name})
		}
	}
}

// setFromText sets one value from text. names lead to it from k, which is at path.
func (r *reading) setFromText(k *key, path string, names []string, text string, at Origin) {
	switch {
	case len(names) == 0 && k.short != "":
		short, _ := k.findChild(k.short)
		r.overrideValue(short, joinPath(path, k.short), text, at)
	case len(names) == 0:
		r.overrideValue(k, path, text, at)
	case k.kind == kindItems:
		r.overrideItem(k, path, names, text, at)
	case k.kind == kindEntries && len(names) == 1:
		if entry, err := k.entryKey(names[0]); err != nil {
			r.refuse(at, joinPath(path, names[0]), "%s", err)
		} else {
			r.overrideValue(entry, joinPath(path, names[0]), text, at)
		}
	case k.isLeaf():
		r.refuse(at, path, "has no settings inside, so %q means nothing", strings.Join(names, "."))
	default:
		child, via := k.findChild(names[0])
		if child == nil {
			r.refuseUnknown(at, k, path, names[0])
			return
		}
		if via != nil {
			path = joinPath(path, via.name)
		}
		r.setFromText(child, joinPath(path, names[0]), names[1:], text, at)
	}
}

// overrideItem is override from a list, whose item the first name numbers.
func (r *reading) overrideItem(k *key, path string, names []string, text string, at Origin) {
	number, err := parseDigits(names[0])
	if err != nil || len(names[0]) > 4 {
		r.refuse(at, path, "%q is not a number; the first of %s is 0", names[0], path)
		return
	}
	r.addItem(path, int(number), at)
	path = indexedPath(path, int(number))
	if len(names) == 1 {
		r.overrideValue(k, path, text, at)
	} else {
		r.setFromText(&key{kind: kindGroup, keys: k.keys}, path, names[1:], text, at)
	}
}

func (r *reading) overrideValue(k *key, path, text string, at Origin) {
	if k.empty != "" && strings.TrimSpace(text) == "" {
		r.refuse(at, path, "the variable is empty, and %s: give it a value, or do not set it", k.empty)
		return
	}
	var value any
	var err error
	switch k.kind {
	case kindTexts, kindChoices, kindStatuses:
		items := splitList(text)
		if len(items) == 0 && strings.Contains(text, ",") {
			r.refuse(at, path, "there is nothing between its commas; name the items between them, or do not set the "+
				"variable")
			return
		}
		if len(items) > maxItems {
			r.refuse(at, path, "has %d items; at most %d are read", len(items), maxItems)
			return
		}
		values, wrong := make([]any, 0, len(items)), false
		for _, item := range items {
			one, err := k.parseItem(item)
			if err != nil {
				r.refuse(at, path, "%s", err)
				wrong = true
			}
			values = append(values, one)
		}
		if wrong {
			return
		}
		value = values
	case kindItems:
		err = errors.New("cannot be set as a whole; name one of them by its number, from 0, and one of its settings")
	case kindCounts, kindMembers:
		err = errors.New("is read from the file alone, because its names are not those of variables")
	case kindEntries:
		err = errors.New("cannot be set as a whole; name one of its entries: " + k.exampleValue())
	case kindGroup:
		err = fmt.Errorf("cannot be set as a whole; name one of its settings: %s", k.childNames())
	default:
		value, err = k.parseScalar(text)
		value, err = r.orLargest(path, value, err)
	}
	if err != nil {
		r.refuse(at, path, "%s", err)
		return
	}
	r.setValue(path, value, at)
}
