package model

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// codeDirs are where requests to etcd are made.
var codeDirs = []string{
	"../../etcdlock", "../../etcdlock/callback", "../../etcdlock/carry", "../../etcdlock/claim",
	"../../etcdlock/commit", "../../etcdlock/diagnose",
	"../../etcdlock/finish", "../../etcdlock/history", "../../etcdlock/link", "../../etcdlock/locker",
	"../../etcdlock/operate", "../../etcdlock/owned",
	"../../etcdlock/park", "../../etcdlock/predecessor", "../../etcdlock/protocol", "../../etcdlock/queue",
	"../../etcdlock/reap", "../../etcdlock/session", "../../etcdlock/slots", "../../etcdlock/view",
}

// besideTheModel are transactions that touch keys which no transaction of a delivery or of a job
// compares, so that they can break no promise; README.md says it of each.
var besideTheModel = []string{"Note", "Noted", "DropNote", "Erased", "Declare", "Resume", "DropAcknowledgement"}

// TestTheModelSendsEveryTransaction fails when etcdlock has a transaction that no search has seen.
func TestTheModelSendsEveryTransaction(t *testing.T) {
	sent := map[string]bool{}
	for _, sender := range []string{"ops.go", "jobs/store_test.go", "twins/model_test.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), sender, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if name, ok := n.(*ast.SelectorExpr); ok {
				sent[name.Sel.Name] = true
			}
			return true
		})
	}
	eachFunction(t, func(file string, f *ast.FuncDecl) {
		if name := f.Name.Name; isTable(file) && makesOne(f) && !sent[name] && !slices.Contains(besideTheModel, name) {
			t.Errorf(
				"etcdlock has the transaction %s, which no model has seen: send it in ops.go here, and say who does so, before it is used", name)
		}
	})
}

// besideTheTable may write to etcd, too: the keeper begins and ends whole sessions, which is a step
// of its own in the model. So is the end of a dead process's session with its lease: it is that of
// a lease that expires, which may come at any step, to a process that lives as well. And a
// diagnosis writes below a prefix of its own, which no process reads. A lease is dropped that
// nothing is on any more. The pool deletes for the keeper, and what is too many of what no
// transaction compares. The counts of a process travel with the ends that they count, and no
// transaction compares them either.
func besideTheTable(file, function string) bool {
	switch file {
	case "keeper.go":
		return function == "openSession" || function == "clearSessions"
	case "lease.go":
		return function == "EndLease"
	case "pool.go":
		return function == "Delete"
	case "writer.go":
		return function == "deleteOldest"
	case "stored_counts.go":
		return function == "sendLocked"
	case "use.go":
		return true
	}
	return false
}

// TestNothingIsWrittenPastTheTable finds transactions, puts and deletions elsewhere in the package.
func TestNothingIsWrittenPastTheTable(t *testing.T) {
	eachFunction(t, func(file string, f *ast.FuncDecl) {
		ast.Inspect(f, func(n ast.Node) bool {
			if name, ok := n.(*ast.SelectorExpr); ok && file != "op.go" && isTheTables.MatchString(name.Sel.Name) {
				t.Errorf(
					"%s: %s uses %s: a transaction of the protocol belongs into etcdlock/protocol/table.go, which the model sends", file, f.Name.Name, name.Sel.Name)
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || isTable(file) || besideTheTable(file, f.Name.Name) || len(call.Args) == 0 {
				return true
			}
			switch name.Sel.Name {
			case "OpPut", "OpDelete", "OpTxn", "If", "Put", "Delete", "Revoke":
				t.Errorf(
					"%s: %s calls %s: a transaction of the protocol belongs into etcdlock/protocol/table.go, which the model sends", file, f.Name.Name, name.Sel.Name)
			}
			return true
		})
	})
}

// isTheTables: what a write is made of.
var isTheTables = regexp.MustCompile(`^(RequestOp_Request(Put|DeleteRange|Txn)|PutRequest|DeleteRangeRequest)$`)

// isTable: the transactions of the protocol are in these files.
func isTable(file string) bool {
	return file == "table.go" || file == "table_parked.go" || file == "table_job.go" || file == "table_twin.go"
}

// makesOne: f makes a transaction, and not a part of one.
func makesOne(f *ast.FuncDecl) bool {
	if f.Recv != nil || !f.Name.IsExported() || f.Type.Results == nil {
		return false
	}
	result, ok := f.Type.Results.List[0].Type.(*ast.Ident)
	return ok && result.Name == "Op"
}

func eachFunction(t *testing.T, visit func(file string, f *ast.FuncDecl)) {
	t.Helper()
	var paths []string
	for _, dir := range codeDirs {
		found, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no Go files in %s: %v", dir, err)
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("read etcdlock: %v", err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				visit(filepath.Base(path), f)
			}
		}
	}
}
