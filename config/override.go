package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"
)

// EnvPrefix begins the environment variables that are settings. Its underscores are doubled because Kubernetes makes variables
// such as HOOKLOCK_PORT for every Service named hooklock.
const EnvPrefix = "HOOKLOCK__"

// envProvider reads HOOKLOCK__ETCD__ENDPOINTS=a,b and HOOKLOCK__ROUTES__0__WORKFLOW=… from environ, which has the form of
// os.Environ.
func (r *reading) envProvider(environ []string) koanf.Provider {
	sorted := slices.Sorted(slices.Values(environ))
	return env.Provider(".", env.Opt{
		Prefix:      EnvPrefix,
		EnvironFunc: func() []string { return sorted },
		TransformFunc: func(name, text string) (string, any) {
			segments := strings.Split(strings.ToLower(strings.TrimPrefix(name, EnvPrefix)), "__")
			path := koanfPath(r.override(segments, text, Origin{Kind: FromEnvironment, Name: name}))
			return path, r.values[path]
		},
	})
}

// override sets one value from text and returns its path, or nothing if it is refused.
func (r *reading) override(segments []string, text string, at Origin) string {
	k, path := rootKey(), ""
	for i := 0; i < len(segments); i++ {
		name := segments[i]
		child, via := k.child(name)
		if child == nil {
			r.refuseUnknown(at, k, path, name)
			return ""
		}
		if via != nil {
			path = join(path, via.name)
		}
		k, path = child, join(path, name)
		if k.kind == kindItems && i+1 < len(segments) {
			i++
			number, err := parseDigits(segments[i])
			if err != nil || len(segments[i]) > 4 {
				r.refuse(at, path, "%q is not a number; the first of %s is 0", segments[i], path)
				return ""
			}
			r.addItem(path, int(number), at)
			path = indexed(path, int(number))
			if i+1 == len(segments) {
				break
			}
			continue
		}
		if k.kind == kindRespond && i+2 == len(segments) {
			name = segments[i+1]
			if err := checkDecision(name); err != nil {
				r.refuse(at, join(path, name), "%s", err)
				return ""
			}
			return r.overrideValue(statusKey(), join(path, name), text, at)
		}
		if k.leaf() && i+1 < len(segments) {
			r.refuse(at, path, "has no settings inside, so %q means nothing", strings.Join(segments[i+1:], "."))
			return ""
		}
	}
	if k.short != "" {
		path = join(path, k.short)
		k, _ = k.child(k.short)
	}
	return r.overrideValue(k, path, text, at)
}

func (r *reading) overrideValue(k *key, path, text string, at Origin) string {
	var value any
	var err error
	switch k.kind {
	case kindTexts, kindChoices, kindStatuses:
		items := splitList(text)
		if len(items) > maxItems {
			r.refuse(at, path, "has %d items; at most %d are read", len(items), maxItems)
			return ""
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
			return ""
		}
		value = values
	case kindItems:
		err = errors.New("cannot be set as a whole; name one of them by its number, from 0, and one of its settings")
	case kindRespond:
		err = errors.New("cannot be set as a whole; name a decision, such as locked")
	case kindGroup:
		err = fmt.Errorf("cannot be set as a whole; name one of its settings: %s", k.names())
	default:
		value, err = k.parseScalar(text)
	}
	if err != nil {
		r.refuse(at, path, "%s", err)
		return ""
	}
	if !r.set(path, value, at) {
		return ""
	}
	return path
}

// statusKey is the key of one entry of respond.
func statusKey() *key { return &key{kind: kindInt} }
