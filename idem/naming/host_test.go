package naming

import "testing"

func TestAHostWithItsDefaultPortOrAFinalDotIsTheSameHost(t *testing.T) {
	keys := mustKeys(t, KeySpec{Route: "r", Workflow: "{host}", Missing: MissingPayload})
	name := func(host string) Names {
		m := &Message{Method: []byte("POST"), Host: []byte(host), Path: []byte("/"), Body: []byte("{}")}
		names, err := keys.Name(m)
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	for host, spellings := range map[string][]string{
		"hooks.example.com": {"Hooks.Example.com", "hooks.example.com.", "hooks.example.com:443",
			"hooks.example.com.:80", "hooks.example.com:"},
		"hooks.example.com:8443": {"hooks.example.com.:8443"},
		"[2001:db8::1]":          {"[2001:DB8::1]:443", "[2001:db8::1]:80"},
		"[2001:db8::1]:8443":     nil,
		"example.com":            {"example.com:443"},
	} {
		want := name(host)
		if want.Workflow != host {
			t.Errorf("%s is named %s", host, want.Workflow)
		}
		for _, spelled := range spellings {
			if got := name(spelled); got.Key != want.Key || got.Fingerprint != want.Fingerprint ||
				got.Parts != want.Parts || got.Workflow != host {
				t.Errorf("%s is another host than %s: %+v", spelled, host, got)
			}
		}
	}
	if a, b := name("hooks.example.com"), name("hooks.example.com:8443"); a.Fingerprint == b.Fingerprint {
		t.Error("another port is the same host")
	}
}
