package dist

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// File is one file of an archive.
type File struct {
	Name    string // with slashes
	Mode    fs.FileMode
	Content []byte
}

// ReadFile reads a file for an archive, where it is called name.
func ReadFile(path, name string, mode fs.FileMode) (File, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return File{}, fmt.Errorf("read %s: %w", name, err)
	}
	return File{name, mode, content}, nil
}

// ReadFolder reads the files that are directly in a folder, in the order of their names; in the
// archive they are in the folder name.
func ReadFolder(path, name string) ([]File, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	var files []File
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		f, err := ReadFile(filepath.Join(path, e.Name()), name+"/"+e.Name(), 0o644)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// Tar writes files as they are given, with one time and no owner.
func Tar(files []File, epoch time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Mode: int64(f.Mode.Perm()), Size: int64(len(f.Content)),
			ModTime: epoch, Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("write %s: %w", f.Name, err)
		}
		if _, err := w.Write(f.Content); err != nil {
			return nil, fmt.Errorf("write %s: %w", f.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("end the archive: %w", err)
	}
	return b.Bytes(), nil
}

// TarGz is Tar, compressed without a name or a time of its own.
func TarGz(files []File, epoch time.Time) ([]byte, error) {
	plain, err := Tar(files, epoch)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(plain)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("compress the archive: %w", err)
	}
	return b.Bytes(), nil
}

// Sums is the name of the file of checksums: `sha256sum -c SHA256SUMS` reads it.
const Sums = "SHA256SUMS"

// WriteSums writes the checksums of all files in dir.
func WriteSums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read the release: %w", err)
	}
	var lines []string
	for _, e := range entries {
		if e.IsDir() || e.Name() == Sums {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return fmt.Errorf("read the release: %w", err)
		}
		sum := sha256.Sum256(content)
		lines = append(lines, hex.EncodeToString(sum[:])+"  "+e.Name()+"\n")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	if err := os.WriteFile(filepath.Join(dir, Sums), []byte(strings.Join(lines, "")), 0o644); err != nil {
		return fmt.Errorf("write the checksums: %w", err)
	}
	return nil
}
