package arch

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits on widths, in columns; a tab counts as four.
const (
	maxCodeWidth    = 120
	maxCommentWidth = 100
)

// Wide returns a sentence for each line of s that is too wide. A line with a long string is as wide
// as that in a test, whose data is kept whole, and so are each line of text in backquotes and each
// URL.
func (s *Source) Wide() []string {
	if ast.IsGenerated(s.file) {
		return nil
	}
	free := s.linesWithLongText()
	var problems []string
	n := 0
	for line := range strings.Lines(string(s.Text)) {
		n++
		line = strings.TrimRight(line, "\n")
		width, limit := utf8.RuneCountInString(line)+3*strings.Count(line, "\t"), maxCodeWidth
		if text := strings.TrimLeft(line, "\t"); strings.HasPrefix(text, "//") {
			if limit = maxCommentWidth; !strings.HasPrefix(text, "// ") || strings.HasPrefix(text, "//  ") ||
				!strings.Contains(text[3:], " ") {
				continue // a directive, an example, or one word
			}
		}
		if width > limit && !free[n] && !strings.Contains(line, "//nolint:") {
			problems = append(problems, fmt.Sprintf("%s:%d: %d columns wide, at most %d", s.Path, n, width, limit))
		}
	}
	return problems
}

// linesWithLongText are the lines that no break makes shorter: text that is kept whole, and
// imports.
func (s *Source) linesWithLongText() map[int]bool {
	free := map[int]bool{}
	isTest := strings.HasSuffix(s.Path, "_test.go")
	ast.Inspect(s.file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ImportSpec); ok {
			free[s.fset.Position(spec.Pos()).Line] = true
		}
		lit, ok := n.(*ast.BasicLit)
		if !ok {
			return true
		}
		from, to := s.fset.Position(lit.Pos()).Line, s.fset.Position(lit.End()).Line
		isURL := strings.Contains(lit.Value, "https://")
		if raw := lit.Value[0] == '`'; raw || (isTest || isURL) && len(lit.Value) > maxCodeWidth/2 {
			for line := from; line <= to; line++ {
				free[line] = true
			}
		}
		return true
	})
	return free
}

// Participles returns a sentence for each function of s that acts and is named after what is so,
// instead of what it does: one that returns nothing, one that changes what its receiver or a
// parameter points to, or one whose only word is a participle and that may wait, because it takes a
// context, or may fail, because its only result is an error. OnX, which is called back, is not.
func (s *Source) Participles() []string {
	var problems []string
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || !s.shipped() || !isParticiple(firstWord(f.Name.Name)) {
			continue
		}
		var why string
		switch name := f.Name.Name; {
		case f.Type.Results == nil:
			why = "returns nothing"
		case slices.Contains(givenNames, name):
			continue
		case changesArgument(f):
			why = "changes its receiver or a parameter"
		case !strings.EqualFold(name, firstWord(name)):
			continue
		case takes(f, "Context"):
			why = "takes a context"
		case returnsError(f) && !takes(f, "error"): // with one it says what that error means
			why = "returns an error"
		default:
			continue
		}
		problems = append(problems, fmt.Sprintf("%s:%d: %s %s, so say what it does: a verb and its object",
			s.Path, s.fset.Position(f.Pos()).Line, f.Name.Name, why))
	}
	return problems
}

// bareVerbs are the names of one word that say enough beside the type that they belong to, because
// every Go reader knows what they do.
var bareVerbs = []string{
	"accept", "add", "advance", "ask", "check", "clear", "close", "compare", "defragment", "dial", "do", "drop",
	"encode", "enqueue", "fail", "get", "init", "leave", "main", "next", "open", "parse", "peek", "print", "put",
	"read", "record", "refuse", "reload", "require", "reset", "respond", "run", "send", "sleep", "snapshot", "sort",
	"start", "stop", "subscribe", "warn", "write",
}

// BareNames returns a sentence for each function of s whose name is one word that neither says what
// it acts on, nor can be searched for.
func (s *Source) BareNames() []string {
	var problems []string
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || !s.shipped() {
			continue
		}
		name := f.Name.Name
		if !strings.ContainsFunc(name, notLower) && !slices.Contains(bareVerbs, name) {
			problems = append(problems, fmt.Sprintf("%s:%d: %s is one word: say what it acts on or returns, as "+
				"verb and object, question or noun", s.Path, s.fset.Position(f.Pos()).Line, name))
		}
	}
	return problems
}

func notLower(r rune) bool { return !unicode.IsLower(r) }

// givenNames are those of methods of slog.Handler, of the API's client and of options of etcdlock.
var givenNames = []string{"Enabled", "Seen", "Archived"}

// takes reports whether f has a parameter of a type with this name, of whatever package.
func takes(f *ast.FuncDecl, name string) bool {
	return slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool { return typeName(p.Type) == name })
}

// returnsError reports whether the only result of f is an error.
func returnsError(f *ast.FuncDecl) bool {
	r := f.Type.Results.List
	return len(r) == 1 && len(r[0].Names) < 2 && typeName(r[0].Type) == "error"
}

func typeName(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.SelectorExpr:
		return t.Sel.Name
	}
	return ""
}

// changesArgument reports whether f assigns to a field, an element or a value that its receiver or
// a parameter points to. What it has others change does not count.
func changesArgument(f *ast.FuncDecl) bool {
	pointers := map[string]bool{}
	fields := slices.Clone(f.Type.Params.List)
	if f.Recv != nil {
		fields = append(fields, f.Recv.List...)
	}
	for _, field := range fields {
		switch field.Type.(type) {
		case *ast.StarExpr, *ast.MapType:
			for _, name := range field.Names {
				pointers[name.Name] = true
			}
		}
	}
	changes := false
	target := func(e ast.Expr) {
		if _, plain := e.(*ast.Ident); !plain {
			changes = changes || pointers[rootOf(e)]
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				target(e)
			}
		case *ast.IncDecStmt:
			target(n.X)
		}
		return true
	})
	return changes
}

// rootOf returns the name of the variable that e is a part of; "" if it is a part of none.
func rootOf(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x.Name
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return ""
		}
	}
}

func firstWord(name string) string {
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			return strings.ToLower(name[:i])
		}
	}
	return strings.ToLower(name)
}

// irregular are participles, and past tenses, that do not end in -ed.
var irregular = []string{
	"told", "held", "kept", "left", "lost", "met", "made", "seen", "taken", "took", "given", "gone", "done", "found",
	"heard", "sent", "said", "known", "written", "begun", "broken", "shown", "spent", "won", "woken", "forgotten",
}

func isParticiple(word string) bool {
	verb := slices.Contains([]string{"need", "feed", "speed", "embed", "exceed", "proceed", "seed"}, word)
	return slices.Contains(irregular, word) || len(word) > 4 && strings.HasSuffix(word, "ed") && !verb
}

// oneMeaning are words with several meanings elsewhere, and the packages whose exported types and
// functions of that name have the one that a reader may expect; none: no type has this name.
var oneMeaning = map[string][]string{
	"Entry":          {"etcdlock/queue"},             // a place in a queue; see ExecutionFacts
	"Execution":      {"idem/guard", "admin/client"}, // one run of an event; as the API shows it
	"ExecutionFacts": {"idem"},                       // what a lock and a record share
	"HighWaterMark":  {"idem"},                       // the newest event of an order that went through
	"Held":           nil,                            // idem.RunningLock, or the status
	"InLine":         nil,                            // protocol.Candidate
	"Kept":           nil,                            // idem.StoredRequest, or End.Remembered
	"Line":           nil,                            // protocol.Candidates, slot waiters
	"Obstacle":       {"idem"},                       // what is in the way of a claim
	"Record":         {"idem"},                       // what is left of an execution
	"Revisions":      {"etcdlock/protocol"},          // what a transaction relies on
	"RunningLock":    {"idem"},                       // a lock that this process has
	// Obstacle, Revisions, or what a person has looked at
	"Seen":     nil,
	"Session":  {"etcdlock/session", "etcdlock/ledgertest"}, // the lease of a process
	"Workflow": nil,                                         // a text, in idem.Scope
}

// Meanings returns a sentence for each exported type of s whose name means something else.
func (s *Source) Meanings() []string {
	if !s.shipped() {
		return nil
	}
	var problems []string
	for _, d := range s.file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range g.Specs {
			t, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			if homes, ok := oneMeaning[t.Name.Name]; ok && !slices.Contains(homes, path.Dir(s.Path)) {
				problems = append(problems, fmt.Sprintf("%s:%d: %s has one meaning, which is another one (see "+
					"oneMeaning)",
					s.Path, s.fset.Position(t.Pos()).Line, t.Name.Name))
			}
		}
	}
	return problems
}

// Namesakes returns a sentence for each file of p that has the name of a file of a package that p
// imports: a reader who looks for one finds the other.
func Namesakes(packages []Package, sources []*Source) []string {
	files := map[string][]string{}
	for _, s := range sources {
		if name := path.Base(s.Path); name != "doc.go" && !strings.HasSuffix(name, "_test.go") {
			p := module + "/" + path.Dir(s.Path)
			files[p] = append(files[p], name)
		}
	}
	var problems []string
	for _, p := range packages {
		for _, other := range p.Imports {
			for _, name := range files[p.ImportPath] {
				if slices.Contains(files[other], name) {
					problems = append(problems, fmt.Sprintf(
						"%s and %s, which it imports, both have a file %s: name it after its job",
						p.ImportPath, other, name))
				}
			}
		}
	}
	return problems
}
