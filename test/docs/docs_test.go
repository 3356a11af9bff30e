package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hooklock/config"
	"hooklock/proxy/sender"
)

const root = "../.."

// pages are README.md and the pages in docs, by their path from the root of the project.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := markdown(t, "docs")
	found["README.md"] = markdown(t, "README.md")["README.md"]
	return found
}

// markdown are the Markdown files at and below a path, by their path from the root of the project.
func markdown(t *testing.T, below string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(filepath.Join(root, below), func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "node_modules", "shared"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		found[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// saidThere are the warnings of examples about which their pages speak, or that are about the
// machine.
var saidThere = regexp.MustCompile(
	`no such file|no environment variable|^docs/slots.*lock.limit: is 3|^docs/api.*routes: there are none`)

func TestConfigurationsInTheDocumentationLoad(t *testing.T) {
	fence := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	var senders config.Senders
	for _, w := range sender.PresetWords() {
		senders.Presets = append(senders.Presets, config.Known(w))
	}
	for _, w := range sender.SchemeWords() {
		senders.Schemes = append(senders.Schemes, config.Known(w))
	}
	loaded := 0
	for path, text := range pages(t) {
		for _, m := range fence.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(m[1], "routes:") {
				continue
			}
			loaded++
			example, err := config.Load(config.Source{Path: path, Bytes: []byte(m[1]), Senders: senders})
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			for _, w := range example.Warnings {
				if text := w.String(); !saidThere.MatchString(text) {
					t.Errorf("an example that validate warns of: %s", text)
				}
			}
		}
	}
	if loaded == 0 {
		t.Error("no page shows a configuration")
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	for path, text := range markdown(t, ".") {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

// words are the string constants that match pattern in a source file.
func words(t *testing.T, file, pattern string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[1])
	}
	if len(found) == 0 {
		t.Fatalf("%s: nothing matches %s", file, pattern)
	}
	return found
}

func TestWhatTheCodeSaysIsInATable(t *testing.T) {
	all := pages(t)
	for _, c := range []struct{ file, pattern, page string }{
		{"proxy/rejection.go", `= "([a-z_]+)"`, "docs/answers.md"},
		{"proxy/headers.go", `"((?:Hooklock|Idempotent)-[A-Za-z-]+)(?:: )?"`, "docs/headers.md"},
		{"proxy/sender/renew.go", `= "(Hooklock-[A-Za-z-]+)"`, "docs/headers.md"},
	} {
		for _, word := range words(t, c.file, c.pattern) {
			if !strings.Contains(all[c.page], "`"+word) {
				t.Errorf("%s: %s is not in %s", c.file, word, c.page)
			}
		}
	}
}

func TestLinksLeadToHeadings(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]*)#([^)\s]+)\)`)
	all := markdown(t, ".")
	for path, text := range all {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to := path
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(path), m[1])
			}
			if page, ours := all[to]; ours && !strings.Contains(m[1], "://") && !anchors(page)[m[2]] {
				t.Errorf("%s: %s has no heading #%s", path, to, m[2])
			}
		}
	}
}

// anchors are the names that GitHub gives the headings of a page.
func anchors(page string) map[string]bool {
	fence := regexp.MustCompile("(?ms)^ *```.*?^ *```")
	heading := regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	shown := regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
	dropped := regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	names := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		text := shown.ReplaceAllString(m[1], "$1")
		first := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
		name := first
		for again := 1; names[name]; again++ {
			name = fmt.Sprintf("%s-%d", first, again)
		}
		names[name] = true
	}
	return names
}

func TestSourceFilesThatThePagesNameAreThere(t *testing.T) {
	all := pages(t)
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	all["CONTRIBUTING.md"] = string(text)
	var files []string
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".go" {
			files = append(files, "/"+filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for page, text := range all {
		for _, m := range regexp.MustCompile("`([a-z0-9_/]+\\.go)`").FindAllStringSubmatch(text, -1) {
			if !slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, "/"+m[1]) }) {
				t.Errorf("%s: there is no file %s", page, m[1])
			}
		}
	}
	packages := regexp.MustCompile("`((?:admin|cmd|config|etcdlock|idem|proxy|test)/[a-z0-9_/]+)`")
	for _, m := range packages.FindAllStringSubmatch(all["docs/architecture.md"], -1) {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Errorf("docs/architecture.md: there is no package %s", m[1])
		}
	}
}
