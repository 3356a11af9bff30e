//go:build linux

package kubelet

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Image is what a container runs.
type Image struct {
	// Root is a folder with the image's files; empty: the container sees the machine's, and mounts
	// of volumes are left out.
	Root string
	// Entrypoint is what is run where the pod says no command.
	Entrypoint []string
	// Env is set where the pod says nothing else, as NAME=value.
	Env []string
}

// Unpack reads an OCI image layout, of the one image for linux and arch in it, and puts its files
// below to.
func Unpack(layout, arch, to string) (Image, error) {
	blob := func(digest string, v any) error {
		text, err := os.ReadFile(filepath.Join(layout, "blobs", strings.Replace(digest, ":", "/", 1)))
		if err != nil {
			return err
		}
		return json.Unmarshal(text, v)
	}
	type descriptor struct {
		Digest   string
		Platform struct{ Architecture string }
	}
	var index struct{ Manifests []descriptor }
	text, err := os.ReadFile(filepath.Join(layout, "index.json"))
	if err == nil {
		err = json.Unmarshal(text, &index)
	}
	if err != nil || len(index.Manifests) != 1 {
		return Image{}, fmt.Errorf("index of the image: %d entries, %w", len(index.Manifests), err)
	}
	if err := blob(index.Manifests[0].Digest, &index); err != nil {
		return Image{}, err
	}
	for _, d := range index.Manifests {
		if d.Platform.Architecture != arch {
			continue
		}
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		var config struct {
			Config struct{ Entrypoint, Env []string }
		}
		if err := errors.Join(blob(d.Digest, &manifest), blob(manifest.Config.Digest, &config)); err != nil {
			return Image{}, err
		}
		for _, l := range manifest.Layers {
			if err := untar(filepath.Join(layout, "blobs", strings.Replace(l.Digest, ":", "/", 1)), to); err != nil {
				return Image{}, fmt.Errorf("layer of the image: %w", err)
			}
		}
		return Image{Root: to, Entrypoint: config.Config.Entrypoint, Env: config.Config.Env}, nil
	}
	return Image{}, fmt.Errorf("%s has no image for %s", layout, arch)
}

func untar(layer, to string) error {
	f, err := os.Open(layer)
	if err != nil {
		return err
	}
	defer f.Close()
	plain, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for files := tar.NewReader(plain); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path := filepath.Join(to, filepath.Clean("/"+h.Name))
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o755)
		case tar.TypeReg:
			var text []byte
			if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
				text, err = io.ReadAll(files)
			}
			if err == nil {
				err = os.WriteFile(path, text, fs.FileMode(h.Mode)) //nolint:gosec // an image that this project has made
			}
		}
		if err != nil {
			return err
		}
	}
}

// link makes a copy of a tree whose files are the same ones.
func link(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := filepath.Join(to, strings.TrimPrefix(path, from))
		if d.IsDir() {
			return os.MkdirAll(at, 0o755)
		}
		return os.Link(path, at)
	})
}
