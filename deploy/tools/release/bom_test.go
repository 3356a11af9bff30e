package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"hooklock/deploy/tools/dist"
)

// schema is CycloneDX's own, from the module of its Go library.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(strings.TrimSpace(string(dir)), "schema")
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{"http": local(folder), "https": local(folder)})
	s, err := c.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// local loads the schemas that the schema refers to from where it lies, instead of from the
// network.
type local string

// Load implements jsonschema.URLLoader.
func (dir local) Load(url string) (any, error) {
	name := filepath.Base(url)
	if name == "jsf-0.82.schema.json" {
		name = "jsf-0.82.schemax.json" // so it is called there
	}
	f, err := os.Open(filepath.Join(string(dir), name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return jsonschema.UnmarshalJSON(f)
}

func TestTheBillOfMaterialsOfThisSystem(t *testing.T) {
	s := checkout(t)
	modules, err := s.Modules(dist.Host())
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "hooklock")
	if err := s.Build(dist.Host(), program); err != nil {
		t.Fatal(err)
	}
	text, err := s.BillOfMaterials(program, modules)
	if err != nil {
		t.Fatal(err)
	}
	validBOM(t, dist.Host(), text)
	if err := schema(t).Validate(map[string]any{"bomFormat": "CycloneDX"}); err == nil {
		t.Error("the schema holds nothing")
	}
}

// validBOM says that a bill of materials is one, and that it names what is linked in.
func validBOM(t *testing.T, target dist.Target, text []byte) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema(t).Validate(value); err != nil {
		t.Error(err)
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	self := bom.Metadata.Component
	if self.Name != "hooklock" || self.Version != version || len(*self.Hashes) != 1 {
		t.Errorf("it is about %+v", self)
	}
	found := map[string]bool{}
	for _, c := range *bom.Components {
		found[c.Name] = true
		if c.Version == "" || !strings.HasPrefix(c.PackageURL, "pkg:golang/"+c.Name+"@") || len(*c.Licenses) != 1 {
			t.Errorf("%+v", c)
		}
	}
	for _, name := range []string{"std", "github.com/valyala/fasthttp", "go.etcd.io/etcd/client/v3"} {
		if !found[name] {
			t.Errorf("%s is not in it", name)
		}
	}
	if found["pgregory.net/rapid"] {
		t.Error("what only tests use is in it")
	}
	for _, p := range *self.Properties {
		if p.Name == "go:build:GOOS" && p.Value != target.OS {
			t.Errorf("it is for %s", p.Value)
		}
	}
}
