package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"hooklock/deploy/tools/dist"
)

const version = "v0.0.0-test.1"

func checkout(t *testing.T) dist.Source {
	t.Helper()
	s, err := dist.NewSource(version)
	if err != nil {
		t.Fatal(err)
	}
	s.Epoch = time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	return s
}

// tree is every file below dir.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestTheImageIsTheSameTwiceAndKeepsTheRulesOfOCI(t *testing.T) {
	s := checkout(t)
	first, second := filepath.Join(t.TempDir(), "image"), filepath.Join(t.TempDir(), "image")
	for _, out := range []string{first, second} {
		if err := run(s, out); err != nil {
			t.Fatal(err)
		}
	}
	a, b := tree(t, filepath.Dir(first)), tree(t, filepath.Dir(second))
	if len(a) != len(b) || len(a) < 8 {
		t.Fatalf("%d and %d files", len(a), len(b))
	}
	for name := range a {
		if a[name] != b[name] {
			t.Errorf("%s is different the second time", name)
		}
	}
	top, err := layout.ImageIndexFromPath(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Error(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 ||
		manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != version {
		t.Fatalf("%+v, %v", manifest, err)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	images, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range images.Manifests {
		platforms = append(platforms, m.Platform.String())
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(m.Platform.Architecture, func(t *testing.T) { looksRight(t, image, m.Platform.Architecture) })
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("platforms %v", platforms)
	}
	t.Run("runs", func(t *testing.T) { runs(t, first+".tar") })
}

func looksRight(t *testing.T, image v1.Image, arch string) {
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := file.Config
	if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/usr/bin/hooklock"}) ||
		!slices.Equal(c.Cmd, []string{"serve", "--config", "/etc/hooklock/sidecar.yaml"}) {
		t.Errorf("config %+v", c)
	}
	if c.Labels["org.opencontainers.image.version"] != version ||
		c.Labels["org.opencontainers.image.created"] != "2026-01-02T03:04:06Z" {
		t.Errorf("labels %v", c.Labels)
	}
	if c.Labels["org.opencontainers.image.licenses"] != dist.Licence ||
		c.Labels["org.opencontainers.image.revision"] != checkout(t).Revision {
		t.Errorf("labels %v", c.Labels)
	}
	if file.Architecture != arch || file.OS != "linux" || len(file.RootFS.DiffIDs) != 1 {
		t.Errorf("%+v", file)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	layer, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer layer.Close()
	found := map[string]string{}
	var roots bytes.Buffer
	for r := tar.NewReader(layer); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found[h.Name] = fmt.Sprintf("%#o %d:%d", h.Mode, h.Uid, h.Gid)
		if strings.HasSuffix(h.Name, ".crt") {
			if _, err := io.Copy(&roots, r); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, want := range map[string]string{
		"usr/bin/hooklock": "0755 0:0", "var/lib/hooklock/": "0700 65532:65532", "etc/passwd": "0644 0:0",
		"tmp/": "01777 0:0", "etc/hooklock/": "0755 0:0",
	} {
		if found[name] != want {
			t.Errorf("%s is %q, want %q", name, found[name], want)
		}
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(roots.Bytes()) {
		t.Error("no authorities")
	}
}

// runs starts the image in a container, where a tool is installed that needs no daemon for it.
func runs(t *testing.T, archive string) {
	buildah, err := exec.LookPath("buildah")
	if err != nil {
		t.Skip("buildah is not installed: the image is not run (Debian: buildah)")
	}
	if os.Getuid() != 0 {
		t.Skip("this is not root: the image is not run")
	}
	dir := t.TempDir()
	do := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(buildah, append([]string{"--storage-driver", "vfs", "--root", dir + "/root", "--runroot",
			dir + "/run"}, args...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("buildah %v: %v\n%s", args, err, &stderr)
		}
		return strings.TrimSpace(string(out))
	}
	image := do("pull", "oci-archive:"+archive)
	container := do("from", "--pull-never", image)
	if said := do("run", "--isolation", "chroot", container, "--", "/usr/bin/hooklock",
		"version"); !strings.HasPrefix(said, "hooklock "+version+" ") {
		t.Errorf("hooklock version: %s", said)
	}
}
