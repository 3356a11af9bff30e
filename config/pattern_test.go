package config

import (
	"testing"

	"hooklock/idem/naming"
)

func scopeOf(m *Match) scope {
	pattern, _ := naming.ParsePattern(m.Path)
	return scope{m, pattern}
}

func TestARouteIsShadowedOnlyIfAnEarlierOneTakesAllOfIt(t *testing.T) {
	post := []string{"POST"}
	both := []string{"POST", "PUT"}
	for _, c := range []struct {
		earlier, later Match
		want           bool
	}{
		{Match{"/a", post, nil}, Match{"/a", post, nil}, true},
		{Match{"/{x}", post, nil}, Match{"/a", post, nil}, true},
		{Match{"/{x...}", post, nil}, Match{"/a/b/{c}", post, nil}, true},
		{Match{"/a/{x...}", post, nil}, Match{"/a/{y...}", post, nil}, true},
		{Match{"/a/{x}", both, nil}, Match{"/a/{y}", post, []string{"h"}}, true},
		{Match{"/a", post, []string{"H", "i"}}, Match{"/a", post, []string{"h"}}, true},
		{Match{"/a", post, []string{"h"}}, Match{"/a", post, nil}, false},
		{Match{"/a", post, []string{"h"}}, Match{"/a", post, []string{"h", "i"}}, false},
		{Match{"/a", post, nil}, Match{"/a", both, nil}, false},
		{Match{"/a", post, nil}, Match{"/{x}", post, nil}, false},
		{Match{"/{x}", post, nil}, Match{"/{x...}", post, nil}, false},
		{Match{"/{x}", post, nil}, Match{"/a/b", post, nil}, false},
		{Match{"/a/{x}", post, nil}, Match{"/a/", post, nil}, false},
		{Match{"/a/{x...}", post, nil}, Match{"/a", post, nil}, false},
	} {
		if got := scopeOf(&c.earlier).hidesRoute(scopeOf(&c.later)); got != c.want {
			t.Errorf("%v over %v: %v", c.earlier, c.later, got)
		}
	}
}

func TestATemplateIsJudgedByWhatItsPatternCaptures(t *testing.T) {
	text := `routes:
- name: a
  path: /{x}/{y...}
  workflow: '{nope}'
- {name: b, path: '/{x}/{y...}', workflow: '{path.y}', event_id: '{path.z ?? body.id}'}
- {name: c, path: '/{', workflow: '{nope}', event_id: '{path.x}'}
`
	got := refusalOf(t, Source{Bytes: []byte(text)})
	want := `sidecar.yaml:4:13: routes[0].workflow: column 2: unknown source "nope": write one of path.x, query.x, header.X, body.a.b[0], form.x, xml.a.b, host, method, route, fingerprint, body_sha256, or text in double quotes` + "\n" +
		"sidecar.yaml:5:66: routes[1].event_id: column 2: {path.z}: the route's path captures no {z}\n" +
		`sidecar.yaml:6:19: routes[2].match.path: "{": a variable is a whole segment, such as /{account}/`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
