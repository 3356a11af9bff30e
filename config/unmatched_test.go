package config

import (
	"strings"
	"testing"
)

func TestUnmatchedIsRejectAsSoonAsARouteTurnsForgeriesAway(t *testing.T) {
	const plain, signed, watched = `  - {name: a, path: /a}`,
		`  - {name: b, path: /b, verify: {scheme: token, header: X, secret_env: S}}`,
		`  - {name: c, path: /c, mode: observe, verify: {scheme: token, header: X, secret_env: S}}`
	for _, c := range []struct {
		sentence, top, routes string
		want                  Unmatched
		note, warning         string
	}{
		{"no route", "", "", UnmatchedPass, "", ""},
		{"no signature", "", plain, UnmatchedPass, "", ""},
		{"one signature", "", plain + "\n" + signed, UnmatchedReject, "routes[1] (b)", ""},
		{"a signature that is only observed", "", watched, UnmatchedPass, "routes[0] (c)", ""},
		{"both", "", watched + "\n" + signed, UnmatchedReject, "routes[1] (b)", ""},
		{"said: pass", "unmatched: pass", signed, UnmatchedPass, "", "routes[0] (b)"},
		{"said: reject", "unmatched: reject", signed, UnmatchedReject, "", ""},
		{"said without need", "unmatched: pass", plain, UnmatchedPass, "", ""},
		{"said while it is observed", "unmatched: pass", watched, UnmatchedPass, "", ""},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			loaded, err := Load(Source{Bytes: []byte(c.top + "\nroutes:\n" + c.routes), Env: []string{"S=s"},
				Senders: Senders{Schemes: []Known{{Name: "token"}}}})
			if err != nil {
				t.Fatal(err)
			}
			said := func(ps Problems) (text string) {
				for _, p := range ps {
					if p.Path == "unmatched" {
						text += p.Text
					}
				}
				return text
			}
			if note := said(loaded.Notes); loaded.Config.Unmatched != c.want || (note != "") != (c.note != "") ||
				!strings.Contains(note, c.note) {
				t.Errorf("%s, note %q", loaded.Config.Unmatched, note)
			}
			if warning := said(loaded.Warnings); (warning != "") != (c.warning != "") ||
				!strings.Contains(warning, c.warning) {
				t.Errorf("warning %q", warning)
			}
		})
	}
}
