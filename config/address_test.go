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
		if err := checkDoor(address); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", address, err, says)
		}
	}
}
