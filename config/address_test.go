package config

import (
	"strings"
	"testing"
)

func TestTheDoorIsAnAddressOrASocket(t *testing.T) {
	for address, says := range map[string]string{
		"127.0.0.1:8080": "", ":0": "", "unix:///run/hooklock/hooklock.sock": "", "unix:///run/a b": "",
		"unix://" + strings.Repeat("/x", 51): "",
		"unix://" + strings.Repeat("/x", 52): "at most 103 bytes",
		"unix://run/x.sock":                  "whole path",
		"unix:///run/":                       "whole path",
		"unix://":                            "whole path",
		"unix:///run/x\x00y":                 "whole path",
		"/run/x.sock":                        "write host:port",
	} {
		if err := checkDoor(address); (err == nil) != (says == "") ||
			err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", address, err, says)
		}
	}
}

func TestHooklockDoesNotCallItself(t *testing.T) {
	for _, c := range []struct {
		own, upstream string
		itself        bool
	}{
		{"127.0.0.1:8081", "http://127.0.0.1:8081", true},
		{"127.0.0.1:8081", "http://localhost:8081", true},
		{"127.0.0.1:8081", "http://0.0.0.0:8081", true},
		{"0.0.0.0:8081", "http://127.0.0.1:8081", true},
		{":8081", "http://localhost:8081", true},
		{"[::]:8081", "http://[::1]:8081", true},
		{":80", "http://127.0.0.1", true},
		{":443", "https://0.0.0.0", true},
		{"10.0.0.5:8081", "http://10.0.0.5:8081", true},
		{"unix:///run/a.sock", "unix:///run/a.sock", true},

		{":8081", "http://app:8081", false},
		{"0.0.0.0:8081", "http://10.0.0.6:8081", false},
		{":8080", "http://127.0.0.1:8081", false},
		{"10.0.0.5:8081", "http://10.0.0.6:8081", false},
		{"10.0.0.5:8081", "http://127.0.0.1:8081", false},
		{"10.0.0.5:8081", "http://0.0.0.0:8081", false},
		{"127.0.0.1:0", "http://127.0.0.1:8081", false},
		{"unix:///run/a.sock", "unix:///run/b.sock", false},
		{"unix:///run/a.sock", "http://127.0.0.1:8081", false},
		{":8081", "unix:///run/a.sock", false},
		{"", "http://127.0.0.1:8081", false},
	} {
		config := Default()
		config.Listen.Address, config.Upstream.URL = c.own, c.upstream
		v := &validator{config: config}
		v.checkUpstream()
		if got := strings.Contains(v.problems.Error(), "call itself"); got != c.itself {
			t.Errorf("listen %q, upstream %q: %s", c.own, c.upstream, v.problems)
		}
	}
}
