package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	goTest     = regexp.MustCompile("(?m)(?:`go test ([^`]+)`|^ *go test ([^#\\n]+))")
	makeTarget = regexp.MustCompile("(?m)(?:`|^ *)make ([a-z][a-z-]*(?: [a-z][a-z-]*)*)")
	benchFlags = regexp.MustCompile("(?:make bench(?:-peers)? ARGS='|bin/bench )(-[a-z][^`]*)`")
	ofAFlag    = regexp.MustCompile(`(?:^| )-([a-z]+)`)
	packages   = regexp.MustCompile(`(?:^| )\./([a-z0-9_/.]+)`)
	chosen     = regexp.MustCompile(`-(run|bench) ('[^']*'|\S+)`)
)

// A figure is worth as much as the command beside it: that names targets, tests, benchmarks and
// flags that are there.
func TestCommandsInTheDocumentationAreThere(t *testing.T) {
	makefile := read(t, "Makefile")
	flags := declaredFlags(t)
	for name, text := range markdown(t, ".") {
		if name == "CHANGELOG.md" {
			continue
		}
		for _, m := range makeTarget.FindAllStringSubmatch(text, -1) {
			for target := range strings.FieldsSeq(m[1]) {
				if !strings.Contains(makefile, "\n"+target+":") {
					t.Errorf("%s: make %s: the Makefile has no such target", name, m[1])
				}
			}
		}
		for _, m := range goTest.FindAllStringSubmatch(text, -1) {
			command, _, _ := strings.Cut(m[1]+m[2], "  ")
			checkGoTest(t, name, strings.Join(strings.Fields(command), " "), flags)
		}
		for _, m := range benchFlags.FindAllStringSubmatch(text, -1) {
			for _, f := range ofAFlag.FindAllStringSubmatch(quoted.ReplaceAllString(m[1], "Q"), -1) {
				if !flags["test/bench"][f[1]] {
					t.Errorf("%s: test/bench has no flag -%s", name, f[1])
				}
			}
		}
	}
}

var quoted = regexp.MustCompile(`"[^"]*"|'[^']*'`)

// ofGoTest are the flags of go test itself that the pages use.
var ofGoTest = map[string]bool{"run": true, "bench": true, "benchtime": true, "timeout": true, "v": true, "short": true,
	"count": true, "failfast": true, "race": true}

func checkGoTest(t *testing.T, page, command string, flags map[string]map[string]bool) {
	t.Helper()
	m := packages.FindStringSubmatch(command)
	if m == nil {
		return // a command that goes on, such as make's
	}
	folder := strings.TrimSuffix(m[1], "/...")
	for _, f := range ofAFlag.FindAllStringSubmatch(quoted.ReplaceAllString(command, "Q"), -1) {
		if !ofGoTest[f[1]] && !flags[folder][f[1]] {
			t.Errorf("%s: go test %s: no flag -%s", page, command, f[1])
		}
	}
	source := ""
	for path, text := range goFiles(t, folder) {
		if strings.HasSuffix(path, "_test.go") {
			source += text
		}
	}
	for _, c := range chosen.FindAllStringSubmatch(command, -1) {
		kind := map[string]string{"run": "Test", "bench": "Benchmark"}[c[1]]
		pattern := strings.TrimPrefix(strings.Trim(c[2], "'"), kind)
		if pattern == "^$" || pattern == "." {
			continue
		}
		if !regexp.MustCompile(`func ` + kind + `\w*(?:` + pattern + `)`).MatchString(source) {
			t.Errorf("%s: go test %s: %s has no %s of that name", page, command, folder, strings.ToLower(kind))
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// goFiles are the Go files of a folder and those below it.
func goFiles(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var declaration = regexp.MustCompile(
	`\b(?:flag|f)\.(?:Bool|Int|Int64|Uint64|String|Duration|Float64)(?:Var)?\((?:&[\w.]+, )?"([a-z]+)"`)

// declaredFlags are the flags that the tests and programs below test, cmd and proxy declare, by
// folder.
func declaredFlags(t *testing.T) map[string]map[string]bool {
	t.Helper()
	found := map[string]map[string]bool{}
	for _, folder := range []string{"test", "cmd", "proxy", "config", "idem", "etcdlock", "admin"} {
		for path, text := range goFiles(t, folder) {
			rel, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range declaration.FindAllStringSubmatch(text, -1) {
				if found[rel] == nil {
					found[rel] = map[string]bool{}
				}
				found[rel][m[1]] = true
			}
		}
	}
	return found
}
