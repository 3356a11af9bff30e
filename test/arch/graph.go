package arch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// Package is one package of this module, as a program that uses it sees it: without its tests.
type Package struct {
	ImportPath string
	Imports    []string // what its files name
	Deps       []string // what it reaches, also through others
}

// Load asks the go command for the packages of the module that dir is in.
func Load(dir string) ([]Package, error) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	return decode(strings.NewReader(string(out)))
}

func decode(r io.Reader) ([]Package, error) {
	var packages []Package
	for d := json.NewDecoder(r); ; {
		var p Package
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("read go list: %w", err)
		}
		packages = append(packages, p)
	}
}

// covers tells whether a pattern means path: the path itself, or with "/..." at its end also
// everything below.
func covers(pattern, path string) bool {
	root, tree := strings.CutSuffix(pattern, "/...")
	return path == root || tree && strings.HasPrefix(path, root+"/")
}

func coversAny(patterns []string, path string) bool {
	for _, p := range patterns {
		if covers(p, path) {
			return true
		}
	}
	return false
}

// standard tells whether path is in the standard library: no other first element of an import path
// goes without a dot, but our own.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && first != module
}
