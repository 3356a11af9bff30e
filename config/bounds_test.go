package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// The first and the last value within a bound are taken, and those beside them are not.
func TestBoundsAreWhereTheyAreSaidToBe(t *testing.T) {
	route := func(setting string) string { return "routes: [{name: a, path: /a, " + setting + "}]" }
	prefix := "/" + strings.Repeat("x", 255)
	for path, c := range map[string]struct {
		text           string // with the value
		taken, refused []string
	}{
		"etcd.session_ttl": {"etcd: {session_ttl: %s, request_timeout: 1s}", []string{"2s", "10m"},
			[]string{"1s", "2500ms", "601s"}},
		"etcd.request_timeout": {"etcd: {session_ttl: 3s, request_timeout: %s}",
			[]string{"1ns", "2999ms"}, []string{"0s", "3s"}},
		"etcd.prefix": {"etcd: {prefix: %s}", []string{"/x", prefix},
			[]string{"/", prefix + "x", "/x/", "x/y", "/x//y"}},
		"etcd.embedded.quota": {"etcd: {embedded: {quota: %s}}", []string{"16MiB", "8GiB"},
			[]string{"16777215B", "8589934593B"}},
		"limits.request_body": {"limits: {request_body: %s}", []string{"1B", "1GiB"},
			[]string{"0B", "1073741825B"}},
		"limits.response_body": {"limits: {response_body: %s}", []string{"1B", "1GiB"},
			[]string{"0B", "1073741825B"}},
		"limits.request_header": {"limits: {request_header: %s}", []string{"4KiB", "1MiB"},
			[]string{"4095B", "1048577B"}},
		"limits.suggestions": {"limits: {suggestions: %s}", []string{"0B", "64KiB", "64MiB"},
			[]string{"1B", "67108865B"}},
		"limits.request_buffer": {"limits: {request_buffer: %s}", []string{"1B", "64MiB"},
			[]string{"0B", "67108865B"}},
		"limits.progress": {"limits: {progress: %s}", []string{"1KiB", "1MiB"},
			[]string{"1023B", "1048577B"}},
		"limits.memory": {"limits: {request_body: 3B, memory: %s}", []string{"4B", "1024GiB"},
			[]string{"3B", "1099511627777B"}},
		"limits.max_connections": {"limits: {max_connections: %s}", []string{"1", "1000000"},
			[]string{"0", "1000001"}},
		"limits.waiting": {"limits: {waiting: %s}", []string{"1", "1000000"},
			[]string{"0", "1000001"}},
		"limits.write_timeout": {"limits: {write_timeout: %s}", []string{"1ns"}, []string{"0s", "-1s"}},
		"routes[0].lock.max_waiting": {route("lock: {strategy: wait, max_waiting: %s}"),
			[]string{"1", "1000000"}, []string{"0", "1000001"}},
		"routes[0].idempotency.new_per_second": {route("idempotency: {new_per_second: %s}"), []string{"0", "1000000"},
			[]string{"-1", "1000001"}},
		"routes[0].idempotency.replay_body": {route("idempotency: {replay_body: %s}"), []string{"0B", "512KiB"},
			[]string{"524289B"}},
	} {
		refusal := func(value string) string {
			var problems Problems
			if _, err := Load(Source{Bytes: []byte(fmt.Sprintf(c.text, value))}); errors.As(err, &problems) {
				for _, p := range problems {
					if p.Path == path {
						return p.Text
					}
				}
			}
			return ""
		}
		for _, value := range c.taken {
			if said := refusal(value); said != "" {
				t.Errorf("%s: %.40s is refused: %s", path, value, said)
			}
		}
		for _, value := range c.refused {
			if refusal(value) == "" {
				t.Errorf("%s: %.40s is taken", path, value)
			}
		}
	}
}
