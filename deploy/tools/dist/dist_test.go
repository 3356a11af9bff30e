package dist

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"
)

func TestThePageOfLicencesIsFresh(t *testing.T) {
	s, err := NewSource("test")
	if err != nil {
		t.Fatal(err)
	}
	modules, err := s.Modules(Targets...)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(s.Root, "docs/licences.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, LicencePage(modules)) {
		t.Error("docs/licences.md is not what is linked in; run make licences")
	}
	for _, m := range modules {
		if len(m.Texts) == 0 || !bytes.Contains(LicenceTexts(modules), []byte(m.Path+" "+m.Version)) {
			t.Errorf("%s has no text", m.Path)
		}
	}
}

func TestLicencesAreKnownByTheirWords(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"Apache License\n   Version 2.0, January 2004", []string{"Apache-2.0"}},
		{"Redistribution and use in source and binary\nforms", []string{"BSD-2-Clause"}},
		{"Redistribution and use in source and binary forms … promote products derived from this software",
			[]string{"BSD-3-Clause"}},
		{"GNU GENERAL PUBLIC LICENSE Version 3", nil},
	} {
		if got := classify(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%q: %v", c.text, got)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("do no harm"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := licence(dir); err == nil {
		t.Error("an unknown licence was let through")
	}
}

func TestTheEpochIsThatOfTheEnvironment(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	s, err := NewSource("v1")
	if err != nil || !s.Epoch.Equal(time.Unix(1700000000, 0)) {
		t.Errorf("%v, %v", s.Epoch, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, err := NewSource("v1"); err == nil {
		t.Error("an epoch that is no number was let through")
	}
	t.Setenv("SOURCE_DATE_EPOCH", "")
	if _, err := NewSource(""); err == nil {
		t.Error("a release without a version")
	}
}

// The names are those of the specifications (in-toto Statement v1, SLSA provenance v1), spelled out
// here a second time.
func TestProvenanceSaysWhatWasMadeFromWhat(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hooklock.tar.gz")
	if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Source{Version: "v1.2.3", Epoch: time.Unix(1700000000, 0),
		Revision: "0123456789abcdef0123456789abcdef01234567"}
	if err := s.WriteProvenance(file, "release"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file + ".intoto.json")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	at := func(path ...any) any {
		var v any = got
		for _, step := range path {
			switch step := step.(type) {
			case string:
				v, _ = v.(map[string]any)[step]
			case int:
				v = v.([]any)[step]
			}
		}
		return v
	}
	for _, c := range []struct {
		want any
		path []any
	}{
		{"https://in-toto.io/Statement/v1", []any{"_type"}},
		{"https://slsa.dev/provenance/v1", []any{"predicateType"}},
		{"hooklock.tar.gz", []any{"subject", 0, "name"}},
		{"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", []any{"subject", 0, "digest", "sha256"}},
		{"urn:hooklock:make:v1", []any{"predicate", "buildDefinition", "buildType"}},
		{"release", []any{"predicate", "buildDefinition", "externalParameters", "target"}},
		{"v1.2.3", []any{"predicate", "buildDefinition", "externalParameters", "version"}},
		{1700000000.0, []any{"predicate", "buildDefinition", "externalParameters", "sourceDateEpoch"}},
		{runtime.Version(), []any{"predicate", "buildDefinition", "internalParameters", "go"}},
		{s.Revision, []any{"predicate", "buildDefinition", "resolvedDependencies", 0, "digest", "gitCommit"}},
		{"urn:hooklock:whoever-runs-make", []any{"predicate", "runDetails", "builder", "id"}},
	} {
		if v := at(c.path...); v != c.want {
			t.Errorf("%v is %v, want %v", c.path, v, c.want)
		}
	}
}
