package dist

import (
	"bytes"
	"os"
	"path/filepath"
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
		{"Redistribution and use in source and binary forms … promote products derived from this software", []string{"BSD-3-Clause"}},
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
