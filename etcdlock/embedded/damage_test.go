package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A copy that was cut short, a disk that was full or that lost something, a hand that cleared up:
// none of it may end in the system's signal or etcd's panic.
func TestSaysWhatToDoAboutFilesThatAreDamaged(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "data")
	s := startIn(t, whole)
	for i := range 2000 {
		if _, err := s.Client().Put(context.Background(), fmt.Sprint("k", i), strings.Repeat("v", 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	database := filepath.Join("member", "snap", "db")
	logs, err := filepath.Glob(filepath.Join(whole, "member", "wal", "*.wal"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%v %v", logs, err)
	}
	log := filepath.Join("member", "wal", filepath.Base(logs[0]))
	cut := func(file string, size int64) func(string) error {
		return func(dir string) error { return os.Truncate(filepath.Join(dir, file), size) }
	}
	gone := func(file string) func(string) error {
		return func(dir string) error { return os.RemoveAll(filepath.Join(dir, file)) }
	}
	for name, damage := range map[string]func(dir string) error{
		"half of the database is there":   cut(database, 1<<20),
		"a page of the database is there": cut(database, 4096),
		"the database is empty":           cut(database, 0),
		"the database is gone":            gone(database),
		"all beside the log is gone":      gone(filepath.Dir(database)),
		"the log is empty":                cut(log, 0),
		"the log is gone":                 gone(log),
		"all beside the database is gone": gone(filepath.Dir(log)),
		"the database was never a database": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, database), make([]byte, 1<<20), 0o600)
		},
		"the log is another": func(dir string) error {
			f, err := os.OpenFile(filepath.Join(dir, log), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte("not what was there"), 100_000)
			return errors.Join(err, f.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			if err := damage(dir); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			again, err := Start(Options{Dir: dir})
			if err == nil {
				_ = again.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "hooklock embedded restore") {
				t.Errorf("got %v", err)
			}
			if took := time.Since(began); took > startTimeout/2 {
				t.Errorf("it was said after %v", took)
			}
		})
	}
}

// Whoever looks at the database with another tool has it locked, and nothing is damaged.
func TestSaysThatAnotherProgramHasItsDatabaseOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := startIn(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	for name, how := range map[string]int{"to write": unix.LOCK_EX, "to read": unix.LOCK_SH} {
		t.Run(name, func(t *testing.T) {
			db, err := os.OpenFile(filepath.Join(dir, "member", "snap", "db"), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if err := unix.Flock(int(db.Fd()), how); err != nil {
				t.Fatal(err)
			}
			again, err := Start(Options{Dir: dir})
			if err == nil {
				_ = again.Close()
			}
			_, seen := Look(dir)
			for _, err := range []error{err, seen} {
				if err == nil || !strings.Contains(err.Error(), "another program") ||
					strings.Contains(err.Error(), "restore") {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

// A hand that cleared up, or a service that clears temporary folders, may do so while the process
// runs.
func TestSaysThatItsFilesWereDeletedWhileTheyCanStillBeCopied(t *testing.T) {
	for name, deleted := range map[string]string{"all": "", "its data": "member",
		"its log": filepath.Join("member", "wal"), "its lock": lockName} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			s, log := small(t, dir, never)
			if err := s.tidier.tidyOnce(within(t)); err != nil || log.String() != "" {
				t.Fatalf("%v %q", err, log)
			}
			if _, err := s.Client().Put(within(t), "k", "v"); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(dir, deleted)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := s.tidier.tidyOnce(within(t)); err != nil {
					t.Fatal(err)
				}
			}
			if got := log.String(); strings.Count(got, "etcd.deleted") != 1 ||
				!strings.Contains(got, "hooklock embedded backup") || !strings.Contains(got, "admin.tokens") {
				t.Errorf("it said %q", got)
			}
			if space := s.Space(); !space.Deleted || !strings.Contains(space.String(), "its files were deleted") {
				t.Errorf("its space is %v", space)
			}
			backup, err := s.Snapshot(within(t))
			if err != nil {
				t.Fatal(err)
			}
			defer backup.Close()
			if n, err := io.Copy(io.Discard, backup); err != nil || n == 0 {
				t.Errorf("%v, %d bytes", err, n)
			}
		})
	}
}

// A hand that brings a backup back by copying files does not stop the process first.
func TestSaysThatItsFilesWereReplaced(t *testing.T) {
	for name, replaced := range map[string]string{"its database": filepath.Join("member", "snap", "db"),
		"its log": filepath.Join("member", "wal")} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			s, log := small(t, dir, never)
			if err := s.tidier.defragment(); err != nil { // that puts another file there, too
				t.Fatal(err)
			}
			if err := s.tidier.tidyOnce(within(t)); err != nil || s.Space().Deleted {
				t.Fatalf("%v %q", err, log)
			}
			path := filepath.Join(dir, replaced)
			if err := os.Rename(path, path+".old"); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := s.tidier.tidyOnce(within(t)); err != nil || !s.Space().Deleted ||
				strings.Count(log.String(), "etcd.deleted") != 1 {
				t.Errorf("%v %q", err, log)
			}
		})
	}
}
