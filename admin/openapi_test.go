package admin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"hooklock/admin/client"
	"hooklock/idem"
)

var update = flag.Bool("update", false, "write openapi.json anew")

type node = map[string]any

// generator makes openapi.json of the endpoints, of the types of their answers with their comments,
// and of openapi.base.json, which has what neither says. It lives in the test because a binary has
// no comments.
type generator struct {
	jsonschema.Reflector
	schemas node
}

func TestOpenAPIIsGeneratedFromTheEndpointsAndTypes(t *testing.T) {
	want := describe(t)
	if *update {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(openAPI, want) {
		t.Error("admin/openapi.json is not what the endpoints and types say; run go generate ./admin")
	}
}

// describe makes the document.
func describe(t *testing.T) []byte {
	t.Helper()
	var document struct {
		OpenAPI     string `json:"openapi"`
		GeneratedBy string `json:"x-generated-by"`
		Info        node   `json:"info"`
		Servers     []node `json:"servers"`
		Tags        []node `json:"tags"`
		Paths       node   `json:"paths"`
		Components  struct {
			SecuritySchemes node `json:"securitySchemes"`
			Parameters      node `json:"parameters"`
			Responses       node `json:"responses"`
			Schemas         node `json:"schemas"`
		} `json:"components"`
	}
	base, err := os.ReadFile("openapi.base.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(base, &document); err != nil {
		t.Fatal(err)
	}
	document.GeneratedBy, document.Components.Responses = "go generate ./admin", node{}
	g := &generator{schemas: document.Components.Schemas}
	g.Mapper, g.Namer = g.mapped, schemaName
	if err := g.AddGoComments("hooklock/admin", "client", jsonschema.WithFullComment()); err != nil {
		t.Fatal(err)
	}
	for name, a := range refusals() {
		document.Components.Responses[name] = g.answer(a)
	}
	var codes []string
	for _, k := range problemKinds() {
		codes = append(codes, k.code)
	}
	g.schemas["Code"] = wordOf(codes)
	ids := map[string]bool{}
	for _, e := range descriptions() {
		if ids[e.id] {
			t.Errorf("two endpoints have the ID %s", e.id)
		}
		ids[e.id] = true
		path, ok := document.Paths[e.path].(node)
		if !ok {
			path = node{}
			document.Paths[e.path] = path
		}
		path[strings.ToLower(e.method)] = g.operation(&e)
		if _, name, ok := strings.Cut(e.path, "{"); ok {
			name, _, _ = strings.Cut(name, "}")
			path["parameters"] = []any{refTo("parameters", name)}
		}
	}
	text, err := json.MarshalIndent(document, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`,\n {6,}`).ReplaceAll(text, []byte(", ")) // what is deep takes one line
	text = regexp.MustCompile(`\n {6,}|\n {5}([}\]])`).ReplaceAll(text, []byte("$1"))
	return append(bytes.ReplaceAll(text, []byte("#/$defs/"), []byte("#/components/schemas/")), '\n')
}

func refTo(kind, name string) *jsonschema.Schema {
	return &jsonschema.Schema{Ref: "#/components/" + kind + "/" + name}
}

// wordOf is the schema of one of a list of words.
func wordOf(words any) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, word := range reflect.ValueOf(words).Seq2() {
		s.Enum = append(s.Enum, word.String())
	}
	return s
}

// schemaName is the name of a type in the document.
func schemaName(t reflect.Type) string {
	return cmp.Or(map[string]string{"Acquired": "AcquiredLock", "Cancelled": "CancelledExecution",
		"extended": "Extended"}[t.Name()], t.Name())
}

// mapped is the schema of a type that reflection knows too little of; nil = it is no such type.
func (g *generator) mapped(t reflect.Type) *jsonschema.Schema {
	if t == reflect.TypeFor[client.Time]() {
		return &jsonschema.Schema{Type: "string", Format: "date-time",
			Pattern: `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`}
	}
	for _, words := range []any{
		client.Statuses, []client.Outcome{client.Executed, client.NotExecuted, client.Unknown},
		[]client.ParkState{client.ParkWaiting, client.ParkBlocked, client.ParkDeadLetter},
		[]client.JobKind{client.JobRun, client.JobSkip, client.JobRerun, client.JobCancel, client.JobForget,
			client.JobErase},
		[]client.JobState{client.JobRunning, client.JobStopped, client.JobDone, client.JobDryRun},
	} {
		if word := reflect.TypeOf(words).Elem(); word == t ||
			word.Name() == "Status" && t == reflect.TypeFor[idem.Status]() {
			s := wordOf(words)
			s.Description = sentence(g.CommentMap[word.PkgPath()+"."+word.Name()])
			g.schemas[word.Name()] = s
			return refTo("schemas", word.Name())
		}
	}
	return nil
}

// of returns a reference to the schema of a type, and defines it and all that it leads to.
func (g *generator) of(v any) *jsonschema.Schema {
	s := g.Reflect(v)
	for name, def := range s.Definitions {
		if g.schemas[name] == nil {
			def.Description = sentence(def.Description)
			for p := def.Properties.Oldest(); p != nil; p = p.Next() {
				tidy(name+"."+p.Key, p.Key, p.Value, slices.Contains(def.Required, p.Key))
			}
			g.schemas[name] = def
		}
	}
	return &jsonschema.Schema{Ref: s.Ref}
}

// tidy adds to a property what all of its name or its type have.
func tidy(at, name string, s *jsonschema.Schema, required bool) {
	s.Description = sentence(s.Description)
	if first, rest, ok := strings.Cut(s.Description, " "); ok && strings.EqualFold(first, name) {
		s.Description = "`" + name + "` " + rest
	}
	switch at {
	case "CancelledExecution.success":
		s.Const = true
	case "Lock.token", "AcquiredLock.token", "Execution.token", "CancelledExecution.token":
		s.Format = "int64"
	case "SeenMark.concern":
		s.Type, s.Ref = "", refTo("schemas", "Concern").Ref
	case "Execution.executionId", "CancelledExecution.executionId": // REFUSED and RELEASED have none
		s.Pattern = `^(exec_[a-z2-7]{32})?$`
	}
	if words := map[string]any{"AttentionItem.kind": client.AttentionKinds(),
		"Job.ifStatus": active}[at]; words != nil {
		s.Enum = wordOf(words).Enum
	}
	const id, hash = `^exec_[a-z2-7]{32}$`, `^[0-9a-f]{32}$`
	pattern := map[string]string{"executionId": id, "newest": id, "supersededBy": id, "newId": id, "executions": id,
		"traceId": hash, "fingerprint": hash, "hash": hash}[name]
	switch s.Type {
	case "integer":
		s.Minimum = cmp.Or(s.Minimum, map[bool]json.Number{true: "0", false: "1"}[required]) // else 0 is left out
	case "string":
		s.Pattern = cmp.Or(s.Pattern, pattern)
	case "array":
		if s.Items.Type == "string" {
			s.Items.Pattern = pattern
		}
	}
}

// sentence makes a sentence of a comment. A word of the API at its beginning stays.
func sentence(comment string) string {
	text := strings.Join(strings.Fields(comment), " ")
	if text == "" {
		return ""
	}
	if first := regexp.MustCompile(`^[a-z]+[ ,]`).FindString(text); first != "" {
		text = strings.ToUpper(first[:1]) + text[1:]
	}
	return strings.TrimSuffix(text, ".") + "."
}

// about is what an input means, as the table says it, or else the comment of its field in takes,
// with the name of the input for that of the field; and the type of that field.
func (g *generator) about(one input, takes reflect.Type) (string, reflect.Type) {
	if takes == nil || takes.Kind() != reflect.Struct {
		return one.about, nil
	}
	for f := range takes.Fields() {
		if !strings.EqualFold(inputName(f), one.name) {
			continue
		}
		said := g.CommentMap[takes.PkgPath()+"."+takes.Name()+"."+f.Name]
		if rest, ok := strings.CutPrefix(said, f.Name+" "); ok {
			said = "`" + one.name + "` " + rest
		}
		return cmp.Or(one.about, sentence(said)), f.Type
	}
	return one.about, nil
}

// inputName is the name of the input that a field of package client stands for; it may have
// capitals.
func inputName(f reflect.StructField) string {
	name, _, _ := strings.Cut(cmp.Or(f.Tag.Get("query"), f.Tag.Get("json"), f.Name), ",")
	return name
}

// kind is the schema of an input; takes is the type of package client that says what it means, if
// there is one.
func (g *generator) kind(kind any, takes reflect.Type) *jsonschema.Schema {
	positive := func(n int) *uint64 {
		if n == 0 {
			return nil
		}
		return new(uint64(n)) //nolint:gosec // a bound of the table
	}
	switch k := kind.(type) {
	case nil:
		return &jsonschema.Schema{Type: "string"}
	case bool:
		return &jsonschema.Schema{Type: "boolean", Default: false}
	case number:
		s := &jsonschema.Schema{Type: "integer", Minimum: json.Number(fmt.Sprint(k.least))}
		if k.most != 0 {
			s.Maximum = json.Number(fmt.Sprint(k.most))
		}
		if k.otherwise != 0 {
			s.Default = k.otherwise
		}
		return s
	case length:
		return &jsonschema.Schema{Type: "string", MinLength: positive(k.least), MaxLength: positive(k.most)}
	case duration:
		return &jsonschema.Schema{Type: "string", Examples: []any{string(k)}}
	case list:
		return &jsonschema.Schema{Type: "array", Items: g.kind(k.of, nil), MaxItems: positive(k.most)}
	case ref:
		return refTo("schemas", string(k))
	case must:
		return g.kind(k.of, takes)
	case inputs:
		s := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(),
			AdditionalProperties: jsonschema.FalseSchema}
		for _, one := range k {
			about, of := g.about(one, takes)
			member := g.kind(one.kind, of)
			member.Description = about
			if _, ok := strip(one.kind).(duration); ok {
				member.Description += " It is a Go duration."
			}
			s.Properties.Set(one.name, member)
			if _, ok := one.kind.(must); ok {
				s.Required = append(s.Required, one.name)
			}
		}
		return s
	}
	if reflect.TypeOf(kind).Kind() == reflect.Slice {
		return wordOf(kind)
	}
	return g.of(kind)
}

// strip removes must from a kind.
func strip(kind any) any {
	if k, ok := kind.(must); ok {
		return k.of
	}
	return kind
}

// refusals are the answers that no endpoint lists, by their names in the document.
func refusals() map[string]answer {
	return map[string]answer{
		"BadRequest":   no("The request is not what this takes.", "bad_request"),
		"Unauthorized": no("No token or key, or one that is not known.", "unauthorized").withHeader("WWW-Authenticate"),
		"Forbidden": no("The token lacks the scope, or a browser asks for a page of another origin.", "forbidden",
			"cross_site").withHeader("WWW-Authenticate"),
		"CrossSite":            no("A browser asks for a page of another origin.", "cross_site"),
		"MethodNotAllowed":     no("This path has other methods.", "method_not_allowed").withHeader("Allow"),
		"BodyTooLarge":         no("A body has at most 1 MiB.", "body_too_large"),
		"UnsupportedMediaType": no("Send JSON. What curl -d calls it is taken, too.", "unsupported_media_type"),
		"HostRefused": no("The Host header is no IP address, not localhost and not in admin.hosts.",
			"host_refused"),
		"RateLimited": no("Too many wrong tokens from one address, or too many requests that wait.",
			"rate_limited"),
		"InternalError": no("A bug.", "internal_error"),
		"Unavailable": no("etcd cannot decide now, or too many requests are under way; a wait for a lock that somebody "+
			"cancelled is execution_aborted, a change whose audit line cannot be written audit_unavailable, a kept "+
			"request that cannot be read request_unavailable.", "store_unavailable", "overloaded", "execution_aborted",
			"audit_unavailable", "request_unavailable"),
	}
}

// responses are the answers of an endpoint: its own, and those of all of its access and method.
func (g *generator) responses(e *documented) node {
	names := []string{"BadRequest", "Unauthorized", "Forbidden", "MethodNotAllowed", "HostRefused", "RateLimited",
		"InternalError", "Unavailable"}
	if e.access == forCallback {
		names[2] = "CrossSite"
	}
	if e.method == http.MethodPost {
		names = append(names, "BodyTooLarge", "UnsupportedMediaType")
	}
	all := node{}
	for _, name := range names {
		all[fmt.Sprint(refusals()[name].status)] = refTo("responses", name)
	}
	for _, a := range e.answers {
		all[fmt.Sprint(a.status)] = g.answer(a)
	}
	return all
}

func (g *generator) answer(a answer) node {
	o, headers := node{"description": a.about}, node{}
	switch of := a.of.(type) {
	case nil:
	case media:
		o["content"] = node{string(of): node{"schema": node{}}}
	case problem:
		schema := any(refTo("schemas", cmp.Or(a.schema, "Problem")))
		if a.status == http.StatusBadRequest && a.schema != "" { // beside what every endpoint refuses
			schema = node{"oneOf": []any{schema, refTo("schemas", "Problem")}}
		}
		o["description"] = a.about + " Codes: `" + strings.Join(a.codes, "`, `") + "`."
		o["content"], o["x-codes"] = node{"application/problem+json": node{"schema": schema}}, a.codes
	default:
		o["content"] = node{"application/json": node{"schema": g.kind(of, nil)}}
	}
	if a.header != "" {
		headers[a.header] = node{"schema": g.kind(nil, nil)}
	}
	if slices.Contains([]int{http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable},
		a.status) {
		headers["Retry-After"] = node{"description": "Whole seconds, 1 to 60.", "schema": g.kind(number{1, 60, 0}, nil)}
	}
	if len(headers) > 0 {
		o["headers"] = headers
	}
	return o
}

func (g *generator) operation(e *documented) node {
	summary := regexp.MustCompile(`^.*?[.?]( |$)`).FindString(e.about)
	more := e.about[len(summary):]
	o := node{"operationId": e.id, "summary": strings.TrimRight(summary, ". "), "tags": []string{e.tag},
		"responses": g.responses(e), "security": map[access][]node{
			forRead: {{}, {"token": []string{"read"}}}, forWrite: {{"token": []string{"write"}}},
			forBodies: {{"token": []string{"bodies"}}}, forCallback: {{"callbackKey": []string{}}},
		}[e.access]}
	if e.whole != "" {
		more = strings.TrimSpace(more + " Not for tokens that are limited to workflows.")
	}
	if more != "" {
		o["description"] = more
	}
	var parameters []node
	for _, one := range e.query {
		p := node{"name": one.name, "in": "query", "schema": g.kind(one.kind, nil)}
		if about, _ := g.about(one, reflect.TypeOf(e.takes)); about != "" {
			p["description"] = about
		}
		if _, ok := one.kind.(must); ok {
			p["required"] = true
		}
		parameters = append(parameters, p)
	}
	if parameters != nil {
		o["parameters"] = parameters
	}
	if e.body != nil {
		content := node{"schema": g.kind(e.body, reflect.TypeOf(e.takes))}
		if e.example != "" {
			content["example"] = json.RawMessage(e.example)
		}
		o["requestBody"] = node{"required": true, "content": node{"application/json": content}}
	}
	return o
}

func TestEveryFieldThatAClientSetsIsAnInputOfItsEndpoint(t *testing.T) {
	for _, e := range descriptions() {
		if e.takes == nil {
			continue
		}
		names := slices.Concat(e.query, e.body).names()
		for f := range reflect.TypeOf(e.takes).Fields() {
			isName := func(name string) bool { return strings.EqualFold(name, inputName(f)) }
			if !slices.ContainsFunc(names, isName) {
				t.Errorf("%s %s has no input for %T.%s", e.method, e.path, e.takes, f.Name)
			}
		}
	}
}

func TestABodyTakesWhatOpenAPISays(t *testing.T) {
	r := newRig(t, unreachable{}, nil)
	for i, e := range descriptions() {
		if e.body == nil {
			continue
		}
		names := slices.Sorted(slices.Values(e.body.names()))
		a := r.want(400, "bad_request", e.method, requests[i].path, opsToken, `{"?":1}`)
		if !strings.HasSuffix(a.text("detail"), "known are "+strings.Join(names, ", ")) {
			t.Errorf("%s %s has %v: %s", e.method, e.path, names, a.body)
		}
	}
}
