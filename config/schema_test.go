package config

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"hooklock/idem"
	"hooklock/proxy/sender"
)

var update = flag.Bool("update", false, "write the generated files and golden texts anew")

type object = map[string]any

// generator makes the schema. It lives in the test because it reads the comments, which a binary
// does not have.
type generator struct{ comments map[string]string }

func newGenerator(t *testing.T) generator {
	t.Helper()
	g := generator{comments: map[string]string{}}
	for _, name := range []string{"types.go", "types_idempotency.go", "types_park.go", "types_order.go",
		"types_admin.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		g.read(file)
	}
	return g
}

func (g generator) read(file *ast.File) {
	for _, declaration := range file.Decls {
		gen, ok := declaration.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, spec := range gen.Specs {
			typ := spec.(*ast.TypeSpec)
			for _, field := range typ.Type.(*ast.StructType).Fields.List {
				g.comments[typ.Name.Name+"."+field.Names[0].Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
			}
		}
	}
}

func (g generator) schema() []byte {
	root := g.group(rootKey(), "", reflect.ValueOf(*Default()))
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Hooklock sidecar.yaml"
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err)
	}
	return append(text, '\n')
}

func (g generator) group(k *key, path string, v reflect.Value) object {
	properties := object{}
	for _, child := range k.keys {
		properties[child.name] = g.described(child, joinPath(path, child.name), v.Field(child.index))
		if child.beside != "" {
			inner, _ := child.findChild(child.beside)
			properties[child.beside] = g.described(inner, joinPath(joinPath(path, child.name), inner.name),
				v.Field(child.index).Field(inner.index))
		}
	}
	return object{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
}

func (g generator) described(k *key, path string, v reflect.Value) object {
	s := g.value(k, path, v)
	s["description"] = g.comments[k.owner+"."+k.field]
	return s
}

func (g generator) value(k *key, path string, v reflect.Value) object {
	switch k.kind {
	case kindGroup:
		group := g.group(k, path, v)
		if k.short == "" {
			return group
		}
		short, _ := k.findChild(k.short)
		return object{"oneOf": []any{g.described(short, joinPath(path, k.short), v.Field(short.index)), group}}
	case kindItems:
		item, either := reflect.ValueOf(defaultRoute()), []string{"path", "match"}
		if k.typ.Elem() == reflect.TypeFor[Token]() {
			item, either = reflect.ValueOf(defaultToken()), []string{"token_file", "token_env"}
		}
		items := g.group(k, path+"[]", item)
		items["type"] = "object"
		items["required"] = []string{"name"}
		items["anyOf"] = []any{object{"required": either[:1]}, object{"required": either[1:]}}
		return object{"type": []string{"array", "null"}, "items": items}
	case kindMembers:
		return object{"type": []string{"object", "null"},
			"additionalProperties": object{"type": []string{"string", "number", "boolean"}}}
	case kindCounts:
		return object{"type": []string{"object", "null"},
			"additionalProperties": object{"type": "integer", "minimum": 1, "maximum": maxSlots}}
	case kindEntries:
		if k.typ == reflect.TypeFor[Labels]() {
			return object{"type": []string{"object", "null"}, "additionalProperties": object{"type": "string"}}
		}
		properties := object{}
		for _, r := range refusalRows() {
			properties[string(r.Decision)] = object{"type": "integer", "minimum": 200, "maximum": 599}
		}
		return object{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
	}
	s := g.leaf(k, path)
	if v.Kind() != reflect.String || v.String() != "" {
		s["default"] = plain(v)
	}
	return s
}

func (g generator) leaf(k *key, path string) object {
	switch path {
	case "routes[].preset":
		return object{"type": "string", "enum": append(presetNames(), "")}
	case "routes[].verify.scheme":
		return object{"type": "string", "enum": append(sender.Schemes(), "svix")}
	}
	switch k.kind {
	case kindChoice:
		if slices.Contains(k.choices, "true") {
			return object{"type": []any{"string", "boolean"}, "enum": []any{"auto", true, false, "true", "false"}}
		}
		return object{"type": "string", "enum": k.choices}
	case kindInt:
		return object{"type": "integer"}
	case kindBool:
		return object{"type": "boolean"}
	case kindDuration:
		if k.days {
			return object{"type": "string", "pattern": `^([0-9]+d|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`}
		}
		return object{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
	case kindSize:
		return object{"type": "string", "pattern": "^[0-9]+(B|KiB|MiB|GiB)$"}
	case kindTexts:
		return object{"type": "array", "items": object{"type": "string"}}
	case kindChoices:
		return object{"type": "array", "items": object{"type": "string", "enum": k.choices}}
	case kindStatuses:
		return object{"type": "array", "items": object{"oneOf": []any{
			object{"type": "integer", "minimum": 200, "maximum": 599},
			object{"type": "string", "pattern": "^([2-5]xx|[2-5][0-9]{2}(-[2-5][0-9]{2})?)$"},
		}}}
	}
	return object{"type": "string"}
}

func presetNames() []string {
	var names []string
	for _, p := range sender.Presets() {
		names = append(append(names, p.Name), p.Aliases...)
	}
	return names
}

// plain is a default as JSON has it.
func plain(v reflect.Value) any {
	if d, ok := reflect.TypeAssert[time.Duration](v); ok {
		return idem.DurationText(d)
	}
	return v.Interface()
}

func TestTheSchemaIsGeneratedFromTheTypes(t *testing.T) {
	want := newGenerator(t).schema()
	if *update {
		if err := os.WriteFile("sidecar.schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(Schema()) != string(want) {
		t.Error("config/sidecar.schema.json is not what the types say; run go generate ./config")
	}
}

func TestEverySettingHasADescription(t *testing.T) {
	comments := newGenerator(t).comments
	var walk func(k *key)
	walk = func(k *key) {
		for _, child := range k.keys {
			if comments[child.owner+"."+child.field] == "" {
				t.Errorf("%s.%s has no comment", child.owner, child.field)
			}
			walk(child)
		}
	}
	walk(rootKey())
}

// conforms is as much of JSON Schema as the generator uses.
func conforms(schema object, value any, path string) (problems []string) {
	no := func(format string, args ...any) {
		problems = append(problems, path+": "+fmt.Sprintf(format, args...))
	}
	if options, ok := schema["oneOf"].([]any); ok {
		fits := 0
		for _, option := range options {
			if len(conforms(option.(object), value, path)) == 0 {
				fits++
			}
		}
		if fits != 1 {
			no("fits %d of the forms", fits)
		}
		return problems
	}
	if !hasType(schema["type"], value) {
		no("%v is not %v", value, schema["type"])
		return problems
	}
	switch value := value.(type) {
	case string:
		if pattern, ok := schema["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(value) {
			no("%q does not match", value)
		}
		if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, any(value)) {
			no("%q is not one of %v", value, enum)
		}
	case []any:
		for i, item := range value {
			problems = append(problems, conforms(schema["items"].(object), item, indexedPath(path, i))...)
		}
	case object:
		if each, ok := schema["additionalProperties"].(object); ok { // anybody's names
			for name, inner := range value {
				problems = append(problems, conforms(each, inner, namedPath(path, name))...)
			}
			return problems
		}
		properties := schema["properties"].(object)
		for name, inner := range value {
			if properties[name] == nil {
				no("%s is unknown", name)
				continue
			}
			problems = append(problems, conforms(properties[name].(object), inner, joinPath(path, name))...)
		}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if value[name.(string)] == nil {
				no("%s is missing", name)
			}
		}
	}
	return problems
}

func hasType(types, value any) bool {
	names, ok := types.([]any)
	if !ok {
		names = []any{types}
	}
	var is string
	switch value.(type) {
	case nil:
		is = "null"
	case string:
		is = "string"
	case bool:
		is = "boolean"
	case int:
		is = "integer"
	case []any:
		is = "array"
	case object:
		is = "object"
	}
	return slices.Contains(names, any(is))
}

func schemaProblems(t *testing.T, text string) []string {
	t.Helper()
	var schema object
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return conforms(schema, value, "")
}

func TestTheShippedFileFitsTheSchema(t *testing.T) {
	text, err := os.ReadFile("../sidecar.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if problems := schemaProblems(t, string(text)); problems != nil {
		t.Error(strings.Join(problems, "\n"))
	}
}

func TestTheSchemaKnowsShortFormsAndRefusesSlips(t *testing.T) {
	for text, fits := range map[string]bool{
		"upstream: http://127.0.0.1:8081\nlisten: :80\nroutes: [{name: a, path: /a}]": true,
		"upstream: {url: http://127.0.0.1:8081, reuse_after_body: true}":              true,
		"upstream: {reuse_after_body: 'false'}":                                       true,
		"upstream: {reuse_after_body: auto}":                                          true,
		"upstream: {reuse_after_body: maybe}":                                         false,
		"upstream: {url: http://127.0.0.1:8081}":                                      true,
		"limits:":                                                                     true,
		"routes: [{name: a, respond: {locked: 503}}]":                                 true,
		"shutdown_delay: 5":                                                           false,
		"shutdown_delay: 5 seconds":                                                   false,
		"limits: {request_body: 8MB}":                                                 false,
		"unmatched: drop":                                                             false,
		"routes: [{path: /a}]":                                                        false,
		"routes: [{name: a, lock: {strategy: later}}]":                                false,
		"admin: {tokens: [{name: ops, token_file: x, scopes: [read, write], workflows: ['stripe/*']}]}": true,
		"admin: {tokens: [{token_file: x}]}":                                    false,
		"admin: {tokens: [{name: ops, token_env: X, scopes: [all]}]}":           false,
		"routes: [{name: a, path: /a, hold: {on_status: [202, 5xx], ttl: 1h}}]": true,
		"retention: 1h": false,
		"routes: [{name: a, idempotency: {keep: [2xx, 404, 500-599]}}]": true,
		"routes: [{name: a, idempotency: {keep: [9xx]}}]":               false,
	} {
		if problems := schemaProblems(t, text); (problems == nil) != fits {
			t.Errorf("%s: %v", text, problems)
		}
	}
}
