package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"hooklock/idem"
)

// Changes lists what differs between two configurations: settings that need a restart, such as
// "listen.address", and those that a reload takes over, such as "route stripe: lock.max_duration".
// A route is identified by its name. Both are empty if nothing differs.
func Changes(before, after *Config) (restart, reload []string) {
	for _, d := range differentSettings(rootKey().keys, before.withoutLists(), after.withoutLists()) {
		if d.setting.reload {
			reload = append(reload, d.path)
		} else {
			restart = append(restart, d.path)
		}
	}
	if before.Etcd.Password != after.Etcd.Password {
		restart = append(restart, "etcd.password")
	}
	was, is := &before.ParkStore, &after.ParkStore
	if was.Keys != is.Keys {
		reload = append(reload, "park_store.keys")
	}
	if was.S3.AccessKey != is.S3.AccessKey || was.S3.SecretKey != is.S3.SecretKey {
		reload = append(reload, "park_store.s3.keys")
	}
	if before.Notify.URL != after.Notify.URL {
		reload = append(reload, "notify.url")
	}
	reload = append(reload, tokenChanges(before.Admin.Tokens, after.Admin.Tokens)...)
	routeRestart, routeReload := routeChanges(before.Routes, after.Routes)
	return append(restart, routeRestart...), append(reload, routeReload...)
}

// tokenChanges lists what a reload takes over; a token is identified by its name, and the order of
// tokens means nothing.
func tokenChanges(before, after []Token) (reload []string) {
	old := map[string]*Token{}
	for i := range before {
		old[before[i].Name] = &before[i]
	}
	for i := range after {
		t := &after[i]
		was, found := old[t.Name]
		delete(old, t.Name)
		switch {
		case !found:
			reload = append(reload, fmt.Sprintf("token %s: added", t.Name))
		case !reflect.DeepEqual(was, t):
			reload = append(reload, fmt.Sprintf("token %s: changed", t.Name))
		}
	}
	for _, name := range sortedKeys(old) {
		reload = append(reload, fmt.Sprintf("token %s: removed", name))
	}
	return reload
}

func routeChanges(before, after []Route) (restart, reload []string) {
	old := map[string]*Route{}
	for i := range before {
		old[before[i].Name] = &before[i]
	}
	var kept []string
	settings, _ := rootKey().findChild("routes")
	for i := range after {
		r := &after[i]
		was, found := old[r.Name]
		if !found {
			reload = append(reload, fmt.Sprintf("route %s: added", r.Name))
			continue
		}
		kept = append(kept, r.Name)
		toRestart, toReload := changesOf(was, r, settings.keys)
		restart, reload = append(restart, toRestart...), append(reload, toReload...)
	}
	var order []string
	for i := range before {
		if slices.Contains(kept, before[i].Name) {
			order = append(order, before[i].Name)
		} else {
			reload = append(reload, fmt.Sprintf("route %s: removed", before[i].Name))
		}
	}
	if strings.Join(order, " ") != strings.Join(kept, " ") {
		reload = append(reload, "routes: order")
	}
	return restart, reload
}

// changesOf lists the settings of one route that differ.
func changesOf(was, r *Route, settings []*key) (restart, reload []string) {
	if !slices.Equal(was.Verify.Secrets, r.Verify.Secrets) ||
		!slices.Equal(was.Verify.PublicKeys, r.Verify.PublicKeys) {
		reload = append(reload, fmt.Sprintf("route %s: secrets of verify", r.Name))
	}
	if was.Ask.Authorization != r.Ask.Authorization {
		reload = append(reload, fmt.Sprintf("route %s: authorization of ask", r.Name))
	}
	if was.Handshake.Token != r.Handshake.Token {
		reload = append(reload, fmt.Sprintf("route %s: token of handshake", r.Name))
	}
	for _, d := range differentSettings(settings, *was, *r) {
		text := fmt.Sprintf("route %s: %s", r.Name, d.path)
		// Under none the lock covers the event, else the workflow. Two processes that disagree see
		// each other's claims, because their requests reach etcd one after the other. One process
		// sends many in one request, so all of it must have one strategy. With a lock.limit the
		// sender keeps the two locks apart.
		if d.path == "lock.strategy" && (was.Lock.Strategy == idem.NoLock || r.Lock.Strategy == idem.NoLock) {
			restart = append(restart, fmt.Sprintf("%s (from %s to %s)", text, was.Lock.Strategy, r.Lock.Strategy))
		} else {
			reload = append(reload, text)
		}
	}
	return restart, reload
}

// withoutLists returns c without its tokens and routes, which are identified by their names.
func (c *Config) withoutLists() Config {
	rest := *c
	rest.Admin.Tokens, rest.Routes = nil, nil
	return rest
}

// difference is a setting that two configurations give different values, and its path in the file.
type difference struct {
	setting *key
	path    string
}

// differentSettings returns the settings in which two structs differ that have keys.
func differentSettings(keys []*key, a, b any) (found []difference) {
	group := &key{kind: kindGroup, keys: keys}
	values := map[string]any{}
	eachValue(group, "", reflect.ValueOf(b), func(_ *key, path string, v reflect.Value) {
		values[path] = v.Interface()
	})
	eachValue(group, "", reflect.ValueOf(a), func(setting *key, path string, v reflect.Value) {
		if !reflect.DeepEqual(v.Interface(), values[path]) {
			found = append(found, difference{setting, path})
		}
	})
	return found
}
