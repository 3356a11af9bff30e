package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Strays returns a sentence for each sender that is named, in what is shipped, outside of its own
// file: everything about a sender is one file of proxy/sender, so that adding one is adding a file.
func Strays(sources []*Source) []string {
	var problems []string
	home := map[string]string{} // a sender's name, and where it lives
	for _, s := range sources {
		if path.Dir(s.Path) != "proxy/sender" || strings.HasSuffix(s.Path, "_test.go") {
			continue
		}
		names := s.senders()
		if len(names) > 1 {
			problems = append(problems, fmt.Sprintf("%s: has %d senders; give each a file of its own", s.Path,
				len(names)))
		}
		for _, name := range names {
			home[name] = s.Path
		}
	}
	return append(problems, strays(sources, home, nil)...)
}

// Decided returns a sentence for each decision, and each code of an answer to a sender, that is
// spelled in what is shipped outside of its own file: a decision is a row of idem/decisions.go, a
// code of a rejection one of proxy/rejection.go, and everybody else reads the row.
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

// otherWords are the folders that speak otherwise: the API has a table of its own codes, some of
// which are called the same and have other statuses, and what is not shipped may spell what it
// expects.
var otherWords = []string{"admin", "test", "deploy", "docs"}

// otherMeanings are the words that mean something else elsewhere, with the files or folders where
// they do.
var otherMeanings = map[string][]string{
	"executed": {"idem"},                                      // an outcome of an execution
	"unknown":  {"idem", "cmd", "proxy/telemetry/watched.go"}, // another one; and what nobody knows
	"skipped":  {"idem", "etcdlock", "cmd"},                   // a step of an execution, or of a diagnosis
	"mismatch": {"proxy/sender/errors.go", "cmd"},             // a signature that no key of ours made
	"aborted":  {"cmd"},                                       // when a person ended an execution
}

// codes are the names of decisions and the codes of answers in s: constants of the type Decision,
// those whose name begins with code, and the field Code of a row.
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
			if len(n.Values) == 1 && (typed && of.Name == "Decision" ||
				strings.HasPrefix(strings.ToLower(n.Names[0].Name), "code")) {
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

// strays returns a sentence for each word that has a home and is spelled in another file that is
// shipped, but where it means something else.
func strays(sources []*Source, home map[string]string, but map[string][]string) []string {
	var problems []string
	for _, s := range sources {
		if strings.HasSuffix(s.Path, "_test.go") {
			continue
		}
		for text, line := range s.literals() {
			means := func(place string) bool { return s.Path == place || strings.HasPrefix(s.Path, place+"/") }
			if at, ok := home[text]; ok && at != s.Path && !slices.ContainsFunc(but[text], means) {
				problems = append(problems, fmt.Sprintf("%s:%d: names %s, which lives in %s: say it there, and ask "+
					"for it here", s.Path, line, text, at))
			}
		}
	}
	return problems
}

// senders are the names of the senders that s describes: the Name of what the methods of known
// return.
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

// layout is a way in which JSON spells an execution or a lock: the types that have its names, and
// the folder that they are in.
type layout struct {
	folder string
	types  []string
}

// layouts are what the API shows, whose server and client share their types, and what the ledger
// stores.
var layouts = []layout{
	{"admin/client", []string{"Execution"}},
	{"admin/client", []string{"Lock"}},
	{"idem", []string{"ExecutionFacts", "Scope", "Lock", "End", "Record"}},
}

// references are those names of an execution's fields by which others say which one they mean, or
// what is also true of other things: answers that refuse, reports, and what is stored beside an
// execution.
var references = []string{
	"executionId", "workflow", "key", "route", "holder", "token", "status", "error", "startedAt", "expiresAt",
	"expiresIn", "duplicates", "traceId", "supersededBy",
}

// Copies returns a sentence for each field of an execution that is named, in what is shipped,
// outside of the types that have it: a field that is new stands in one struct, and is stored and
// shown from there.
func Copies(sources []*Source) []string {
	var problems []string
	home := map[string]string{} // a field's name in JSON, and the type that has it
	for _, l := range layouts {
		own := map[string]string{}
		for _, s := range sources {
			for _, f := range l.fields(s) {
				if at, ok := own[f.name]; ok {
					problems = append(problems, fmt.Sprintf("%s:%d: names %s, which %s has: embed that, or give it "+
						"another name", s.Path, f.line, f.name, at))
				}
				own[f.name] = l.folder + "." + f.owner
			}
		}
		maps.Copy(home, own)
	}
	for _, name := range references {
		delete(home, name)
	}
	for _, s := range sources {
		if !s.shipped() || slices.ContainsFunc(layouts, func(l layout) bool { return l.folder == path.Dir(s.Path) }) {
			continue
		}
		for _, f := range s.fields() {
			if at, ok := home[f.name]; ok {
				problems = append(problems, fmt.Sprintf("%s:%d: names %s, a field of an execution that %s has: use "+
					"that type", s.Path, f.line, f.name, at))
			}
		}
	}
	return problems
}

// fields are those fields in s that are l's.
func (l *layout) fields(s *Source) []field {
	if path.Dir(s.Path) != l.folder || !s.shipped() {
		return nil
	}
	return slices.DeleteFunc(s.fields(), func(f field) bool { return !slices.Contains(l.types, f.owner) })
}

// field is a field of a struct that has a name in JSON.
type field struct {
	owner string // the type; "" = it has no name of its own
	name  string
	line  int
}

// fields are all fields in s that have a name in JSON.
func (s *Source) fields() []field {
	var found []field
	owners := map[ast.Node]string{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			owners[n.Type] = n.Name.Name
		case *ast.StructType:
			for _, f := range n.Fields.List {
				if f.Tag == nil {
					continue
				}
				tag, _ := strconv.Unquote(f.Tag.Value) // the parser has read it
				if name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ","); name != "" && name != "-" {
					found = append(found, field{owners[n], name, s.fset.Position(f.Pos()).Line})
				}
			}
		}
		return true
	})
	return found
}

// shipped reports whether s is a part of the program.
func (s *Source) shipped() bool {
	for _, p := range []string{"test/", "deploy/", "docs/"} {
		if strings.HasPrefix(s.Path, p) {
			return false
		}
	}
	return !strings.HasSuffix(s.Path, "_test.go")
}
