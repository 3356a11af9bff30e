// Command image writes the container image of Hooklock as an OCI image layout, without a container
// engine and without a base image: the program, certificates of the public authorities, a user, and
// nothing else. `make image` runs it.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"hooklock/deploy/tools/dist"
)

func main() {
	version := flag.String("version", "", "version to stamp")
	out := flag.String("out", "", "folder for the OCI image layout; it is emptied. Its archive is put beside it, as "+
		"the folder's name and .tar")
	flag.Parse()
	source, err := dist.NewSource(*version)
	if err == nil {
		err = run(source, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "image: "+err.Error())
		os.Exit(1)
	}
}

func run(source dist.Source, out string) error {
	if out == "" {
		return errors.New("say where to with -out")
	}
	if err := os.RemoveAll(out); err != nil {
		return fmt.Errorf("empty the folder of the image: %w", err)
	}
	work, err := os.MkdirTemp("", "hooklock-image-")
	if err != nil {
		return fmt.Errorf("make a folder to work in: %w", err)
	}
	defer os.RemoveAll(work)
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, t := range dist.Targets {
		if t.OS != "linux" {
			continue
		}
		program := filepath.Join(work, t.String())
		if err := source.Build(t, program); err != nil {
			return err
		}
		image, err := newImage(source, t, program)
		if err != nil {
			return fmt.Errorf("image for %s: %w", t, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: t.OS, Architecture: t.Arch}},
		})
	}
	at, err := layout.Write(out, empty.Index)
	if err != nil {
		return fmt.Errorf("write the image layout: %w", err)
	}
	// The names that podman and skopeo, and containerd and Docker, look for.
	names := map[string]string{"org.opencontainers.image.ref.name": tag(source.Version),
		"io.containerd.image.name": "localhost/hooklock:" + tag(source.Version)}
	if err := at.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return fmt.Errorf("write the image layout: %w", err)
	}
	return archive(source, out)
}

// newImage is the image for one system.
func newImage(source dist.Source, t dist.Target, program string) (v1.Image, error) {
	content, err := contents(source, program)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	},
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("make the layer: %w", err)
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: source.Epoch}
	image, err = mutate.Append(image,
		mutate.Addendum{Layer: layer, History: v1.History{Created: created, CreatedBy: "make image"}})
	if err != nil {
		return nil, fmt.Errorf("add the layer: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the config: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = t.OS, t.Arch, created
	file.Config = v1.Config{
		User: user + ":" + user, WorkingDir: home,
		Entrypoint: []string{"/usr/bin/hooklock"}, Cmd: []string{"serve", "--config", "/etc/hooklock/sidecar.yaml"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Env:          []string{"PATH=/usr/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title": "hooklock",
			"org.opencontainers.image.description": "each webhook event runs once, each workflow one at a time, " +
				"across all replicas",
			"org.opencontainers.image.version":  source.Version,
			"org.opencontainers.image.created":  source.Epoch.Format("2006-01-02T15:04:05Z"),
			"org.opencontainers.image.licenses": dist.Licence,
		},
	}
	if source.Revision != "" {
		file.Config.Labels["org.opencontainers.image.revision"] = source.Revision
	}
	return mutate.ConfigFile(image, file)
}

// Who runs in the container: the number that distroless images use, too.
const (
	user = "65532"
	home = "/var/lib/hooklock"
)

// contents is the file system of the image.
func contents(source dist.Source, program string) ([]byte, error) {
	binary, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	modules, err := source.Modules(dist.Targets...)
	if err != nil {
		return nil, err
	}
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, fmt.Errorf("write the authorities: %w", err)
		}
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(name string, mode fs.FileMode, owner int, content []byte) {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: name, Mode: int64(mode), Uid: owner, Gid: owner, Size: int64(len(content)),
			ModTime: source.Epoch, Format: tar.FormatPAX,
		}
		if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err == nil {
			err = w.WriteHeader(h)
		}
		if err == nil {
			_, err = w.Write(content)
		}
	}
	const nobody = 65532
	for _, dir := range []string{"etc/", "etc/hooklock/", "etc/ssl/", "etc/ssl/certs/", "usr/", "usr/bin/",
		"usr/share/", "usr/share/doc/", "usr/share/doc/hooklock/", "var/", "var/lib/"} {
		add(dir, 0o755, 0, nil)
	}
	add("tmp/", 0o1777, 0, nil)
	add(strings.TrimPrefix(home, "/")+"/", 0o700, nobody, nil)
	add("etc/passwd", 0o644, 0, []byte("root:x:0:0:root:/:/sbin/nologin\nhooklock:x:"+user+":"+user+":hooklock:"+home+
		":/sbin/nologin\n"))
	add("etc/group", 0o644, 0, []byte("root:x:0:\nhooklock:x:"+user+":\n"))
	add("etc/ssl/certs/ca-certificates.crt", 0o644, 0, roots.Bytes())
	add("usr/share/doc/hooklock/THIRD-PARTY.txt", 0o644, 0, dist.LicenceTexts(modules))
	add("usr/bin/hooklock", 0o755, 0, binary)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("write the layer: %w", err)
	}
	return b.Bytes(), nil
}

// tag is a version as a tag may spell it.
func tag(version string) string { return strings.ReplaceAll(version, "+", "-") }

// archive writes the layout as one file, which podman load, docker load (25 and later) and ctr
// image import read.
func archive(source dist.Source, out string) error {
	var files []dist.File
	err := filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(out, path)
		if err != nil {
			return err
		}
		f, err := dist.ReadFile(path, filepath.ToSlash(name), 0o644)
		files = append(files, f)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the image layout: %w", err)
	}
	text, err := dist.Tar(files, source.Epoch)
	if err != nil {
		return err
	}
	if err := os.WriteFile(strings.TrimRight(out, "/")+".tar", text, 0o644); err != nil {
		return fmt.Errorf("write the archive of the image: %w", err)
	}
	return nil
}
