package testkit

import (
	"strings"
)

// Spelling is a request that some server takes for a POST to an endpoint, although it is spelled
// differently.
type Spelling struct {
	// Name is what deploy/test/bypass/measured.md calls it.
	Name string
	// Request is the raw request, without a signature.
	Request string
}

// Spellings are the other spellings of a POST to path, which has two steps or an ending.
func Spellings(path string) []Spelling {
	var all []Spelling
	add := func(name, method, target string) {
		request := RequestWith(method, target, "{}", "Connection: close")
		all = append(all, Spelling{name, request})
	}
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "DELETE", "post"} {
		add(method, method, path)
	}
	dir, last := path[:strings.LastIndex(path, "/")], path[strings.LastIndex(path, "/"):]
	for _, s := range []struct{ name, target string }{
		{"PATH_INFO", path + "/x"},
		{"front controller", "/index.php" + path},
		{"format", path + ".json"},
		{"without its ending", strings.TrimSuffix(path, ".php")},
		{"host in front", "//x" + path},
		{"host behind a backslash", `/\x` + path},
		{"user and host in front", "//u@x" + path},
		{"three slashes", "///x" + path},
		{"capitals", strings.ToUpper(path)},
		{"Kelvin sign", strings.Replace(path, "k", "%E2%84%AA", 1)},
		{"slash at the end", path + "/"},
		{"blank at the end", path + "%20"},
		{"tab at the end", path + "%09"},
		{"line feed at the end", path + "%0a"},
		{"no-break space at the end", path + "%c2%a0"},
		{"byte A0 at the end", path + "%a0"},
		{"raw byte A0 at the end", path + "\xa0"},
		{"dot at the end", path + "."},
		{"NUL at the end", path + "%00"},
		{"text behind a NUL", path + "%00.txt"},
		{"%u002f", dir + "%u002f" + last[1:]},
		{"encoded slash", dir + "%2f" + last[1:]},
		{"slash encoded twice", dir + "%252f" + last[1:]},
		{"encoded backslash", dir + "%5c" + last[1:]},
		{"encoded letter", path[:1] + "%68" + path[2:]},
		{"letter encoded twice", path[:1] + "%2568" + path[2:]},
		{"parameters", path + ";v=1"},
		{"two slashes", dir + "/" + last},
		{"dot segment", dir + "/." + last},
		{"dots", "/x/.." + path},
		{"encoded question mark", path + "%3fx"},
		{"encoded fragment", path + "%23x"},
		{"fragment", path + "#x"},
	} {
		if s.target != path {
			add(s.name, "POST", s.target)
		}
	}
	return all
}

// Laxities returns how measured.md names the spellings that a server reads as one endpoint: common
// groups of them by one name.
func Laxities(spellings []string) string {
	return strings.NewReplacer("GET, HEAD, OPTIONS, DELETE", "any method",
		"encoded letter, two slashes, dot segment, dots", "normal form").
		Replace(strings.Join(spellings, ", "))
}
