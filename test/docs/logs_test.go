package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// logLine is a call that writes a line to the log.
type logLine struct {
	at     string
	event  string
	fields []string
}

// logLines finds the log lines of the program: calls of a logger with the event as a literal. Those
// of proxy/telemetry/log.go are put together from a report, and are tested there.
func logLines(t *testing.T) (lines []logLine) {
	t.Helper()
	for _, room := range []string{"cmd", "proxy", "etcdlock", "idem", "admin", "config"} {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if l := logLineOf(call); l != nil {
						l.at = fset.Position(call.Pos()).String()
						lines = append(lines, *l)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return lines
}

// logLineOf is nil for a call that is none.
func logLineOf(call *ast.CallExpr) *logLine {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !strings.HasPrefix(strings.ToLower(lastName(method.X)), "log") {
		return nil
	}
	args := call.Args
	switch method.Sel.Name {
	case "Debug", "Info", "Warn", "Error":
	case "DebugContext", "InfoContext", "WarnContext", "ErrorContext":
		args = args[1:]
	case "Log", "LogAttrs":
		args = args[2:]
	default:
		return nil
	}
	event, ok := literal(args[0])
	if !ok {
		return nil
	}
	l := &logLine{event: event}
	for i := 1; i < len(args); i++ {
		if attr, ok := args[i].(*ast.CallExpr); ok && len(attr.Args) == 2 { // slog.String("name", …)
			if name, ok := literal(attr.Args[0]); ok {
				l.fields = append(l.fields, name)
				continue
			}
		}
		if name, ok := literal(args[i]); ok {
			l.fields = append(l.fields, name)
			i++ // its value
		}
	}
	return l
}

func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// logTable is docs/logs.md: the fields of each event.
func logTable(t *testing.T) map[string][]string {
	t.Helper()
	return testkit.LogTable(pages(t)["docs/logs.md"])
}

func TestEachLineOfTheLogIsInTheTableWithItsFields(t *testing.T) {
	table, lines := logTable(t), logLines(t)
	if len(table) < 20 || len(lines) < 10 {
		t.Fatalf("%d events in the table, %d in the code", len(table), len(lines))
	}
	for _, l := range lines {
		fields, known := table[l.event]
		if !known {
			t.Errorf("%s: %q is not in docs/logs.md", l.at, l.event)
		}
		for _, f := range l.fields {
			if known && !slices.Contains(fields, f) {
				t.Errorf("%s: field %q of %q is not in docs/logs.md", l.at, f, l.event)
			}
		}
	}
}

func TestEachEventOfTheTableIsLoggedSomewhere(t *testing.T) {
	said := map[string][]string{}
	for _, l := range logLines(t) {
		said[l.event] = append(said[l.event], l.fields...)
	}
	for _, name := range words(t, "proxy/observe.go", `EventName = "([a-z.]+)"`) {
		said[name] = nil // with its fields in proxy/telemetry
	}
	said["delivery"] = nil
	for event, fields := range logTable(t) {
		is, known := said[event]
		if !known {
			t.Errorf("docs/logs.md: nobody logs %q", event)
		}
		for _, f := range fields {
			if is != nil && !slices.Contains(is, f) {
				t.Errorf("docs/logs.md: nobody logs the field %q of %q", f, event)
			}
		}
	}
}
