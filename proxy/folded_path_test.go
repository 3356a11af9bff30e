package proxy

import (
	"testing"

	"hooklock/idem"
)

func tableOf(tb testing.TB, verified bool, patterns ...string) *Table {
	tb.Helper()
	t := &Table{}
	for _, text := range patterns {
		pattern, err := ParsePattern(text)
		if err != nil {
			tb.Fatal(err)
		}
		t.Routes = append(t.Routes, &Route{Name: text, Pattern: pattern, Methods: []string{"POST"},
			Policy: idem.Policy{Verified: verified}})
	}
	return t
}

func ask(t *Table, method, target string, bare bool) (route, code string) {
	r, _, bad := t.findRoute(&question{method: []byte(method), path: []byte(target), bare: bare})
	if bad != nil {
		code = bad.Code
	}
	if r != nil {
		route = r.Name
	}
	return route, code
}

// Each of these runs the endpoint of some server, which deploy/test/bypass/measured.md names.
func TestASpellingThatSomeServerTakesForARouteIsAmbiguous(t *testing.T) {
	for _, verified := range []bool{false, true} {
		table := tableOf(t, verified, "/hooks/a", "/hook.php", "/shop/{account}", "/files/{rest...}", "/folder/",
			"/entry/index.php", "/shop/{account}/items/{item}", "/data/feed.json")
		for _, target := range []string{
			"/hook.php/x", "/hook.php/", "/hook.php/x/y", "/HOOK.PHP/x", "/hook.php%2fx", "/hook", "/hook.php.",
			"/hook.php%20", "/hook.php%00.txt", "/hook.php%0a",
			"/hook.php/index.php", "/hook%2ephp", "/x/..%5chook.php", "/hook.php%3fx", "/hook.php%23",
			"/index.php/hooks/a", "/app.php/hooks/a", "/public/index.php/hooks/a", "/index.php//hooks/a",
			"/hooks/index.php/a", "/INDEX.PHP/Hooks/a",
			"/index.php/shop/1", "/index.php/files/x", "/index.php5/hooks/a", "/default.aspx/hooks/a",
			"/hooks/a.json", "/hooks/a.xml", "/hooks/a.", "/hooks/a.1", "/data/feed", "/data/feed.json/x",
			"//x/hooks/a", "///x/hooks/a", `/\x/hooks/a`, "//u@x/hooks/a", "//x:80/hooks/a", "/%2fx/hooks/a",
			"/%5cx/hooks/a", "//x/index.php/hooks/a.json",
			"/Hooks/a", "/HOOKS/A", "/hooKs/A", "/h%6Foks/A", "/%2568ooks/a", "/%25%36%38ooks/a",
			"/hooks/a%20", "/hooks/a%20/", "/hooks%20/a", "/hooks/%20a", "/hooks/a%09", "/hooks/a%0a", "/hooks/a%0d%0a",
			"/hooks/a%00", "/hooks/a%00x", "/hooks/a%a0", "/hooks/a%c2%a0",
			"/hooks/a%85", "/hooks/a..", "/hooks/a.%20.", "/hooks./a", "/ho%0aoks/a", "/hooks/a%1f", "/hooks/a%7f",
			"/hooks/a%ef%bb%bf",
			"/hoo%E2%84%AAs/a", "/hook%C5%BF/a", "/hoo%u212as/a", "/hooks%u002fa", "/hooks%U002Fa", "/hooks%5ca",
			`/hooks\a`, "/hooks%2fa", "/hooks%252fa", "/%u0068ooks/a",
			"/hooks/a%3fx", "/hooks/a%23x", "/hooks/a;x.json", "/x/..%20/hooks/a", "/hooks/a/index.php",
			"/Shop/x%2fy", "/Shop/%20", "/Shop/;x", "/Shop/x%00y", "/SHOP/x/ITEMS/y", "/Shop/x.php/y",
			"/Files", "/files", "/Files/x", "/folder", "/Folder/", "/folder/index.php", "/folder/INDEX.PHP", "/entry",
			"/entry/", "/entry/index.php5", "/entry/index.php/x",
		} {
			if _, code := ask(table, "POST", target, false); code != "ambiguous_path" {
				t.Errorf("POST %s, verified %v: %q", target, verified, code)
			}
		}
	}
}

// With unmatched: pass, what belongs to nobody's route still has to pass.
func TestAnOrdinaryPathIsNoOtherSpellingOfARoute(t *testing.T) {
	for _, verified := range []bool{false, true} {
		table := tableOf(t, verified, "/hooks/a", "/hook.php", "/shop/{account}", "/v1.0", "/api/{version}/events/{id}",
			"/data/feed.json")
		for _, target := range []string{
			"/", "/hooks", "/hooks/", "/hooks/other", "/hooks/ab", "/hooks/a/b", "/hooks/a-json", "/hooks/b.json",
			"/hooks/a/b.json", "/static/a.json", "/hook.png", "/hook.css", "/hooks.php", "/hook.php3x",
			"/index.php", "/index.html", "/index.php/other", "/index.php/hooks/b", "/admin.php", "/shop",
			"/shop/acme/settings", "/shop/acme.pl/settings", "/shop/acme.example.com/x", "/static/shop/acme",
			"/v1", "/v1.1", "/v1.0/other", "/api/v2/events", "/api/v2/events/1/2", "//cdn/hooks/b", "//x/y", "/x//y",
			"/a%20b", "/caf%C3%A9", "/a%2fb", "/x/hooks/a", "/hooks/a/../b",
			"/data/feed.xml", "/data/feeds", "/data", "/favicon.ico", "/robots.txt", "/.well-known/acme-challenge/x",
			"/*", "/~user/", "/a;b=c", "/a.b.c",
		} {
			if route, code := ask(table, "POST", target, false); route != "" || code != "" {
				t.Errorf("POST %s, verified %v: route %q, %q", target, verified, route, code)
			}
		}
	}
}

func TestWhatWouldPassTheRouteByPassesUnderAnotherSpelling(t *testing.T) {
	table := tableOf(t, true, "/hooks/a", "/index.php")
	for _, c := range []struct {
		method, target string
		bare           bool
		code           string
	}{
		{"GET", "/", true, ""}, // a home page in front of a route for its script
		{"GET", "/Hooks/a", true, ""},
		{"GET", "/Hooks/a", false, "ambiguous_path"},
		{"OPTIONS", "/hooks/a.json", true, ""},
		{"HEAD", "/hooks/a.json", false, "ambiguous_path"},
		{"DELETE", "/Hooks/a", true, "ambiguous_path"},
		{"POST", "/", false, "ambiguous_path"},
		{"GET", "/hooks/a", true, ""},
		{"GET", "/hooks/a", false, "method_not_allowed"},
		{"HEAD", "/hooks/a", false, "method_not_allowed"},
		{"OPTIONS", "/hooks/a", false, "method_not_allowed"},
		{"DELETE", "/hooks/a", true, "method_not_allowed"},
	} {
		if _, code := ask(table, c.method, c.target, c.bare); code != c.code {
			t.Errorf("%s %s, bare %v: %q, want %q", c.method, c.target, c.bare, code, c.code)
		}
	}
}

// A route that takes the exact path keeps it, unless a signature would be lost.
func TestAnotherRoutesPathIsAmbiguousOnlyWhereASignatureWouldBeLost(t *testing.T) {
	table := tableOf(t, false, "/hooks/a", "/hooks/{account}", "/{rest...}")
	for _, target := range []string{"/hooks/A", "/hooks/a.json", "/hooks/a.example.com", "/Hooks/a"} {
		if route, code := ask(table, "POST", target, false); route == "" || code != "" {
			t.Errorf("no signature: %s: %q, %q", target, route, code)
		}
	}
	table.Routes[0].Policy.Verified = true
	for _, target := range []string{"/hooks/A", "/hooks/a.json", "/Hooks/a", "//x/hooks/a"} {
		if _, code := ask(table, "POST", target, false); code != "ambiguous_path" {
			t.Errorf("the first has a signature: %s: %q", target, code)
		}
	}
	table.Routes[1].Policy.Verified = true
	if route, code := ask(table, "POST", "/hooks/A", false); route != "/hooks/{account}" || code != "" {
		t.Errorf("both have one: %q, %q", route, code)
	}
}

func TestARouteThatObservesRefusesNothingForWhatItLooksLike(t *testing.T) {
	table := tableOf(t, true, "/hooks/a", "/{rest...}")
	table.Routes[0].Observe = true
	table.Routes[1].Policy.Verified = false
	for _, c := range [][2]string{{"GET", "/hooks/a"}, {"DELETE", "/hooks/a"}, {"POST", "/Hooks/a"},
		{"POST", "/hooks/a.json"}} {
		if _, code := ask(table, c[0], c[1], false); code != "" {
			t.Errorf("%v: %q", c, code)
		}
	}
}

func TestAHostIsTheSameInAnyCaseWithAnyPortAndWithADotBehindIt(t *testing.T) {
	for _, r := range []Route{{Hosts: []string{"hooks.example.com"}}, {Hosts: []string{"Hooks.Example.COM"}}} {
		for host, want := range map[string]bool{
			"hooks.example.com": true, "HOOKS.example.com": true, "hooks.example.com:80": true,
			"hooks.example.com.": true, "hooks.example.com.:443": true, "Hooks.Example.Com.:8080": true,
			"hooks.example.com..": false, ".hooks.example.com": false, "hooks.example.org": false, "": false,
			".": false,
		} {
			if got := r.takesHost([]byte(host)); got != want {
				t.Errorf("%q for %v: %v", host, r.Hosts, got)
			}
		}
	}
}

// Whatever a route takes, its lax form takes: else a spelling could lead around both.
func FuzzLaxPathTakesWhatThePatternTakes(f *testing.F) {
	for _, s := range []string{"/hooks/a", "/shop/a%2fb", "/shop/%2e%2e", "/files/../..//", "/Shop/;x", "/shop/%00",
		"/shop/ %20", "/x/%u002f/..%5c", "/shop/%2525252541", "/hook.php/x", "//x/\\y"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, path []byte) {
		var lax foldedPath
		lax.parsePath(path)
		for _, step := range append(lax.early, lax.late...) {
			if len(step) == 0 {
				t.Fatalf("%q: an empty step", path)
			}
		}
		for _, text := range []string{"/hooks/a", "/hook.php", "/shop/{account}", "/files/{rest...}", "/folder/",
			"/{a}/x/{b}", "/"} {
			pattern, err := ParsePattern(text)
			if err != nil {
				t.Fatal(err)
			}
			if _, taken := pattern.Match(path, nil); taken && !pattern.couldBe(&lax) {
				t.Fatalf("%s takes %q, and its lax form does not: %q, %q", text, path, lax.early, lax.late)
			}
		}
	})
}
