package parked

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
)

// area is the part of a store that an Archive uses: files in folders, by names with slashes.
type area interface {
	// put writes a file, and makes its folder if need be. It need not survive a crash of the
	// machine.
	put(ctx context.Context, folder, name string, b []byte) error
	get(ctx context.Context, name string) ([]byte, error) // ErrNotKept: there is none
	has(ctx context.Context, name string) error           // ErrNotKept: there is none
	remove(ctx context.Context, name string) error        // nil if there is none
	removeAll(ctx context.Context, folder string) error   // nil if there is none
	// names returns the names of what is in a folder, files and folders; none if there is no such
	// folder.
	names(ctx context.Context, folder string) ([]string, error)
}

// tree is a disk with folders in it.
type tree interface {
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	MkdirAll(name string, perm fs.FileMode) error
	Lstat(name string) (fs.FileInfo, error)
	Remove(name string) error
	RemoveAll(name string) error
}

// dirArea is the area in the folder of a Dir. No file is synced: what is lost then is what the
// newest minute brought.
type dirArea struct{ *Dir }

func (d dirArea) tree() tree { return d.disk.(tree) }

func (d dirArea) put(ctx context.Context, folder, name string, b []byte) error {
	return d.told("keep a request in", d.ask(ctx, func() error {
		const flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		f, err := d.tree().OpenFile(folder+"/"+name, flags, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			if err = d.tree().MkdirAll(folder, 0o700); err == nil {
				f, err = d.tree().OpenFile(folder+"/"+name, flags, 0o600)
			}
		}
		if err != nil {
			return err
		}
		_, err = f.Write(b)
		if err = errors.Join(err, f.Close()); err != nil {
			return errors.Join(err, d.tree().Remove(folder+"/"+name))
		}
		return nil
	}))
}

func (d dirArea) get(ctx context.Context, name string) (b []byte, err error) {
	err = d.ask(ctx, func() (err error) { b, err = d.read(name); return err })
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotKept
	}
	if err != nil {
		return nil, d.told("read a request from", err)
	}
	return b, nil
}

func (d dirArea) has(ctx context.Context, name string) error {
	err := d.ask(ctx, func() error { _, err := d.tree().Lstat(name); return err })
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotKept
	}
	return d.told("look for a request in", err)
}

func (d dirArea) remove(ctx context.Context, name string) error {
	return d.told("delete a request from", d.ask(ctx, func() error { return d.Dir.remove(name) }))
}

func (d dirArea) removeAll(ctx context.Context, folder string) error {
	return d.told("delete requests from", d.ask(ctx, func() error { return d.tree().RemoveAll(folder) }))
}

func (d dirArea) names(ctx context.Context, folder string) (names []string, err error) {
	err = d.ask(ctx, func() (err error) {
		f, err := d.tree().OpenFile(folder, os.O_RDONLY, 0)
		if err != nil {
			return err
		}
		names, err = f.Readdirnames(-1)
		return errors.Join(err, f.Close())
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, d.told("list the requests in", err)
	}
	return names, nil
}

// told names the folder in an error; nil stays nil.
func (d dirArea) told(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", doing, d.path, err)
}

// s3Area is the area in the bucket of an S3.
type s3Area struct{ *S3 }

func (s s3Area) put(ctx context.Context, folder, name string, b []byte) error {
	return s.putObject(ctx, s.folder()+folder+"/"+name, b)
}

func (s s3Area) get(ctx context.Context, name string) ([]byte, error) {
	return s.getObject(ctx, s.folder()+name)
}

func (s s3Area) has(ctx context.Context, name string) error {
	ctx, cancel := s.within(ctx)
	defer cancel()
	_, err := s.client.Load().StatObject(ctx, s.options.Bucket, s.folder()+name, minio.StatObjectOptions{})
	if minio.ToErrorResponse(err).StatusCode == http.StatusNotFound { // the answer to a HEAD has no code
		return ErrNotKept
	}
	return s.failed("look for a request in", err)
}

func (s s3Area) remove(ctx context.Context, name string) error {
	return s.removeObject(ctx, s.folder()+name)
}

func (s s3Area) removeAll(ctx context.Context, folder string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	all := minio.ListObjectsOptions{Prefix: s.folder() + folder + "/", Recursive: true}
	objects := func(yield func(minio.ObjectInfo) bool) {
		for object := range s.client.Load().ListObjectsIter(ctx, s.options.Bucket, all) {
			if object.Err != nil {
				failed = s.failed("list the requests in", object.Err)
				return
			}
			if !yield(object) {
				return
			}
		}
	}
	results, err := s.client.Load().RemoveObjectsWithIter(ctx, s.options.Bucket, objects, minio.RemoveObjectsOptions{})
	if err != nil {
		return s.failed("delete requests from", err)
	}
	for one := range results {
		if one.Err != nil && failed == nil {
			failed = s.failed("delete requests from", one.Err)
		}
	}
	return errors.Join(failed, s.failed("list the requests in", ctx.Err()))
}

func (s s3Area) names(ctx context.Context, folder string) (names []string, err error) {
	prefix := s.folder() + folder + "/"
	for object := range s.client.Load().ListObjectsIter(ctx, s.options.Bucket,
		minio.ListObjectsOptions{Prefix: prefix}) {
		if object.Err != nil {
			return nil, s.failed("list the requests in", object.Err)
		}
		names = append(names, path.Base(strings.TrimSuffix(object.Key, "/")))
	}
	return names, s.failed("list the requests in", ctx.Err())
}
