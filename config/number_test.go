package config

import (
	"strings"
	"testing"
)

// TestANumberWithAZeroInFrontIsRefused: YAML 1.1 takes 010 for eight and YAML 1.2 for ten,
// so one of the two meanings would be read as the other.
func TestANumberWithAZeroInFrontIsRefused(t *testing.T) {
	const want = "010 begins with a zero, which many readers take for octal; write 10"
	for name, src := range map[string]Source{
		"a setting":     {Bytes: []byte("limits: {waiting: 010}\nroutes: [{name: a, path: /a}]")},
		"a named limit": {Bytes: []byte("limits: {shared: {erp: 010}}\nroutes: [{name: a, path: /a, uses: [erp]}]")},
		"a variable": {Bytes: []byte("routes: [{name: a, path: /a}]"),
			Env: []string{"HOOKLOCK__LIMITS__WAITING=010"}},
	} {
		src.Path = "sidecar.yaml"
		if _, err := Load(src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n, err := wholeNumber("0"); n != 0 || err != nil {
		t.Errorf("0: %d, %v", n, err)
	}
}
