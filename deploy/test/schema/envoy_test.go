package schema

import (
	"strings"
	"testing"

	"hooklock/deploy/test/kit"
)

func TestEnvoysFileIsWhatItsProtosAllow(t *testing.T) {
	if err := CheckEnvoy(kit.Read(t, kit.Deploy("envoy/envoy.yaml"))); err != nil {
		t.Error(err)
	}
}

func TestMistakesInEnvoysFileAreSeen(t *testing.T) {
	text := kit.Read(t, kit.Deploy("envoy/envoy.yaml"))
	for from, to := range map[string]string{
		"timeout: 60s":              "timeoutz: 60s",
		"max_request_bytes: 16":     "max_request_bytes: -16",
		"port_value: 8080":          "port_value: 80800", // a rule, outside of an Any
		"max_request_bytes: 1677":   "#max_request_bytes: ",
		"stat_prefix: webhooks":     "stat_prefix: \"\"", // a rule, inside of one
		"filters.http.buffer.v3.Bu": "filters.http.buffer.v9.Bu",
	} {
		if !strings.Contains(text, from) {
			t.Errorf("%q is not in the file", from)
		}
		if CheckEnvoy(strings.Replace(text, from, to, 1)) == nil {
			t.Errorf("%s instead of %s was not seen", to, from)
		}
	}
}
