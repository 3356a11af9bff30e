package model

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// codeDirs are where requests to etcd are made.
var codeDirs = []string{
	"../../etcdlock", "../../etcdlock/commit", "../../etcdlock/diagnose", "../../etcdlock/finish", "../../etcdlock/history", "../../etcdlock/link", "../../etcdlock/operate", "../../etcdlock/owned",
	"../../etcdlock/park", "../../etcdlock/protocol", "../../etcdlock/reap", "../../etcdlock/session", "../../etcdlock/slots", "../../etcdlock/view",
}

// written is a transaction as the code spells it.
type written struct {
	compares []string
	writes   string
}

// besideTheModel are transactions that touch keys which no transaction of a delivery compares, so that they can break no promise.
var besideTheModel = map[string]written{
	"note":     {nil, "writes{put(key, v)}"},
	"dropNote": {nil, "writes{del(key)}"},
	"declare":  {[]string{"modified(key, prev)"}, "writes{put(key, v)}"},
	"resume":   {[]string{"modified(key, prev)"}, "writes{take(key)}"},
	"unmark":   {[]string{"modified(key, prev)"}, "writes{del(key)}"},
}

// TestTheCodeAndTheModelHaveTheSameTransactions fails when one of the two tables has a row, a compare or a write that the other has not.
func TestTheCodeAndTheModelHaveTheSameTransactions(t *testing.T) {
	code, _ := readCode(t)
	rows := table()
	for k := claim; k < kinds; k++ {
		r := rows[k]
		w, there := code[r.name]
		delete(code, r.name)
		switch {
		case !there:
			t.Errorf("the model has the transaction %s, and etcdlock does not: take it out of the model's table", r.name)
		default:
			sameCompares(t, &r, w.compares)
			if w.writes != r.writes {
				t.Errorf("transaction %s writes %s in etcdlock, and the model knows %s: change what it does in writes.go first", r.name, w.writes, r.writes)
			}
		}
	}
	for name, known := range besideTheModel {
		w, there := code[name]
		delete(code, name)
		if !there || !slices.Equal(w.compares, known.compares) || w.writes != known.writes {
			t.Errorf("etcdlock's %s compares %v and writes %s, and it was left out of the model because it compares %v and writes %s", name, w.compares, w.writes, known.compares, known.writes)
		}
	}
	for name := range code {
		t.Errorf("etcdlock has the transaction %s, which no model has seen: add its row to table.go here, with what it does and who sends it, before it is used", name)
	}
}

func sameCompares(t *testing.T, r *row, code []string) {
	t.Helper()
	var model []string
	for _, c := range r.compares {
		model = append(model, c.spelling)
		if !slices.Contains(code, c.spelling) {
			t.Errorf("transaction %s compares %s in the model, and not in etcdlock: without it a promise breaks, see TestEveryCompareIsNeeded", r.name, c.spelling)
		}
	}
	for _, c := range code {
		if !slices.Contains(model, c) {
			t.Errorf("transaction %s compares %s in etcdlock, and not in the model: add it to the row in table.go", r.name, c)
		}
	}
}

// TestTheCompareHelpersMeanWhatTheModelTakesThemFor pins what stands behind the spellings.
func TestTheCompareHelpersMeanWhatTheModelTakesThemFor(t *testing.T) {
	_, helpers := readCode(t)
	for name, meaning := range map[string]string{
		"epochIs":       "return modified(k.S, at.epoch)",
		"absent":        "return created(key, 0)",
		"modified":      "c := &struct { cmp pb.compare than pb.compare_ModRevision }{cmp: pb.compare{key: []byte(key), result: pb.compare_EQUAL, target: pb.compare_MOD}} c.than.modRevision, c.cmp.targetUnion = revision, &c.than return &c.cmp",
		"created":       "return creation(key, pb.compare_EQUAL, revision)",
		"createdAfter":  "return creation(key, pb.compare_GREATER, revision)",
		"creation":      "c := &struct { cmp pb.compare than pb.compare_CreateRevision }{cmp: pb.compare{key: []byte(key), result: result, target: pb.compare_CREATE}} c.than.createRevision, c.cmp.targetUnion = revision, &c.than return &c.cmp",
		"below":         "c.rangeEnd = bytes.clone(c.key) c.rangeEnd[len(c.key)-1]++ return c",
		"valued":        "return &pb.compare{key: []byte(key), result: result, target: pb.compare_VALUE, targetUnion: &pb.compare_Value{value: value}}",
		"queueEmpty":    "return below(created(k.W, 0))",
		"isHead":        "return below(createdAfter(k.W, q-1))",
		"present":       "return createdAfter(key, 0)",
		"createdBefore": "return creation(key, pb.compare_LESS, revision)",
		"noNewEntry":    "if k.Latest == nil { return nil } return compares{below(createdBefore(k.W, k.Latest.last+1))}",
		"stillWaits":    "if k.Latest == nil || k.Latest.over == nil { return nil } return compares{modified(k.Latest.over.q, k.Latest.q)}",
		"replace":       "if k.Latest == nil || k.Latest.over == nil { return nil } over := *k.Latest.over w := writes{del(over.q), put(over.i, k.Latest.record)} if !k.Latest.parked { return w } return append(w, unpark(over, nil)...)",
		"keep":          "return writes{put(k.R, p.request), put(k.P, p.index), put(k.G, p.age)}",
		"announce":      "if index == nil { return nil } return writes{put(k.P, *index)}",
		"unpark":        "if letter != nil { return writes{put(k.P, *letter), del(k.G)} } return writes{del(k.R), del(k.P), del(k.G)}",
		"tell":          `if k.C == "" { return nil } return writes{put(k.C, news)}`,
		"readMark":      `if k.M == "" { return nil } return writes{get(k.M)}`,
		"readLine":      "if !more { return nil } return writes{getLine(k.W)}",
		"raise":         "if mark == nil { return nil } put := writes{put(k.M, *mark)} return writes{txn(compares{absent(k.M)}, put, writes{txn(compares{older(k.M, mark)}, put, nil)})}",
		"dropMark":      `if mark == nil { return nil } return writes{txn(compares{valued(k.M, pb.compare_EQUAL, mark)}, writes{del(k.M)}, nil)}`,
		"dropLetter":    "if !letter { return nil } return writes{del(k.R), del(k.P)}",
		"noted":         "t := op.getRequestTxn() t.success = append(t.success, put(key, v)) return op",
		"older":         `return valued(key, pb.compare_LESS, v.value)`,
		"freeLock":      "return append(append(writes{del(k.L)}, dropHold(k)...), freeSlots(k)...)",
		"dropHold":      "if k.A != k.H { return nil } return writes{take(k.H)}",
		"slotsFree":     "for _, slot := range k.Slots { c = append(c, absent(slot.key)) } return c",
		"noSlotWaiters": "for _, slot := range k.Slots { c = append(c, below(created(slot.line, 0))) } return c",
		"freeSlots":     "for _, slot := range k.Slots { w = append(w, del(slot.key)) } return w",
		"takeSlots":     `for _, slot := range k.Slots { w = append(w, put(slot.key, leased{value: slot.value})) } if k.T != "" { w = append(w, del(k.T)) } return w`,
		"takeTurn":      `if k.T == "" { return nil } return writes{put(k.T, turn)}`,
		"leaveLine":     `if k.U == "" { return nil } return writes{del(k.U)}`,
		"endLock":       "if cool != nil { return append(writes{put(k.L, cool.lock), put(k.H, cool.hold), put(k.I, record)}, answerOf(record)...) } return append(append(freeLock(k), put(k.I, record)), answerOf(record)...)",
		"answerOf":      "if record.apart == nil { return nil } return writes{put(record.apart.key, record.apart.leased)}",
	} {
		if helpers[name] != meaning {
			t.Errorf("%s is { %s } in etcdlock, and the model takes it for { %s }: see what the model's compares and writes do, then change this line", name, helpers[name], meaning)
		}
	}
}

// besideTheTable may write to etcd, too: the keeper begins and ends whole sessions, which is a step of its own in the model, and a diagnosis
// writes below a prefix of its own, which no process reads. A lease is dropped that nothing is on any more. The pool deletes for the keeper, and
// what is too many of what no transaction compares.
func besideTheTable(file, function string) bool {
	switch file {
	case "keeper.go":
		return function == "open" || function == "clear"
	case "lease.go":
		return function == "Drop"
	case "pool.go":
		return function == "Delete"
	case "writer.go":
		return function == "deleteOldest"
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
				t.Errorf("%s: %s uses %s: a transaction of the protocol belongs into etcdlock/protocol/table.go, where this test compares it with the model", file, f.Name.Name, name.Sel.Name)
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
				t.Errorf("%s: %s calls %s: a transaction of the protocol belongs into etcdlock/protocol/table.go, where this test compares it with the model", file, f.Name.Name, name.Sel.Name)
			}
			return true
		})
	})
}

// isTheTables: what a write is made of.
var isTheTables = regexp.MustCompile(`^(RequestOp_Request(Put|DeleteRange|Txn)|PutRequest|DeleteRangeRequest)$`)

// readCode finds the functions of etcdlock/protocol/table.go that make a transaction, and the bodies of the others.
func readCode(t *testing.T) (transactions map[string]written, helpers map[string]string) {
	t.Helper()
	transactions, helpers = map[string]written{}, map[string]string{}
	eachFunction(t, func(file string, f *ast.FuncDecl) {
		if !isTable(file) || f.Recv != nil {
			return
		}
		if call := transactionIn(f); call != nil && makesOne(f) {
			transactions[plain(f.Name.Name)] = readTransaction(t, f.Name.Name, call)
			return
		}
		body := strings.Join(strings.Fields(spelled(t, f.Body)), " ")
		helpers[plain(f.Name.Name)] = strings.TrimSuffix(strings.TrimPrefix(body, "{ "), " }")
	})
	return transactions, helpers
}

// isTable: the transactions of the protocol are in these files.
func isTable(file string) bool { return file == "table.go" || file == "table_parked.go" }

// makesOne tells the functions that make a transaction from those that make a part of one.
func makesOne(f *ast.FuncDecl) bool {
	result, ok := f.Type.Results.List[0].Type.(*ast.Ident)
	return ok && result.Name == "Op"
}

func transactionIn(f *ast.FuncDecl) (found *ast.CallExpr) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "txn" {
				found = call
			}
		}
		return found == nil
	})
	return found
}

func readTransaction(t *testing.T, name string, call *ast.CallExpr) (w written) {
	t.Helper()
	w.compares = comparesOf(t, name, call.Args[0])
	w.writes = spelled(t, call.Args[1])
	return w
}

// comparesOf reads compares{…}, or append(compares{…}, helper(k)...): those of a helper count as one.
func comparesOf(t *testing.T, name string, from ast.Expr) (all []string) {
	t.Helper()
	switch from := from.(type) {
	case *ast.CompositeLit:
		for _, c := range from.Elts {
			all = append(all, spelled(t, c))
		}
		return all
	case *ast.CallExpr:
		if spelled(t, from.Fun) != "append" {
			return []string{spelled(t, from)}
		}
		for _, part := range from.Args {
			all = append(all, comparesOf(t, name, part)...)
		}
		return all
	}
	t.Fatalf("transaction %s builds its compares with %s: write them as compares{…}, so that a reader and this test see them", name, spelled(t, from))
	return nil
}

func spelled(t *testing.T, n ast.Node) string {
	t.Helper()
	var b strings.Builder
	if err := printer.Fprint(&b, token.NewFileSet(), n); err != nil {
		t.Fatal(err)
	}
	return plain(b.String())
}

// ownName is a name of the protocol's that begins with a capital; those of keys (k.L), of etcd's client and of its methods stay as they are.
var ownName = regexp.MustCompile(`(clientv3\.|k\.|\)\.)?\b[A-Z]`)

// plain is a piece of code as the model spells it: without the capitals that say which names other packages use.
func plain(code string) string {
	return ownName.ReplaceAllStringFunc(code, func(found string) string {
		if len(found) > 1 {
			return found
		}
		return strings.ToLower(found)
	})
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
