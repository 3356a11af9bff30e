package config

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestPatternsThatNoPathCouldMatchAreRefused(t *testing.T) {
	for _, good := range []string{"/", "/a", "/a/", "/{x}", "/{x...}", "/a/{x}/b/{y_1...}", "/v1:go/@me/a-b._~!$&'()+,="} {
		if _, err := parsePattern(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{
		"", "a", "//", "/a//b", "/./a", "/a/..", "/a?x=1", "/a#b", "/a b", "/a;v=1", "/%41", "/é", "/a\\b", "/*", "/{}", "/{x", "/x}", "/{x}y",
		"/{x}/{x}", "/{x...}/a", "/{...}", "/{x.y}", "/{x..}", "/{{x}}", "/{x}{y}", "/\x00", "/{x-y}",
	} {
		if _, err := parsePattern(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func scopeOf(m *Match) scope {
	segments, _ := parsePattern(m.Path)
	return scope{m, segments}
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
		if got := scopeOf(&c.earlier).shadows(scopeOf(&c.later)); got != c.want {
			t.Errorf("%v over %v: %v", c.earlier, c.later, got)
		}
	}
}

func TestTemplatesAndPatternsAreJudgedByTheCaller(t *testing.T) {
	var seen []string
	checks := Checks{
		Template: func(text string, vars []string) error {
			seen = append(seen, text+" "+strings.Join(vars, ","))
			if strings.Contains(text, "{nope}") {
				return errors.New("{nope} is not a source")
			}
			return nil
		},
		Pattern: func(pattern string) error {
			if pattern == "/odd" {
				return errors.New("too odd")
			}
			return nil
		},
	}
	text := "routes:\n- name: a\n  path: /{x}/{y...}\n  workflow: '{nope}'\n- {name: b, path: /odd}\n- {name: c, path: '/{', workflow: '{nope}'}\n"
	got := refusalOf(t, Source{Bytes: []byte(text), Checks: checks})
	want := "sidecar.yaml:4:13: routes[0].workflow: {nope} is not a source\n" +
		"sidecar.yaml:5:19: routes[1].match.path: too odd\n" +
		`sidecar.yaml:6:19: routes[2].match.path: "{": a variable is a whole segment, such as /{account}/`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !slices.Contains(seen, "{nope} x,y") || len(seen) != 4 {
		t.Errorf("judged %q", seen)
	}
}
