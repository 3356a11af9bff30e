package requests

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"hooklock/idem"
)

// dirArea is the area in the folder of a Dir. Each process appends to a file of its own on each
// shelf, frame after frame: a file a request cost a fifth of an event's CPU, and an inode. No file
// is synced: what a crash of the machine loses then is what the newest minute brought.
//
// A frame is found by reading the heads of all of its shelf, once: where they are is remembered.
// It is erased where it is, so that two processes that erase at a time do not undo each other.
type dirArea struct {
	*Dir
	process string
	failed  atomic.Int64 // writes; after one no more is appended to its file

	mu     sync.Mutex // held during disk calls, but those of writeFrames
	found  map[string]*frameFile
	frames int // in found
}

// frameFile is what is known of a file of frames.
type frameFile struct {
	read int64 // so many bytes
	at   map[idem.ExecutionID]int64
}

// maxFound is of how many frames the places are remembered: some 100 bytes each.
const maxFound = 200_000

func newDirArea(d *Dir, process string) *dirArea {
	return &dirArea{Dir: d, process: process, found: map[string]*frameFile{}}
}

func (d *dirArea) writeFrames(ctx context.Context, s shelf, batch []*unwritten) {
	size := 0
	for _, u := range batch {
		size += len(u.frame)
	}
	b := make([]byte, 0, size)
	for _, u := range batch {
		b = append(b, u.frame...)
	}
	name := d.process + "." + strconv.FormatInt(d.failed.Load(), 10)
	err := d.wrapError("keep requests in",
		d.askDisk(ctx, func() error { return d.appendFile(s.folderPath(), name, b) }))
	if err == nil {
		return
	}
	d.failed.Add(1)
	for _, u := range batch {
		u.err = err
	}
}

// appendFile appends to a file, or leaves it as it was.
func (d *dirArea) appendFile(folder, name string, b []byte) error {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	f, err := d.disk.OpenFile(folder+"/"+name, flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err = d.disk.MkdirAll(folder, 0o700); err == nil {
			f, err = d.disk.OpenFile(folder+"/"+name, flags, 0o600)
		}
	}
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && len(b) > 0 {
		if _, err = f.Write(b); err != nil {
			err = errors.Join(err, f.Truncate(info.Size()))
		}
	}
	return errors.Join(err, f.Close())
}

func (d *dirArea) readFrame(ctx context.Context, s shelf, execution idem.ExecutionID) ([]byte, error) {
	sealed, err := d.findFrame(ctx, s, execution, func(f *os.File, offset int64, size int) ([]byte, error) {
		b := make([]byte, frameHead+size)
		if _, err := f.ReadAt(b, offset); err != nil {
			return nil, err
		}
		sealed, ok := decodeFrame(execution, b)
		if !ok {
			return nil, fmt.Errorf("%w: what is there was cut short, or is not what was written", ErrNotKept)
		}
		return sealed, nil
	})
	return sealed, d.wrapError("read a request from", err)
}

func (d *dirArea) hasFrame(ctx context.Context, s shelf, execution idem.ExecutionID) error {
	_, err := d.findFrame(ctx, s, execution, func(*os.File, int64, int) ([]byte, error) { return nil, nil })
	return d.wrapError("look for a request in", err)
}

func (d *dirArea) eraseFrame(ctx context.Context, s shelf, execution idem.ExecutionID) error {
	_, err := d.findFrame(ctx, s, execution, func(f *os.File, offset int64, size int) ([]byte, error) {
		_, err := f.WriteAt(make([]byte, frameHead-frameSum+size), offset+int64(frameSum))
		return nil, err
	})
	if errors.Is(err, ErrNotKept) {
		return nil
	}
	return d.wrapError("delete a request from", err)
}

// findFrame returns what do returns, which is called with the file that has the frame of an
// execution, and with its place and size. It returns ErrNotKept if there is none.
func (d *dirArea) findFrame(ctx context.Context, s shelf, execution idem.ExecutionID, do inFrame) ([]byte, error) {
	return askFor(ctx, d.Dir, func() ([]byte, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		names, err := d.listFolder(s.folderPath())
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			b, err := d.findFrameIn(s.folderPath()+"/"+name, execution, do)
			if err == nil || !errors.Is(err, ErrNotKept) {
				return b, err
			}
		}
		return nil, ErrNotKept
	})
}

// inFrame does something with a frame in a file. It may run after its caller has gone on.
type inFrame func(f *os.File, offset int64, size int) ([]byte, error)

// findFrameIn is findFrame for one file.
func (d *dirArea) findFrameIn(name string, execution idem.ExecutionID, do inFrame) (b []byte, err error) {
	f, err := d.disk.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotKept
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if d.frames > maxFound {
		clear(d.found)
		d.frames = 0
	}
	if d.found[name] == nil {
		d.found[name] = &frameFile{at: map[idem.ExecutionID]int64{}}
	}
	of := d.found[name]
	offset, is := of.at[execution]
	if !is {
		if err := d.lookOver(of, f); err != nil {
			return nil, err
		}
		if offset, is = of.at[execution]; !is {
			return nil, ErrNotKept
		}
	}
	head := make([]byte, frameHead+1+len(execution))
	if _, err := f.ReadAt(head, offset); err != nil {
		return nil, err
	}
	if id, _, ok := cutID(head[frameHead:]); !ok || id != execution { // it was erased
		return nil, ErrNotKept
	}
	size, _ := frameSize(head)
	return do(f, offset, size)
}

// lookOver reads what was added to a file since it was read.
func (d *dirArea) lookOver(of *frameFile, f io.ReaderAt) error {
	r := bufio.NewReaderSize(io.NewSectionReader(f, of.read, 1<<62), 64<<10)
	for {
		head, err := r.Peek(frameHead + 1 + 255)
		if len(head) <= frameHead {
			return ignoreEOF(err)
		}
		size, ok := frameSize(head)
		if !ok {
			return nil
		}
		if len(head) < frameHead+min(size, 1+255) {
			return ignoreEOF(err) // it is being written
		}
		id, _, is := cutID(head[frameHead:min(len(head), frameHead+size)]) // before Discard, which overwrites head
		if n, err := r.Discard(frameHead + size); n < frameHead+size {
			return ignoreEOF(err) // it is being written
		}
		if is {
			of.at[id] = of.read
			d.frames++
		}
		of.read += int64(frameHead + size)
	}
}

func (d *dirArea) removeAll(ctx context.Context, s shelf) error {
	return d.wrapError("delete requests from", d.askDisk(ctx, func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		for name, of := range d.found {
			if strings.HasPrefix(name, s.folderPath()+"/") {
				d.frames -= len(of.at)
				delete(d.found, name)
			}
		}
		return d.disk.RemoveAll(s.folderPath())
	}))
}

func (d *dirArea) noteCount(ctx context.Context, name string) error {
	return d.wrapError("count the requests in",
		d.askDisk(ctx, func() error { return d.appendFile(countsFolder, name, nil) }))
}

func (d *dirArea) forgetCount(ctx context.Context, name string) error {
	return d.wrapError("count the requests in",
		d.askDisk(ctx, func() error { return d.removeFile(countsFolder + "/" + name) }))
}

func (d *dirArea) listNames(ctx context.Context, folder string) ([]string, error) {
	names, err := askFor(ctx, d.Dir, func() ([]string, error) { return d.listFolder(folder) })
	return names, d.wrapError("list the requests in", err)
}

func (d *dirArea) listFolder(folder string) (names []string, err error) {
	f, err := d.disk.OpenFile(folder, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names, err = f.Readdirnames(-1)
	return names, errors.Join(err, f.Close())
}

// wrapError names the folder in an error; nil stays nil, and ErrNotKept is no error of the folder.
func (d *dirArea) wrapError(doing string, err error) error {
	if err == nil || errors.Is(err, ErrNotKept) {
		return err
	}
	return fmt.Errorf("%s %s: %w", doing, d.path, err)
}
