// Command packages makes a deb and an rpm for each Linux that a release has a program for, as
// deploy/packages/nfpm.yaml says. `make packages` runs it.
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	_ "github.com/goreleaser/nfpm/v2/rpm"

	"hooklock/deploy/tools/dist"
)

func main() {
	version := flag.String("version", "", "version to stamp")
	out := flag.String("out", "", "folder for the packages")
	arch := flag.String("arch", "", "for this architecture alone, such as amd64; empty: all of a release")
	maintainer := flag.String("maintainer", "built from source <root@localhost>", "who made them")
	flag.Parse()
	source, err := dist.NewSource(*version)
	if err == nil {
		err = packages(source, *arch, *maintainer, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "packages: "+err.Error())
		os.Exit(1)
	}
}

func packages(source dist.Source, arch, maintainer, out string) error {
	if out == "" {
		return errors.New("say where to with -out")
	}
	out, err := filepath.Abs(out)
	if err != nil {
		return fmt.Errorf("name the folder of the packages: %w", err)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("make the folder of the packages: %w", err)
	}
	if err := os.Chdir(source.Root); err != nil { // nfpm reads relative paths
		return fmt.Errorf("go to the checkout: %w", err)
	}
	stage, err := os.MkdirTemp("", "hooklock-packages-")
	if err != nil {
		return fmt.Errorf("make a folder to work in: %w", err)
	}
	defer os.RemoveAll(stage)
	modules, err := source.Modules(dist.Targets...)
	if err != nil {
		return err
	}
	if err := papers(source, modules, stage); err != nil {
		return err
	}
	for _, t := range dist.Targets {
		if t.OS != "linux" || arch != "" && t.Arch != arch {
			continue
		}
		if err := packagesFor(source, t, modules, stage, maintainer, out); err != nil {
			return err
		}
	}
	return dist.WriteSums(out)
}

// packagesFor makes the packages of one platform, each with its bill of materials and its
// provenance.
func packagesFor(source dist.Source, t dist.Target, modules []dist.Module, stage, maintainer, out string) error {
	program := filepath.Join(stage, "hooklock")
	if err := source.Build(t, program); err != nil {
		return err
	}
	bom, err := source.BillOfMaterials(program, modules)
	if err != nil {
		return err
	}
	for _, format := range []string{"deb", "rpm"} {
		file, err := pack(source, format, t.Arch, stage, maintainer, out)
		if err == nil {
			err = errors.Join(os.WriteFile(file+".cdx.json", bom, 0o644), source.WriteProvenance(file, "packages"))
		}
		if err != nil {
			return fmt.Errorf("%s for %s: %w", format, t.Arch, err)
		}
	}
	return nil
}

// papers writes what is the same in all packages.
func papers(source dist.Source, modules []dist.Module, stage string) error {
	if err := os.WriteFile(filepath.Join(stage, "THIRD-PARTY.txt"), dist.LicenceTexts(modules), 0o644); err != nil {
		return fmt.Errorf("write the licences: %w", err)
	}
	host := filepath.Join(stage, "host")
	if err := source.Build(dist.Host(), host); err != nil {
		return err
	}
	if err := source.Papers(host, stage); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(stage, "man", "*.1"))
	if err != nil {
		return fmt.Errorf("find the manual pages: %w", err)
	}
	for _, page := range pages {
		if err := compress(page); err != nil {
			return fmt.Errorf("compress %s: %w", filepath.Base(page), err)
		}
	}
	return nil
}

// compress replaces a file by file.gz, which says neither when nor where it was made.
func compress(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	return errors.Join(w.Close(), os.WriteFile(path+".gz", b.Bytes(), 0o644), os.Remove(path))
}

// pack makes one package, and returns its path.
func pack(source dist.Source, format, arch, stage, maintainer, out string) (string, error) {
	values := map[string]string{"STAGE": stage, "VERSION": packageVersion(source.Version), "ARCH": arch,
		"MAINTAINER": maintainer}
	config, err := nfpm.ParseFileWithEnvMapping("deploy/packages/nfpm.yaml", func(name string) string {
		return values[name]
	})
	if err != nil {
		return "", err
	}
	info, err := config.Get(format)
	if err != nil {
		return "", err
	}
	info.MTime = source.Epoch
	info.RPM.BuildHost = "localhost" // else the name of this machine is in it
	info = nfpm.WithDefaults(info)
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return "", err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := packager.Package(info, &b); err != nil {
		return "", err
	}
	file := filepath.Join(out, packager.ConventionalFileName(info))
	return file, os.WriteFile(file, b.Bytes(), 0o644)
}

// packageVersion turns v1.2.3 into 1.2.3. What is no release (a commit, a description of one) sorts
// below all releases, and has no hyphen, which means something else in a package's version.
func packageVersion(version string) string {
	plain := strings.ReplaceAll(strings.TrimPrefix(version, "v"), "-", ".")
	if strings.HasPrefix(version, "v") && len(plain) > 0 && plain[0] >= '0' && plain[0] <= '9' {
		return plain
	}
	return "0~" + plain
}
