package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// whatToDo is for files that cannot be used.
const whatToDo = "bring a backup back with hooklock embedded restore, or set data_dir to a new place, which knows no earlier event"

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
	size, err := written(path)
	if err != nil {
		return fmt.Errorf("its database %s: %w; %s", path, err, whatToDo)
	}
	if info.Size() < size {
		return fmt.Errorf("its database %s has %d bytes of %d; %s", path, info.Size(), size, whatToDo)
	}
	return nil
}

// written is how large a database has to be for all that was written into it.
func written(path string) (int64, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
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
