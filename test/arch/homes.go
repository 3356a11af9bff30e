package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
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
	for _, s := range sources {
		if strings.HasSuffix(s.Path, "_test.go") {
			continue
		}
		for text, line := range s.literals() {
			if at, ok := home[text]; ok && at != s.Path {
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
