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

// whatToDo is for files that cannot be used.
const whatToDo = "bring a backup back with hooklock embedded restore, or set data_dir to a new place, which knows no earlier event"

const (
	opening   = time.Second // how long others may have the database that only look at it, as hooklock doctor
	lookAgain = 20 * time.Millisecond
)

// intact finds a database or a log that was cut short or is gone. etcd would not live to say so: it reads the database by addresses, so the system ends the
// process at a page that is not there, and it panics where nobody can recover it.
func intact(dir string) error {
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
		return nil // nothing was ever kept here
	case err != nil || info.Size() == 0:
		return fmt.Errorf("its database %s is gone or empty, and its log is there; %s", path, whatToDo)
	}
	if err := unused(path); err != nil {
		return err
	}
	size, err := written(path)
	if err != nil {
		return fmt.Errorf("its database %s: %w; %s", path, err, whatToDo)
	}
	if info.Size() < size {
		return fmt.Errorf("its database %s has %d bytes of %d; %s", path, info.Size(), size, whatToDo)
	}
	return nil
}

// find says what is in a directory before it is used. The lock outlives its process, so it tells a folder that was emptied from a new one.
func find(dir string) Found {
	for _, path := range data(dir) {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return Records
		}
	}
	if _, err := os.Stat(filepath.Join(dir, lockName)); err == nil {
		return Emptied
	}
	return Nothing
}

// unused is an error where another program has the database open, as who looks at it with another tool: etcd would wait for that one without an end.
func unused(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open its database: %w; is this the user that hooklock runs as?", err)
	}
	defer f.Close() // and with it the lock
	for began := time.Now(); errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK); time.Sleep(lookAgain) {
		if time.Since(began) > opening {
			return fmt.Errorf("another program has its database %s open (fuser, lsof or lslocks name it): end that one, and start again", path)
		}
	}
	return nil
}

// written is how large a database has to be for all that was written into it.
func written(path string) (int64, error) {
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
