package config

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"hooklock/idem"
)

func TestChangesTellWhatNeedsARestart(t *testing.T) {
	base := func() *Config {
		return load(t,
			"routes: [{name: a, path: /a}, {name: b, path: /b}, {name: c, path: /c}]\nadmin: {tokens: [{name: ops, token_file: /nonexistent/x}]}").Config
	}
	for name, c := range map[string]struct {
		change          func(*Config)
		restart, reload []string
	}{
		"nothing": {func(*Config) {}, nil, nil},
		"listener": {func(c *Config) {
			c.Listen.Address = ":1"
			c.Listen.TLS.CertFile = "x"
		}, []string{"listen.address", "listen.tls.cert_file"}, nil},
		"upstream": {func(c *Config) { c.Upstream.Timeout++ }, []string{"upstream.timeout"}, nil},
		"limits": {func(c *Config) {
			c.Limits.Waiting++
			c.Limits.RequestBody++
			c.Limits.IdleTimeout++
		}, []string{"limits.idle_timeout"}, []string{"limits.request_body", "limits.waiting"}},
		"secret":    {func(c *Config) { c.Etcd.Password = newSecret("x") }, []string{"etcd.password"}, nil},
		"endpoints": {func(c *Config) { c.Etcd.Endpoints = []string{"a:1"} }, []string{"etcd.endpoints"}, nil},
		"setting of route": {func(c *Config) {
			c.Routes[1].Lock.MaxDuration++
			c.Routes[1].Respond = map[string]int{"locked": 503}
		}, nil, []string{"route b: lock.max_duration", "route b: respond"}},
		"strategy": {func(c *Config) {
			c.Routes[0].Lock.Strategy = idem.Wait
		}, nil, []string{"route a: lock.strategy"}},
		"strategy to none": {func(c *Config) {
			c.Routes[0].Lock.Strategy = idem.NoLock
		}, []string{"route a: lock.strategy (from fail_fast to none)"}, nil},
		"route added": {func(c *Config) {
			c.Routes = append(c.Routes, Route{Name: "d"})
		}, nil, []string{"route d: added"}},
		"route removed": {func(c *Config) { c.Routes = c.Routes[1:] }, nil, []string{"route a: removed"}},
		"route renamed": {func(c *Config) {
			c.Routes[2].Name = "d"
		}, nil, []string{"route d: added", "route c: removed"}},
		"order": {func(c *Config) {
			c.Routes[0], c.Routes[1] = c.Routes[1], c.Routes[0]
		}, nil, []string{"routes: order"}},
		"new one as none": {func(c *Config) {
			c.Routes = append(c.Routes, Route{Name: "d", Lock: Lock{Strategy: idem.NoLock}})
		}, nil, []string{"route d: added"}},
		"hold": {func(c *Config) { c.Routes[0].Hold.TTL++ }, nil, []string{"route a: hold.ttl"}},
		"admin listener": {func(c *Config) {
			c.Admin.Listen = ":1"
			c.Admin.TLS.ClientCAFile = "x"
		}, []string{"admin.listen", "admin.tls.client_ca_file"}, nil},
		"admin hosts": {func(c *Config) { c.Admin.Hosts = []string{"h"} }, nil, []string{"admin.hosts"}},
		"token": {func(c *Config) {
			c.Admin.Tokens[0].Scopes = []Scope{ScopeWrite}
		}, nil, []string{"token ops: changed"}},
		"token's text": {func(c *Config) {
			c.Admin.Tokens[0].Token = newSecret("x")
		}, nil, []string{"token ops: changed"}},
		"token renamed": {func(c *Config) {
			c.Admin.Tokens[0].Name = "dev"
		}, nil, []string{"token dev: added", "token ops: removed"}},
		"handshake token": {func(c *Config) {
			c.Routes[1].Handshake.Token = newSecret("x")
		}, nil, []string{"route b: token of handshake"}},
		"place of bodies": {func(c *Config) {
			c.ParkStore.Inline++
			c.ParkStore.S3.Bucket = "x"
		}, []string{"park_store.inline", "park_store.s3.bucket"}, nil},
		"keys of bodies": {func(c *Config) {
			c.ParkStore.KeyFile = "x"
			c.ParkStore.Keys = newSecret("x")
		}, nil, []string{"park_store.key_file", "park_store.keys"}},
		"keys of S3": {func(c *Config) {
			c.ParkStore.S3.SecretKey = newSecret("x")
		}, nil, []string{"park_store.s3.keys"}},
		"methods and hosts": {func(c *Config) {
			c.Routes[0].Match.Hosts = []string{"h"}
		}, nil, []string{"route a: match.hosts"}},
	} {
		after := base()
		c.change(after)
		restart, reload := Changes(base(), after)
		if !reflect.DeepEqual(restart, c.restart) || !reflect.DeepEqual(reload, c.reload) {
			t.Errorf("%s: restart %q, reload %q", name, restart, reload)
		}
	}
}

func TestThePageOfSettingsNamesWhatAReloadTakesOver(t *testing.T) {
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "A changed file or SIGHUP reloads")
	text, _, _ = strings.Cut(text, "All else needs a restart.")
	var config Config
	eachValue(rootKey(), "", reflect.ValueOf(config), func(setting *key, path string, _ reflect.Value) {
		group := path[:max(strings.LastIndexByte(path, '.'), 0)]
		named := strings.Contains(text, "`"+path+"`") || strings.Contains(text, "`"+group+".*`")
		if setting.reload && !setting.ofSecret && !named {
			t.Errorf("docs/configuration.md does not say that a reload takes %s over", path)
		}
		if !setting.reload && named {
			t.Errorf("docs/configuration.md says that a reload takes %s over", path)
		}
	})
}
