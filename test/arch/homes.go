package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Strays returns a sentence for each sender that is named, in what is shipped, outside of its own file: everything about a sender is one
// file of proxy/sender, so that adding one is adding a file.
func Strays(sources []*Source) []string {
	var problems []string
	home := map[string]string{} // a sender's name, and where it lives
	for _, s := range sources {
		if path.Dir(s.Path) != "proxy/sender" || strings.HasSuffix(s.Path, "_test.go") {
			continue
		}
		names := s.senders()
		if len(names) > 1 {
			problems = append(problems, fmt.Sprintf("%s: has %d senders; give each a file of its own", s.Path, len(names)))
		}
		for _, name := range names {
			home[name] = s.Path
		}
	}
	return append(problems, strays(sources, home, nil)...)
}

// Decided returns a sentence for each decision, and each code of an answer to a sender, that is spelled in what is shipped outside of its
// own file: a decision is a row of idem/decisions.go, a code of a rejection one of proxy/rejection.go, and everybody else reads the row.
func Decided(sources []*Source) []string {
	home := map[string]string{}
	var shipped []*Source
	for _, s := range sources {
		if slices.Contains(decisionHomes, s.Path) {
			for _, text := range s.codes() {
				home[text] = s.Path
			}
		}
		if !slices.Contains(otherWords, strings.Split(s.Path, "/")[0]) || strings.HasPrefix(s.Path, "admin/report/") {
			shipped = append(shipped, s)
		}
	}
	return strays(shipped, home, otherMeanings)
}

// decisionHomes are where decisions and codes of answers live.
var decisionHomes = []string{"idem/decisions.go", "proxy/rejection.go", "idem/naming/name_error.go"}

// otherWords are the folders that speak otherwise: the API has a table of its own codes, some of which are called the same and have other
// statuses, and what is not shipped may spell what it expects.
var otherWords = []string{"admin", "test", "deploy", "docs"}

// otherMeanings are the words that mean something else elsewhere, with the files or folders where they do.
var otherMeanings = map[string][]string{
	"executed": {"idem"},                                    // an outcome of an execution
	"unknown":  {"idem", "cmd", "proxy/telemetry/watch.go"}, // another one; and what nobody knows
	"skipped":  {"idem", "etcdlock", "cmd"},                 // a step of an execution, or of a diagnosis
	"mismatch": {"proxy/sender/errors.go", "cmd"},           // a signature that no key of ours made
	"aborted":  {"cmd"},                                     // when a person ended an execution
}

// codes are the names of decisions and the codes of answers in s: constants of the type Decision, those whose name begins with code, and
// the field Code of a row.
func (s *Source) codes() []string {
	var found []string
	add := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				found = append(found, text)
			}
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			of, typed := n.Type.(*ast.Ident)
			if len(n.Values) == 1 && (typed && of.Name == "Decision" || strings.HasPrefix(strings.ToLower(n.Names[0].Name), "code")) {
				add(n.Values[0])
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Code" {
				add(n.Value)
			}
		}
		return true
	})
	return found
}

// strays returns a sentence for each word that has a home and is spelled in another file that is shipped, but where it means something else.
func strays(sources []*Source, home map[string]string, but map[string][]string) []string {
	var problems []string
	for _, s := range sources {
		if strings.HasSuffix(s.Path, "_test.go") {
			continue
		}
		for text, line := range s.literals() {
			means := func(place string) bool { return s.Path == place || strings.HasPrefix(s.Path, place+"/") }
			if at, ok := home[text]; ok && at != s.Path && !slices.ContainsFunc(but[text], means) {
				problems = append(problems, fmt.Sprintf("%s:%d: names %s, which lives in %s: say it there, and ask for it here", s.Path, line, text, at))
			}
		}
	}
	return problems
}

// senders are the names of the senders that s describes: the Name of what the methods of known return.
func (s *Source) senders() []string {
	var names []string
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || len(f.Recv.List) != 1 {
			continue
		}
		if of, ok := f.Recv.List[0].Type.(*ast.Ident); !ok || of.Name != "known" {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			pair, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			key, isName := pair.Key.(*ast.Ident)
			value, isText := pair.Value.(*ast.BasicLit)
			if isName && isText && key.Name == "Name" {
				if name, err := strconv.Unquote(value.Value); err == nil {
					names = append(names, name)
				}
			}
			return false
		})
	}
	return names
}

// literals are the string literals of s, with the line of each.
func (s *Source) literals() map[string]int {
	found := map[string]int{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				found[text] = s.fset.Position(lit.Pos()).Line
			}
		}
		return true
	})
	return found
}
