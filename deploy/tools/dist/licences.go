package dist

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Module is a module whose code is in the program.
type Module struct {
	Path, Version string
	// Licence is an SPDX expression; Texts are the files that say so, and the notices that must go
	// with them.
	Licence string
	Texts   []Text
}

// Text is a file of a module.
type Text struct{ Name, Content string }

// Modules are the modules that are linked into the program for any of the targets, by path.
func (s Source) Modules(targets ...Target) ([]Module, error) {
	found := map[string]Module{}
	for _, t := range targets {
		cmd := exec.Command("go", "list", "-deps", "-json=Module", "./cmd/hooklock")
		cmd.Dir = s.Root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.OS, "GOARCH="+t.Arch)
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct {
				Module *struct {
					Path, Version, Dir string
					Main               bool
				}
			}
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("go list: %w", err)
			}
			if p.Module == nil || p.Module.Main || found[p.Module.Path].Path != "" {
				continue
			}
			m := Module{Path: p.Module.Path, Version: p.Module.Version}
			if m.Texts, m.Licence, err = licence(p.Module.Dir); err != nil {
				return nil, fmt.Errorf("%s %s: %w", m.Path, m.Version, err)
			}
			found[m.Path] = m
		}
	}
	modules := make([]Module, 0, len(found))
	for _, m := range found {
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b Module) int { return strings.Compare(a.Path, b.Path) })
	return modules, nil
}

// kinds are the licences that we link, each with words that no other one has. A text of another
// kind is an error: somebody has to read it.
var kinds = []struct{ id, words, without string }{
	{"Apache-2.0", "Apache License Version 2.0, January 2004", ""},
	{"Apache-2.0", "Licensed under the Apache License, Version 2.0", ""},
	{"BSD-2-Clause", "Redistribution and use in source and binary forms",
		"promote products derived from this software"},
	{"BSD-3-Clause", "promote products derived from this software", ""},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee", ""},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy", ""},
	{"MPL-2.0", "Mozilla Public License Version 2.0", ""},
}

// licence reads the licence of the module in dir.
func licence(dir string) (texts []Text, expression string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, "", fmt.Errorf("read its folder: %w", err)
	}
	var ids []string
	for _, e := range entries {
		upper := strings.ToUpper(e.Name())
		states := strings.HasPrefix(upper, "LICEN") || strings.HasPrefix(upper, "COPYING")
		if e.IsDir() || !states && !strings.HasPrefix(upper, "NOTICE") && !strings.HasPrefix(upper, "PATENTS") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, "", fmt.Errorf("read its licence: %w", err)
		}
		texts = append(texts, Text{e.Name(), string(content)})
		if states {
			ids = append(ids, classify(string(content))...)
		}
	}
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) == 0 {
		return nil, "", errors.New("its licence is none that we know: read it, and add it to dist/licences.go if we " +
			"may link it")
	}
	return texts, strings.Join(ids, " AND "), nil
}

// classify returns the SPDX identifiers of the licences in a text.
func classify(text string) (ids []string) {
	flat := strings.Join(strings.Fields(text), " ")
	for _, k := range kinds {
		if strings.Contains(flat, k.words) && (k.without == "" || !strings.Contains(flat, k.without)) {
			ids = append(ids, k.id)
		}
	}
	return ids
}

// LicencePage is docs/licences.md.
func LicencePage(modules []Module) []byte {
	var b bytes.Buffer
	b.WriteString(`# Licences of what is linked in

Written by ` + "`make licences`" + `; a test keeps it up to date. Releases contain the texts, as ` + "`THIRD-PARTY.txt`" + `. The Go standard library is BSD-3-Clause.
`)
	by := map[string][]Module{}
	for _, m := range modules {
		by[m.Licence] = append(by[m.Licence], m)
	}
	for _, licence := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(&b, "\n## %s\n\n```\n", licence)
		for _, m := range by[licence] {
			fmt.Fprintf(&b, "%s@%s\n", m.Path, m.Version)
		}
		b.WriteString("```\n")
	}
	return b.Bytes()
}

// LicenceTexts are the texts that must go with the program.
func LicenceTexts(modules []Module) []byte {
	var b bytes.Buffer
	b.WriteString("Hooklock contains the following modules. Their licences ask that these texts go with it.\n")
	for _, m := range modules {
		for _, t := range m.Texts {
			fmt.Fprintf(&b, "\n%s\n%s %s: %s\n\n%s", strings.Repeat("=", 80), m.Path, m.Version, t.Name,
				strings.TrimRight(t.Content, "\n"))
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}
