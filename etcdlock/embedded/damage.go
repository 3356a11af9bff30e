package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// whatToDo is the advice for files that cannot be used.
const whatToDo = "bring a backup back with hooklock embedded restore, or set data_dir to a new place, which knows " +
	"no earlier event"

const (
	opening   = time.Second // how long other programs may have the database open to look at it, as hooklock doctor
	lookAgain = 20 * time.Millisecond
)

// checkIntact finds a database or a log that was cut short or is gone. etcd would die of it without
// a message: it maps the database into memory, so the system ends the process at a page that is
// missing, and its panic cannot be recovered.
func checkIntact(dir string) error {
	logs, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil {
		return fmt.Errorf("look for the log: %w", err)
	}
	for _, path := range logs {
		if info, err := os.Stat(path); err == nil && info.Size() == 0 {
			return fmt.Errorf("its log %s is empty; %s", path, whatToDo)
		}
	}
	path := filepath.Join(dir, "member", "snap", "db")
	info, err := os.Stat(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look at its database: %w", err)
	case (err != nil || info.Size() == 0) && len(logs) == 0:
		return nil // the directory was never used
	case err != nil || info.Size() == 0:
		return fmt.Errorf("its database %s is gone or empty, and its log is there; %s", path, whatToDo)
	}
	if err := checkUnused(path); err != nil {
		return err
	}
	size, err := writtenSize(path)
	if err != nil {
		return fmt.Errorf("its database %s: %w; %s", path, err, whatToDo)
	}
	if info.Size() < size {
		return fmt.Errorf("its database %s has %d bytes of %d; %s", path, info.Size(), size, whatToDo)
	}
	return nil
}

// findContents says what is in a directory before it is used. The lock file outlives its process,
// so it tells a folder that was emptied from a new one.
func findContents(dir string) Found {
	for _, path := range dataPaths(dir) {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return Records
		}
	}
	if _, err := os.Stat(filepath.Join(dir, lockName)); err == nil {
		return Emptied
	}
	return Nothing
}

// checkUnused returns an error if another program has the database open, as a tool that looks at
// it: etcd would wait for that one for ever.
func checkUnused(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open its database: %w; is this the user that hooklock runs as?", err)
	}
	defer f.Close() // and with it the lock
	for began := time.Now(); errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB),
		unix.EWOULDBLOCK); time.Sleep(lookAgain) {
		if time.Since(began) > opening {
			return fmt.Errorf("another program has its database %s open (fuser, lsof or lslocks name it): end that "+
				"one, and start again", path)
		}
	}
	return nil
}

// writtenSize returns how large a database has to be for everything that was written into it.
func writtenSize(path string) (int64, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: opening})
	if err != nil {
		return 0, err
	}
	defer db.Close()
	tx, err := db.Begin(false)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() //nolint:errcheck // nothing was changed
	return tx.Size(), nil
}
