package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	etcdstorage "go.etcd.io/etcd/server/v3/storage"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"golang.org/x/sys/unix"
)

// lockName is the file whose lock marks the directory as in use.
const lockName = "lock"

// prepareDir makes the directory and locks it for this process. etcd itself would wait for another
// process for ever.
func prepareDir(dir string) (*os.File, error) {
	if dir == "" {
		return nil, errors.New("embedded etcd: no directory given; set data_dir")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w; set data_dir to a directory that this user may write", err)
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("look at the data directory: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("data_dir %s is not a directory", dir)
	case info.Mode().Perm()&0o077 != 0:
		if err := os.Chmod(dir, 0o700); err != nil {
			return nil, fmt.Errorf("others may read the data directory, and it could not be changed: %w; chmod 700 %s",
				err, dir)
		}
	}
	return lockDir(dir)
}

func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write to the data directory: %w; this user needs write access to %s, and the disk "+
			"free space", err, dir)
	}
	// The lock belongs to the open file: it ends with the process, however that ends.
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		if err := checkWritable(f); err != nil {
			_ = f.Close()
			return nil, err
		}
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("data directory %s is in use by another hooklock: stop it, or give this one its own "+
			"data_dir", dir)
	}
	return nil, fmt.Errorf("lock the data directory %s: %w; a local file system is needed", dir, err)
}

// files are those that a Server has open: its lock, its database and its log.
type files struct {
	lock *os.File
	data []os.FileInfo // the database and the log, as last seen; nil of one that could not be read
}

// noteCurrent records which files the database and the log are: a defragmentation puts another
// database there.
func (f *files) noteCurrent() {
	f.data = nil
	for _, path := range dataPaths(filepath.Dir(f.lock.Name())) {
		info, _ := os.Stat(path)
		f.data = append(f.data, info)
	}
}

// inPlace reports whether the directory of the lock is still the one that was locked, with its
// data. It returns false only if that is certain.
func (f *files) inPlace() bool {
	mine, err := f.lock.Stat()
	if err != nil {
		return true
	}
	there, err := os.Stat(f.lock.Name())
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(mine, there) {
		return false
	}
	for i, path := range dataPaths(filepath.Dir(f.lock.Name())) {
		there, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && f.data[i] != nil && !os.SameFile(f.data[i], there) {
			return false
		}
	}
	return true
}

// dataPaths returns the paths of the database and the log in a directory.
func dataPaths(dir string) []string {
	return []string{filepath.Join(dir, "member", "snap", "db"), filepath.Join(dir, "member", "wal")}
}

// checkWritable finds a full disk before etcd does: that would end the process.
func checkWritable(f *os.File) error {
	block := make([]byte, 64<<10)
	_, err := f.WriteAt(block, 0)
	if err == nil {
		err = f.Sync()
	}
	if cut := f.Truncate(0); err == nil {
		err = cut
	}
	if err != nil {
		return fmt.Errorf("write to the data directory: %w; free some space on the disk of %s", err, f.Name())
	}
	return nil
}

// checkAddressSpace finds a limit of the process's address space before etcd does, whose panic
// cannot be recovered. etcd reserves the database's addresses at its start, so that it does not
// have to move it later. They take no memory.
func checkAddressSpace(quota int64) error {
	size := int64(backend.InitialMmapSize)
	if quota != etcdstorage.DefaultQuotaBytes {
		size = quota + quota/10 // what etcd reserves if the quota is not its default
	}
	space, err := unix.Mmap(-1, 0, int(size), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return fmt.Errorf("%d MiB of addresses for the database: %w; raise the limit of this process's addresses "+
			"(ulimit -v, LimitAS=)", size>>20, err)
	}
	return unix.Munmap(space)
}
