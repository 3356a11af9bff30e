// Command release makes what is handed out: for each system an archive with the program, its manual
// pages, completions and licences, and a bill of materials; and the checksums of all of it. `make
// release` runs it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"hooklock/deploy/tools/dist"
)

func main() {
	version := flag.String("version", "", "version to stamp")
	out := flag.String("out", "", "folder for the release; it is emptied")
	page := flag.String("licences", "", "write the page of licences to this file, and nothing else")
	flag.Parse()
	source, err := dist.NewSource(*version)
	switch {
	case err != nil:
	case *page != "":
		err = writePage(source, *page)
	case *out == "":
		err = errors.New("say where to with -out")
	default:
		err = run(source, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release: "+err.Error())
		os.Exit(1)
	}
}

func writePage(source dist.Source, path string) error {
	modules, err := source.Modules(dist.Targets...)
	if err != nil {
		return err
	}
	return os.WriteFile(path, dist.LicencePage(modules), 0o644)
}

// run makes a release in the folder out, which it empties before.
func run(source dist.Source, out string) error {
	modules, err := source.Modules(dist.Targets...)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(out), os.MkdirAll(out, 0o755)); err != nil {
		return fmt.Errorf("empty the folder of the release: %w", err)
	}
	work, err := os.MkdirTemp("", "hooklock-release-")
	if err != nil {
		return fmt.Errorf("make a folder to work in: %w", err)
	}
	defer os.RemoveAll(work)
	if err := release(source, modules, work, out); err != nil {
		return err
	}
	return dist.WriteSums(out)
}

func release(source dist.Source, modules []dist.Module, work, out string) error {
	host := filepath.Join(work, "host")
	if err := source.Build(dist.Host(), host); err != nil {
		return err
	}
	if err := source.Papers(host, work); err != nil {
		return err
	}
	for _, t := range dist.Targets {
		program := filepath.Join(work, t.String())
		if err := source.Build(t, program); err != nil {
			return err
		}
		name := "hooklock_" + source.Version + "_" + t.String()
		files, err := contents(source, modules, t, work)
		if err != nil {
			return err
		}
		for i := range files {
			files[i].Name = name + "/" + files[i].Name
		}
		archive, err := dist.TarGz(files, source.Epoch)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, name+".tar.gz"), archive, 0o644); err != nil {
			return fmt.Errorf("write the archive: %w", err)
		}
		if err := source.WriteProvenance(filepath.Join(out, name+".tar.gz"), "release"); err != nil {
			return err
		}
		bom, err := source.BillOfMaterials(program, modules)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, name+".cdx.json"), bom, 0o644); err != nil {
			return fmt.Errorf("write the bill of materials: %w", err)
		}
	}
	return nil
}

// contents are the files of an archive.
func contents(source dist.Source, modules []dist.Module, t dist.Target, work string) ([]dist.File, error) {
	program, err := dist.ReadFile(filepath.Join(work, t.String()), "hooklock", 0o755)
	if err != nil {
		return nil, err
	}
	files := []dist.File{program, {Name: "THIRD-PARTY.txt", Mode: 0o644, Content: dist.LicenceTexts(modules)}}
	for _, name := range []string{"README.md", "CHANGELOG.md", "sidecar.yaml"} {
		f, err := dist.ReadFile(filepath.Join(source.Root, name), name, 0o644)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	folders := [][2]string{{filepath.Join(work, "man"), "man"}, {filepath.Join(work, "completions"), "completions"}}
	if t.OS == "linux" {
		folders = append(folders, [2]string{filepath.Join(source.Root, "deploy/systemd"), "systemd"})
	}
	for _, f := range folders {
		more, err := dist.ReadFolder(f[0], f[1])
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}
