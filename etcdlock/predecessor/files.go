package predecessor

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	processFile = "process-" // and a random name: the file of a process
	newFile     = "new-"     // and a random name: one that is not locked yet
	keepOthers  = 24 * time.Hour
)

// folder is a directory with files of processes, and the one of this process.
type folder struct {
	dir  string
	boot string
	own  *os.File // locked; nil = there is none yet
}

// openFolder makes the directory, if need be. It returns an error if its locks are not trusted.
func openFolder(dir string) (*folder, error) {
	if dir == "" {
		return nil, errors.New("data_dir is empty")
	}
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	if err := checkAskable(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if _, err := checkTrusted(dir); err != nil {
		return nil, err
	}
	return &folder{dir: dir, boot: boot}, nil
}

// writeOwnFile puts the head into the file of this process, which it makes at first. The file has
// its name only when it is locked and has its head.
func (d *folder) writeOwnFile(h head) error {
	if d.own != nil {
		return d.writeHead(d.own, h)
	}
	f, err := os.CreateTemp(d.dir, newFile)
	if err != nil {
		return err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		err = d.writeHead(f, h)
	}
	if err == nil { // room for proofs: a full disk cannot refuse them
		_, err = f.WriteAt(make([]byte, slotCount*slotSize), headSize)
	}
	if err == nil {
		err = os.Rename(f.Name(), d.pathOf(f))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		_ = f.Close()
		return err
	}
	d.own = f
	return nil
}

// pathOf returns the path that a file made by writeOwnFile has at last.
func (d *folder) pathOf(f *os.File) string {
	return filepath.Join(d.dir, processFile+strings.TrimPrefix(filepath.Base(f.Name()), newFile))
}

func (d *folder) writeHead(f *os.File, h head) (err error) {
	h.Version, h.Boot = headVersion, d.boot
	if h.Device, h.Inode, err = fileIdentity(f); err != nil {
		return err
	}
	page, err := h.encode()
	if err != nil {
		return err
	}
	_, err = f.WriteAt(page, 0)
	return err
}

// ownPath returns the path of the file of this process; "" if it has none.
func (d *folder) ownPath() string {
	if d.own == nil {
		return ""
	}
	return d.pathOf(d.own)
}

// close gives the file of this process up. With remove nothing is left to do for a successor.
func (d *folder) close(remove bool) {
	if d.own == nil {
		return
	}
	if remove {
		_ = os.Remove(d.ownPath())
	}
	_ = d.own.Close()
	d.own = nil
}

// otherFiles returns the paths of the files of other processes, and removes what a process that was
// killed while it made its file has left.
func (d *folder) otherFiles(now time.Time) []string {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil
	}
	var paths []string
	for _, e := range entries {
		path := filepath.Join(d.dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), processFile) && path != d.ownPath():
			paths = append(paths, path)
		case strings.HasPrefix(e.Name(), newFile):
			if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > keepOthers {
				_ = os.Remove(path)
			}
		}
	}
	return paths
}

// orphan is the file of a dead process, with its lock.
type orphan struct {
	file *os.File
	path string
	head *head // nil: it says nothing that may be acted on
}

// lockOrphan locks the file of another process. It returns nil if that lives, or if another process
// is at work on the file.
func (d *folder) lockOrphan(path string) *orphan {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	o := &orphan{file: f, path: path}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil || !o.inPlace() {
		_ = f.Close()
		return nil
	}
	page := make([]byte, headSize)
	if _, err := f.ReadAt(page, 0); err != nil && !errors.Is(err, io.EOF) {
		return o
	}
	h, err := decodeHead(page)
	if err != nil {
		return o
	}
	device, inode, err := fileIdentity(f)
	if err == nil && h.Boot == d.boot && h.Device == device && h.Inode == inode {
		o.head = h
	}
	return o
}

// inPlace reports whether the path still names the locked file: its owner, or another process, may
// have removed it before it was locked.
func (o *orphan) inPlace() bool {
	mine, err := o.file.Stat()
	if err != nil || !mine.Mode().IsRegular() {
		return false
	}
	there, err := os.Lstat(o.path)
	return err == nil && os.SameFile(mine, there)
}

// unlockFile gives the lock back. A file of which nothing came for a day is removed.
func (o *orphan) unlockFile(now time.Time) {
	info, err := o.file.Stat()
	if err == nil && now.Sub(info.ModTime()) > keepOthers {
		_ = os.Remove(o.path)
	}
	_ = o.file.Close()
}

// removeFile removes the file of a process whose sessions have ended.
func (o *orphan) removeFile() {
	_ = os.Remove(o.path)
	_ = o.file.Close()
}
