package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Limits on sizes, in lines.
const (
	maxFile     = 600
	maxFunction = 80
	maxSpine    = 60 // serve in proxy/handler.go is read aloud
)

// topLevel is everything that may lie at the root, besides files that begin with a dot. Each entry
// is a package or is what people look for.
var topLevel = []string{
	"cmd", "proxy", "etcdlock", "idem", "config", "deploy", "admin", "docs", "test",
	"sidecar.yaml", "go.mod", "go.sum", "Makefile", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
	"LICENSE",
	"findings",             // scripts on other software, outside go.mod and CI: neither a package nor a document
	"bin", "hooklock-data", // ignored by git: what make builds, and what a first run keeps
}

// aPlace is a path of one machine.
var aPlace = regexp.MustCompile(`(^|[^\w.~-])/(root|home|Users)/\w`)

// Source is a Go file.
type Source struct {
	Path string // from the root, with slashes
	Text []byte
	fset *token.FileSet
	file *ast.File
}

// Parse reads text as the Go file at path.
func Parse(path string, text []byte) (*Source, error) {
	s := &Source{Path: path, Text: text, fset: token.NewFileSet()}
	var err error
	s.file, err = parser.ParseFile(s.fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	return s, err
}

// Problems returns a sentence for each habit that s breaks.
func (s *Source) Problems() []string {
	if ast.IsGenerated(s.file) {
		return nil
	}
	var problems []string
	if n := lines(s.Text); n > maxFile {
		problems = append(problems, fmt.Sprintf("%s: %d lines, at most %d: a file is read in one sitting; give the "+
			"second thought in it a file of its own", s.Path, n, maxFile))
	}
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			problems = append(problems, s.functionProblems(f)...)
		}
	}
	// all of which runs in virtual time
	if strings.HasSuffix(s.Path, "_test.go") && !strings.HasPrefix(s.Path, "test/virtual/") {
		problems = append(problems, s.sleeps()...)
	}
	return problems
}

func (s *Source) functionProblems(f *ast.FuncDecl) []string {
	var problems []string
	first, last := s.fset.Position(f.Pos()).Line, s.fset.Position(f.End()).Line
	limit := maxFunction
	if s.Path == "proxy/handler.go" && f.Name.Name == "serveStages" {
		limit = maxSpine
	}
	if n := last - first + 1 - s.tableLines(f); n > limit {
		problems = append(problems, fmt.Sprintf("%s:%d: %s has %d lines, at most %d: name the steps", s.Path, first,
			f.Name.Name, n, limit))
	}
	if f.Recv == nil && f.Name.Name == "init" {
		problems = append(problems, fmt.Sprintf("%s:%d: func init() runs before anybody asked, in an order that "+
			"nobody sees; call it from where it is needed", s.Path, first))
	}
	return problems
}

// tableLines is the part of a test that is no step but data: the lines of its tables.
func (s *Source) tableLines(f *ast.FuncDecl) int {
	if !strings.HasSuffix(s.Path, "_test.go") {
		return 0
	}
	n := 0
	ast.Inspect(f, func(node ast.Node) bool {
		table, ok := node.(*ast.CompositeLit)
		if ok {
			n += s.fset.Position(table.Rbrace).Line - s.fset.Position(table.Lbrace).Line
		}
		return !ok // tables in a table are counted with it
	})
	return n
}

// sleeps finds time.Sleep, but not under synctest.Test, where time is a fake that costs nothing and
// cannot be late.
func (s *Source) sleeps() []string {
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch selected(call.Fun) {
		case "synctest.Test":
			return false
		case "time.Sleep":
			found = append(found, fmt.Sprintf("%s:%d: time.Sleep in a test is too short on a busy machine and too "+
				"long on every other; wait for the event", s.Path, s.fset.Position(call.Pos()).Line))
		}
		return true
	})
	return found
}

// selected is "package.Name" of an expression that is one.
func selected(e ast.Expr) string {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return x.Name + "." + sel.Sel.Name
}

// Docs returns a sentence for each folder of sources in which not exactly one file says what the
// package is for.
func Docs(sources []*Source) []string {
	type doc struct {
		name  string
		files []string
	}
	folders := map[string]*doc{}
	for _, s := range sources {
		name := s.file.Name.Name
		if strings.HasSuffix(name, "_test") {
			continue
		}
		folder := filepath.ToSlash(filepath.Dir(s.Path))
		if folders[folder] == nil {
			folders[folder] = &doc{name: name}
		}
		if s.file.Doc != nil {
			folders[folder].files = append(folders[folder].files, s.Path)
			problem := wrongDoc(s.file.Name.Name, filepath.Base(folder), s.file.Doc.Text())
			if problem != "" {
				folders[folder].files = append(folders[folder].files, problem)
			}
		}
	}
	var problems []string
	for folder, d := range folders {
		if len(d.files) != 1 {
			problems = append(problems, fmt.Sprintf("%s: package %s is to have one package doc, in one file; found %q",
				folder, d.name, d.files))
		}
	}
	slices.Sort(problems)
	return problems
}

func wrongDoc(pkg, folder, text string) string {
	want := "Package " + pkg + " "
	if pkg == "main" {
		want = "Command " + folder + " "
	}
	if strings.HasPrefix(text, want) {
		return ""
	}
	return fmt.Sprintf("which does not begin with %q", want)
}

// Strangers returns the names of a root's entries that have no place there.
func Strangers(entries []fs.DirEntry) []string {
	var strangers []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains(topLevel, e.Name()) {
			strangers = append(strangers, e.Name())
		}
	}
	return strangers
}

// Places returns a sentence for each line of text that names a place on one machine.
func Places(path string, text []byte) []string {
	var problems []string
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if found := aPlace.FindString(line); found != "" {
			problems = append(problems,
				fmt.Sprintf("%s:%d: %q is a place of somebody's own; the project works anywhere", path, n,
					strings.TrimSpace(found)))
		}
	}
	return problems
}

// Files returns the paths, from root and with slashes, of all files that belong to the project.
func Files(root string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() && slices.Contains([]string{".git", "bin", "hooklock-data"}, rel) {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && rel != ".git" { // a file where the checkout is a worktree
			files = append(files, rel)
		}
		return nil
	})
	return files, err
}

// Sources reads those of files that are Go.
func Sources(root string, files []string) ([]*Source, error) {
	var sources []*Source
	for _, path := range files {
		if !strings.HasSuffix(path, ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return nil, err
		}
		s, err := Parse(path, text)
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	return sources, nil
}

func lines(text []byte) int { return strings.Count(string(text), "\n") }
