package naming

import (
	"strings"
	"testing"
)

func TestPatternsThatNoPathCouldMatchAreRefused(t *testing.T) {
	for _, good := range []string{"/", "/a", "/a/", "/{x}", "/{x...}", "/a/{x}/b/{y_1...}",
		"/v1:go/@me/a-b._~!$&'()+,="} {
		if _, err := ParsePattern(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{
		"", "a", "//", "/a//b", "/./a", "/a/..", "/a?x=1", "/a#b", "/a b", "/a;v=1", "/%41", "/é", "/a\\b", "/*", "/{}",
		"/{x", "/x}", "/{x}y",
		"/{x}/{x}", "/{x...}/a", "/{...}", "/{x.y}", "/{x..}", "/{{x}}", "/{x}{y}", "/\x00", "/{x-y}", "/{x}/{x...}",
	} {
		if _, err := ParsePattern(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestAPatternCapturesItsVariables(t *testing.T) {
	for _, c := range []struct{ pattern, path, want string }{
		{"/a", "/a", "yes"},
		{"/a", "/a/", "no"},
		{"/a/", "/a/", "yes"},
		{"/a", "", "no"},
		{"/{x}", "/v%2F1", "yes x=v%2F1"},
		{"/{x}", "/", "no"},
		{"/a/{x}/{y...}", "/a/1/2/3", "yes x=1 y=2/3"},
		{"/a/{x...}", "/a/", "yes x="},
		{"/a/{x...}", "/a", "no"},
	} {
		p, err := ParsePattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		vars, matches := p.Match([]byte(c.path), nil)
		got := "no"
		if matches {
			got = "yes"
			for _, v := range vars {
				got += " " + v.Name + "=" + string(v.Raw)
			}
		}
		if got != c.want {
			t.Errorf("%s of %s: got %q, want %q", c.path, c.pattern, got, c.want)
		}
	}
}

func TestWhatAPatternCovers(t *testing.T) {
	for _, c := range []struct {
		wide, narrow string
		want         bool
	}{
		{"/{x...}", "/a/{b}", true},
		{"/a/{x...}", "/a/b", true},
		{"/a/{x...}", "/a/b/{y...}", true},
		{"/a/{x...}", "/a/{y...}", true},
		{"/a/{x...}", "/a", false},
		{"/a/{x}", "/a/b", true},
		{"/a/{x}", "/a/", false},
		{"/a/{x}", "/a/b/c", false},
		{"/a/{x}", "/a/{y...}", false},
		{"/a", "/b", false},
	} {
		wide, errA := ParsePattern(c.wide)
		narrow, errB := ParsePattern(c.narrow)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if got := wide.Covers(narrow); got != c.want {
			t.Errorf("%s covers %s: %v", c.wide, c.narrow, got)
		}
	}
}

// FuzzCovers: what a pattern matches is matched by every pattern that covers it.
func FuzzCovers(f *testing.F) {
	f.Add("/{x...}", "/a/{b}", "/a/1")
	f.Add("/a/{x}", "/a/", "/a/")
	f.Add("/a/{x...}", "/a/{y...}", "/a/")
	f.Fuzz(func(t *testing.T, one, two, path string) {
		a, errA := ParsePattern(one)
		b, errB := ParsePattern(two)
		if errA != nil || errB != nil || !a.Covers(b) {
			return
		}
		_, wide := a.Match([]byte(path), nil)
		if _, narrow := b.Match([]byte(path), nil); narrow && !wide {
			t.Errorf("%s covers %s, and %s is of the second alone", one, two, strings.ToValidUTF8(path, "?"))
		}
	})
}
