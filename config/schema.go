package config

import (
	"bytes"
	_ "embed"
)

//go:generate go test -run TestTheSchemaIsGeneratedFromTheTypes -update .

//go:embed sidecar.schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of sidecar.yaml, for editors and for checks without
// Hooklock. It is generated from the types and their comments: after a change to them, run go
// generate. The caller owns the bytes.
func Schema() []byte { return bytes.Clone(schema) }
