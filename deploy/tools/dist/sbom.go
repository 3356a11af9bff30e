package dist

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// The parts of CycloneDX 1.6 that we write (https://cyclonedx.org/docs/1.6/json).
type bom struct {
	Schema       string       `json:"$schema"`
	BOMFormat    string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	SerialNumber string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Licenses   []spdx     `json:"licenses,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

type spdx struct {
	Expression string `json:"expression"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// BillOfMaterials reads what is linked into a program, from the program itself, and returns it as
// CycloneDX 1.6 JSON. A module is only there if code of it is; go.mod may name more.
func (s Source) BillOfMaterials(program string, modules []Module) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("read what is linked in: %w", err)
	}
	binary, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	sum := sha256.Sum256(binary)
	self := component{
		Type: "application", Ref: "hooklock", Name: "hooklock", Version: s.Version,
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}},
	}
	for _, setting := range info.Settings {
		if setting.Key == "GOOS" || setting.Key == "GOARCH" || setting.Key == "CGO_ENABLED" ||
			setting.Key == "-trimpath" {
			self.Properties = append(self.Properties,
				property{"go:build:" + strings.TrimPrefix(setting.Key, "-"), setting.Value})
		}
	}
	b := bom{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", BOMFormat: "CycloneDX", SpecVersion: "1.6",
		SerialNumber: serial(sum), Version: 1,
		Metadata: metadata{Timestamp: s.Epoch.Format(time.RFC3339), Component: self},
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	std := "pkg:golang/std@" + goVersion
	b.Components = append(b.Components, component{
		Type: "library", Ref: std, Name: "std", Version: goVersion, PURL: std, Licenses: []spdx{{"BSD-3-Clause"}},
	})
	licences := map[string]string{}
	for _, m := range modules {
		licences[m.Path] = m.Licence
	}
	for _, d := range info.Deps {
		if d.Replace != nil || licences[d.Path] == "" {
			return nil, fmt.Errorf("%s is replaced, or has no licence: a release has neither", d.Path)
		}
		purl := "pkg:golang/" + d.Path + "@" + d.Version
		b.Components = append(b.Components, component{
			Type: "library", Ref: purl, Name: d.Path, Version: d.Version, PURL: purl,
			Licenses: []spdx{{licences[d.Path]}}, Properties: []property{{"go:sum", d.Sum}},
		})
	}
	own := dependency{Ref: self.Ref}
	for _, c := range b.Components {
		own.DependsOn = append(own.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{own}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the bill of materials: %w", err)
	}
	return append(text, '\n'), nil
}

// serial is a UUID that is made of the program: version 8 of RFC 9562, whose bits are ours to
// choose.
func serial(sum [sha256.Size]byte) string {
	id := sum[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
