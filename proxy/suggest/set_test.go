package suggest

import (
	"testing"

	"hooklock/idem/naming"
)

func TestASuggestedPathIsOneThatARouteMayHave(t *testing.T) {
	for raw, want := range map[string]string{
		"/hooks/shop":             "/hooks/shop",
		"/hooks/4711/paid/":       "/hooks/{id1}/paid/",
		"/caf%C3%A9/a%20b/orders": "/{id1}/{id2}/orders",
		"/h/{x}/a;v=1/*":          "/h/{id1}/{id2}/{id3}",
		"/h/:shop/<order>":        "/h/{id1}/{id2}",
	} {
		path, vars := generalPath([]byte(raw))
		if _, err := naming.ParsePattern(path); err != nil || path != want {
			t.Errorf("%s is suggested as %s, %v; want %s", raw, path, err, want)
		}
		for _, v := range vars {
			if len(v.Raw) == 0 {
				t.Errorf("%s: %s is empty", raw, v.Name)
			}
		}
	}
}
