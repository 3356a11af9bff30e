package config

import (
	"strings"
	"testing"
)

func TestVariablesThatAreNearlySettingsAreWarnedAbout(t *testing.T) {
	for name, right := range map[string]string{
		"HOOKLOCK_ETCD_ENDPOINTS":          "HOOKLOCK__ETCD__ENDPOINTS",
		"HOOKLOCK_ETCD__ENDPOINTS":         "HOOKLOCK__ETCD__ENDPOINTS",
		"hooklock__etcd__endpoints":        "HOOKLOCK__ETCD__ENDPOINTS",
		"HOOKLOCK_UPSTREAM":                "HOOKLOCK__UPSTREAM",
		"HOOKLOCK_LISTEN":                  "HOOKLOCK__LISTEN",
		"HOOKLOCK_LIMITS_REQUEST_BODY":     "HOOKLOCK__LIMITS__REQUEST_BODY",
		"HOOKLOCK_ROUTES_12_WORKFLOW":      "HOOKLOCK__ROUTES__12__WORKFLOW",
		"HOOKLOCK_ROUTES_1_PATH":           "HOOKLOCK__ROUTES__1__PATH",
		"HOOKLOCK_ADMIN_TOKENS_0_NAME":     "HOOKLOCK__ADMIN__TOKENS__0__NAME",
		"HOOKLOCK_ETCD_PASSWORD_FILE":      "HOOKLOCK__ETCD__PASSWORD_FILE",
		"HOOKLOCK_ROUTES_0_RESPOND_LOCKED": "", // its last part is no setting's name
		// What commands read, and what Kubernetes makes for a Service named hooklock.
		"HOOKLOCK_ADMIN": "", "HOOKLOCK_TOKEN_FILE": "", "HOOKLOCK_PORT": "", "HOOKLOCK_SERVICE_HOST": "",
		"HOOKLOCK_SERVICE_PORT":  "",
		"HOOKLOCK_PORT_8080_TCP": "", "HOOKLOCK_PORT_8080_TCP_ADDR": "", "HOOKLOCK_PORT_8080_TCP_PROTO": "",
		"HOOKLOCK_SERVICE_PORT_HTTP": "", "PATH": "",
		"HOOKLOCK__SHUTDOWN_DELAY": "", // is a setting
	} {
		found := nearMisses([]string{name + "=1s"})
		switch {
		case right == "" && len(found) > 0:
			t.Errorf("%s: %v", name, found)
		case right != "" && (len(found) != 1 || !strings.HasSuffix(found[0].Text, "did you mean "+right+"?") ||
			!strings.HasPrefix(found[0].String(), "environment "+name+": is not read")):
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestALoadWarnsAboutThem(t *testing.T) {
	loaded, err := Load(Source{Env: []string{"HOOKLOCK_ETCD_ENDPOINTS=http://etcd:2379"}, Senders: someSenders()})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(loaded.Warnings.Error(), "did you mean HOOKLOCK__ETCD__ENDPOINTS?") ||
		len(loaded.Config.Etcd.Endpoints) != 0 {
		t.Errorf("%v", loaded.Warnings)
	}
}
