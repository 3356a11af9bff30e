package admin

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// described compares an answer with openapi.json, and notes what of it was met.
func described(t testing.TB, method, path string, a *reply) {
	t.Helper()
	e, _, p := findEndpoint(allEndpoints(), method, path)
	if p != nil {
		if !strings.HasPrefix(path, "/v1/") && a.StatusCode == http.StatusOK {
			return
		}
		if err := document().check("answer", map[string]any{"$ref": "#/components/schemas/Problem"},
			a.json); method != "HEAD" && err != nil {
			t.Errorf("%s %s: %v", method, path, err)
		}
		met.note("code " + a.code())
		return
	}
	name := fmt.Sprintf("%s %s -> %d", e.method, e.path, a.StatusCode)
	response := document().response(e.method, e.path, a.StatusCode)
	if response == nil {
		t.Errorf("%s is not in openapi.json: %s", name, a.body)
		return
	}
	met.note(name)
	content, _ := response["content"].(map[string]any)
	if content == nil {
		if len(a.body) > 0 {
			t.Errorf("%s has a body: %s", name, a.body)
		}
		return
	}
	media, _ := content[a.Header.Get("Content-Type")].(map[string]any)
	if media == nil {
		t.Errorf("%s has Content-Type %q", name, a.Header.Get("Content-Type"))
		return
	}
	if err := document().check("answer", media["schema"], a.json); err != nil {
		t.Errorf("%s: %v: %s", name, err, a.body)
	}
	if codes, ok := response["x-codes"].([]any); ok && !slices.Contains(codes, any(a.code())) {
		t.Errorf("%s: code %s is not listed with it", name, a.code())
	}
	if code := a.code(); code != "" {
		met.note("code " + code)
	}
}

// seen is what tests have met of the description.
type seen struct {
	mu  sync.Mutex
	all map[string]bool
}

var met = &seen{all: map[string]bool{}}

func (s *seen) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[what] = true
}

func (s *seen) has(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[what]
}

// openapi is openapi.json, decoded.
type openapi map[string]any

var document = sync.OnceValue(func() openapi {
	var d openapi
	if err := json.Unmarshal(openAPI, &d); err != nil {
		panic(err)
	}
	return d
})

// at follows a reference such as #/components/schemas/Lock.
func (d openapi) at(ref string) map[string]any {
	var here any = map[string]any(d)
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		here = here.(map[string]any)[name]
	}
	return here.(map[string]any)
}

func (d openapi) resolve(v any) map[string]any {
	m, _ := v.(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		return d.at(ref)
	}
	return m
}

func (d openapi) operation(method, path string) map[string]any {
	item, _ := d["paths"].(map[string]any)[path].(map[string]any)
	op, _ := item[strings.ToLower(method)].(map[string]any)
	return op
}

func (d openapi) response(method, path string, status int) map[string]any {
	responses, _ := d.operation(method, path)["responses"].(map[string]any)
	return d.resolve(responses[fmt.Sprint(status)])
}

// check compares a value with a schema, as far as openapi.json uses JSON Schema, and notes the
// members of named schemas that it met.
func (d openapi) check(at string, schema, value any) error {
	m, _ := schema.(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		at = ref[strings.LastIndexByte(ref, '/')+1:]
		if err := d.check(at, d.at(ref), value); err != nil {
			return err
		}
	}
	if one, ok := m["oneOf"].([]any); ok {
		var errs []string
		for _, s := range one {
			err := d.check(at, s, value)
			if err == nil {
				return nil
			}
			errs = append(errs, err.Error())
		}
		return fmt.Errorf("%s: %s", at, strings.Join(errs, "; "))
	}
	if want, ok := m["const"]; ok && want != value {
		return fmt.Errorf("%s: %v is not %v", at, value, want)
	}
	if all, ok := m["enum"].([]any); ok {
		if !slices.Contains(all, value) {
			return fmt.Errorf("%s: %v is not one of %v", at, value, all)
		}
		met.note(fmt.Sprintf("%s = %v", at, value))
	}
	switch m["type"] {
	case "object":
		return d.checkObject(at, m, value)
	case "array":
		items, ok := value.([]any)
		if !ok {
			return fmt.Errorf("%s: %v is no array", at, value)
		}
		for _, item := range items {
			if err := d.check(at, m["items"], item); err != nil {
				return err
			}
		}
	case "string":
		s, ok := value.(string)
		if pattern, _ := m["pattern"].(string); !ok || !regexp.MustCompile(pattern).MatchString(s) {
			return fmt.Errorf("%s: %v is no such string (%s)", at, value, pattern)
		}
	case "integer":
		n, ok := value.(float64)
		if least, limited := m["minimum"].(float64); !ok || n != math.Trunc(n) || limited && n < least {
			return fmt.Errorf("%s: %v is no such integer", at, value)
		}
	case "boolean":
		if _, ok := value.(bool); !ok {
			return fmt.Errorf("%s: %v is no boolean", at, value)
		}
	}
	return nil
}

func (d openapi) checkObject(at string, schema map[string]any, value any) error {
	object, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: %v is no object", at, value)
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, there := object[name.(string)]; !there {
			return fmt.Errorf("%s: %v is missing", at, name)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, v := range object {
		property, known := properties[name]
		if !known { // names that are not known beforehand
			if property, known = schema["additionalProperties"].(map[string]any); known {
				name = "*"
			}
		}
		if !known {
			return fmt.Errorf("%s: %s is not described", at, name)
		}
		if err := d.check(at+"."+name, property, v); err != nil {
			return err
		}
		met.note(at + "." + name)
	}
	return nil
}

func TestOpenAPIReferencesLeadSomewhere(t *testing.T) {
	for _, m := range regexp.MustCompile(`"\$ref": "(#/[^"]+)"`).FindAllStringSubmatch(string(openAPI), -1) {
		if document().at(m[1]) == nil {
			t.Errorf("%s", m[1])
		}
	}
}
