package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrInUse says that another process has the directory.
var ErrInUse = errors.New("in use by another hooklock")

// State is what is in a directory of an embedded etcd.
type State struct {
	Exists bool  // false: Start would create it
	Size   int64 // of the database, bytes; 0 where there is none
	Free   int64 // bytes of the disk that this user may still write
}

// Look checks whether Start could use dir, without changing anything in it. ErrInUse comes with a
// valid State; any other error says what to do.
func Look(dir string) (State, error) {
	var s State
	there, err := nearestDir(dir)
	if err != nil {
		return s, err
	}
	s.Exists = there == dir
	if err := unix.Access(there, unix.W_OK|unix.X_OK); err != nil {
		return s, fmt.Errorf("write to %s: %w; set data_dir to a directory that this user may write", there, err)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(there, &disk); err == nil {
		s.Free = int64(disk.Bavail) * int64(disk.Bsize) //nolint:unconvert // its type differs between systems
	}
	if info, err := os.Stat(filepath.Join(dir, "member", "snap", "db")); err == nil {
		s.Size = info.Size()
	}
	if err := checkUnlocked(dir); err != nil {
		return s, err
	}
	return s, checkIntact(dir)
}

// nearestDir returns dir, or the directory in which it would be created.
func nearestDir(dir string) (string, error) {
	for {
		info, err := os.Stat(dir)
		switch parent := filepath.Dir(dir); {
		case err == nil && !info.IsDir():
			return "", fmt.Errorf("%s is not a directory; set data_dir to one", dir)
		case err == nil:
			return dir, nil
		case !errors.Is(err, fs.ErrNotExist) || parent == dir:
			return "", fmt.Errorf("look at the data directory: %w; set data_dir to a directory that this user may use",
				err)
		default:
			dir = parent
		}
	}
}

// checkUnlocked locks the directory for a moment.
func checkUnlocked(dir string) error {
	f, err := os.Open(filepath.Join(dir, lockName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at the data directory's lock: %w; is this the user that hooklock runs as?", err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return ErrInUse
	}
	return nil
}
