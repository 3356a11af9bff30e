package dist

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// The parts of in-toto Statement v1 and SLSA provenance v1 that we write
// (https://slsa.dev/spec/v1.0/provenance).
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

type resource struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

type provenance struct {
	BuildDefinition struct {
		BuildType            string         `json:"buildType"`
		ExternalParameters   map[string]any `json:"externalParameters"`
		InternalParameters   map[string]any `json:"internalParameters"`
		ResolvedDependencies []resource     `json:"resolvedDependencies,omitempty"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// What docs/releases.md says of these names.
const (
	buildType = "urn:hooklock:make:v1"
	builderID = "urn:hooklock:whoever-runs-make"
)

// WriteProvenance writes FILE.intoto.json beside a file of a release: which target of the Makefile
// made it, from which commit and with which Go. It is not signed: who publishes does that, with a
// key of his own, and answers for the builder.
func (s Source) WriteProvenance(file, target string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read what was made: %w", err)
	}
	sum := sha256.Sum256(content)
	st := statement{
		Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1",
		Subject: []resource{{filepath.Base(file), map[string]string{"sha256": hex.EncodeToString(sum[:])}}},
	}
	d := &st.Predicate.BuildDefinition
	d.BuildType = buildType
	d.ExternalParameters = map[string]any{"target": target, "version": s.Version, "sourceDateEpoch": s.Epoch.Unix()}
	d.InternalParameters = map[string]any{"go": runtime.Version()}
	if s.Revision != "" {
		d.ResolvedDependencies = []resource{{"source", map[string]string{"gitCommit": s.Revision}}}
	}
	st.Predicate.RunDetails.Builder.ID = builderID
	text, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return fmt.Errorf("write the provenance: %w", err)
	}
	return os.WriteFile(file+".intoto.json", append(text, '\n'), 0o644)
}
