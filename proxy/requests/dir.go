package requests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"hooklock/idem"
)

// unfinished ends the name of a file that is being written. A crash leaves it behind; it is listed
// as its execution's.
const unfinished = ".tmp"

// Dir keeps each request in a file of one folder, named by its execution, with mode 0600. It
// touches regular files with such names alone, and follows no symbolic link below the folder.
//
// A disk call cannot be cancelled, and a disk that hangs keeps its thread. So calls run in
// goroutines of their own, few at a time, and the caller waits no longer than its context. What a
// Put writes after its caller has given up is an orphan for the Sweeper.
type Dir struct {
	disk   disk
	path   string        // for messages
	asking chan struct{} // has an element for each call that the disk has not answered
}

// maxAsking is how many calls of a disk run at a time. Each has a thread while the disk hangs.
const maxAsking = 32

// disk is the folder as Dir needs it; tests replace it.
type disk interface {
	Create(name string) (file, error) // a new file, to be written, readable by this user alone
	Open(name string) (file, error)
	Lstat(name string) (fs.FileInfo, error)
	Rename(from, to string) error
	Remove(name string) error
	Walk(each func(fs.DirEntry) bool) error // until each returns false
	Sync() error                            // the folder itself: what was created and renamed in it
	Close() error

	// below the folder, for requests.keep
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	MkdirAll(name string, perm fs.FileMode) error
	RemoveAll(name string) error
}

type file interface {
	io.ReadWriteCloser
	Sync() error
}

// OpenDir opens the folder at path, and creates it with mode 0700 if it is missing; its parent must
// exist. A folder that other users may read or write is refused. Close it.
func OpenDir(path string) (*Dir, error) {
	d, err := openDisk(path)
	if err != nil {
		return nil, fmt.Errorf("open the folder for parked requests: %w; park_store.dir is to be a folder of this "+
			"user's alone, or one that can be made", err)
	}
	return &Dir{disk: d, path: path, asking: make(chan struct{}, maxAsking)}, nil
}

// Close closes the folder when all calls have been answered. If ctx ends before, they keep it, and
// their threads. Nothing else may be called afterwards.
func (d *Dir) Close(ctx context.Context) error {
	for range maxAsking {
		select {
		case d.asking <- struct{}{}:
		case <-ctx.Done():
			return d.hangingError(ctx)
		}
	}
	return d.disk.Close()
}

// askDisk runs a call of the disk for as long as that takes, and waits for it until ctx ends.
func (d *Dir) askDisk(ctx context.Context, call func() error) error {
	_, err := askFor(ctx, d, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// askFor is askDisk for a call that returns something. The call must share no variable with its
// caller, which may have gone on: what it returns is the zero value then.
func askFor[T any](ctx context.Context, d *Dir, call func() (T, error)) (nothing T, err error) {
	if ctx.Err() != nil { // a select takes either of two that are ready
		return nothing, context.Cause(ctx)
	}
	select {
	case d.asking <- struct{}{}:
	case <-ctx.Done():
		return nothing, d.hangingError(ctx)
	}
	type answer struct {
		got T
		err error
	}
	come := make(chan answer, 1)
	go func() { // Close waits for it
		defer func() { <-d.asking }()
		got, err := call()
		come <- answer{got, err}
	}()
	select {
	case a := <-come:
		return a.got, a.err
	case <-ctx.Done():
		return nothing, d.hangingError(ctx)
	}
}

func (d *Dir) hangingError(ctx context.Context) error {
	return fmt.Errorf("the disk of %s has not answered: %w", d.path, context.Cause(ctx))
}

// Put writes a temporary file and renames it, and both the file and its name reach the disk before
// it returns.
func (d *Dir) Put(ctx context.Context, execution idem.ExecutionID, b []byte) error {
	return d.askDisk(ctx, func() error {
		name, err := d.fileName(execution)
		if err != nil {
			return err
		}
		if err := d.writeFile(name+unfinished, b); err != nil {
			return fmt.Errorf("keep a request in %s: %w", d.path, err)
		}
		if err := d.disk.Rename(name+unfinished, name); err != nil {
			return fmt.Errorf("keep a request in %s: %w", d.path, errors.Join(err, d.removeFile(name+unfinished)))
		}
		if err := d.disk.Sync(); err != nil {
			return fmt.Errorf("keep a request in %s: %w", d.path, err)
		}
		return nil
	})
}

// writeFile writes the file name with b in it, or leaves no such file.
func (d *Dir) writeFile(name string, b []byte) error {
	f, err := d.disk.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return errors.Join(err, d.removeFile(name))
	}
	return nil
}

// Get reads a file whole.
func (d *Dir) Get(ctx context.Context, execution idem.ExecutionID) ([]byte, error) {
	return askFor(ctx, d, func() ([]byte, error) {
		name, err := d.fileName(execution)
		if err != nil {
			return nil, err
		}
		b, err := d.readFile(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, ErrNotKept
		case err != nil:
			return nil, fmt.Errorf("read a request from %s: %w", d.path, err)
		}
		return b, nil
	})
}

func (d *Dir) readFile(name string) (b []byte, err error) {
	info, err := d.disk.Lstat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > int64(maxKept) {
		return nil, ErrFormat
	}
	f, err := d.disk.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b = make([]byte, info.Size())
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, err
	}
	return b, nil
}

// Delete removes a file, and what was left of writing it. A crash may bring the file back: then it
// is an orphan.
func (d *Dir) Delete(ctx context.Context, execution idem.ExecutionID) error {
	return d.askDisk(ctx, func() error {
		name, err := d.fileName(execution)
		if err != nil {
			return err
		}
		if err := errors.Join(d.removeFile(name), d.removeFile(name+unfinished)); err != nil {
			return fmt.Errorf("delete a request from %s: %w", d.path, err)
		}
		return nil
	})
}

// removeFile returns no error if the file is gone.
func (d *Dir) removeFile(name string) error {
	if err := d.disk.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// List yields the executions of the folder's files, in the folder's order.
func (d *Dir) List(ctx context.Context) iter.Seq2[idem.ExecutionID, error] {
	return func(yield func(idem.ExecutionID, error) bool) {
		ctx, enough := context.WithCancel(ctx)
		defer enough()
		var err error
		found, end := make(chan idem.ExecutionID), make(chan struct{})
		go func() {
			defer close(end)
			err = d.askDisk(ctx, func() error { return d.walkExecutions(ctx, found) })
		}()
		for {
			select {
			case execution := <-found:
				if !yield(execution, nil) {
					enough()
					<-end
					return
				}
			case <-end:
				if err != nil {
					yield("", fmt.Errorf("list the requests in %s: %w", d.path, err))
				}
				return
			}
		}
	}
}

// walkExecutions sends the executions of the folder's files.
func (d *Dir) walkExecutions(ctx context.Context, found chan<- idem.ExecutionID) error {
	err := d.disk.Walk(func(entry fs.DirEntry) bool {
		execution := idem.ExecutionID(strings.TrimSuffix(entry.Name(), unfinished))
		if _, err := storeName(execution); err != nil || !entry.Type().IsRegular() {
			return ctx.Err() == nil
		}
		select {
		case found <- execution:
			return true
		case <-ctx.Done():
			return false
		}
	})
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// fileName returns the name of an execution's file, if it is free or a file: anything else of that
// name does not belong to Hooklock.
func (d *Dir) fileName(execution idem.ExecutionID) (string, error) {
	name, err := storeName(execution)
	if err != nil {
		return "", err
	}
	for _, n := range []string{name, name + unfinished} {
		info, err := d.disk.Lstat(n)
		if err == nil && !info.Mode().IsRegular() {
			return "", fmt.Errorf("%s is not a regular file, and Hooklock did not create it; remove it",
				filepath.Join(d.path, n))
		}
	}
	return name, nil
}

// root is a disk below a folder.
type root struct{ *os.Root }

func openDisk(path string) (disk, error) {
	if path == "" {
		return nil, errors.New("no folder is named")
	}
	made := os.Mkdir(path, 0o700)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return nil, made
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s is no folder", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("others may look into %s: chmod 700 it, or name a folder inside of it that is not "+
			"there yet", path)
	}
	opened, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	if made == nil { // its own name must survive, too
		if err := syncFolder(os.Open(filepath.Dir(path))); err != nil {
			return nil, errors.Join(err, opened.Close())
		}
	}
	return root{opened}, nil
}

func (r root) Create(name string) (file, error) {
	return r.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (r root) Open(name string) (file, error) { return r.Root.Open(name) }

func (r root) Sync() error { return syncFolder(r.Root.Open(".")) }

func (r root) Walk(each func(fs.DirEntry) bool) (err error) {
	folder, err := r.Root.Open(".")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	for {
		entries, err := folder.ReadDir(256)
		for _, e := range entries {
			if !each(e) {
				return nil
			}
		}
		if err != nil {
			return ignoreEOF(err)
		}
	}
}

// ignoreEOF returns nil for the end of a folder.
func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func syncFolder(folder *os.File, err error) error {
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
