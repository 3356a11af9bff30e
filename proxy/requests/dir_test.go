package requests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hooklock/idem"
)

func openDir(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return d
}

func list(t *testing.T, s Store) []idem.ExecutionID {
	t.Helper()
	var found []idem.ExecutionID
	for e, err := range s.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, e)
	}
	slices.Sort(found)
	return found
}

// storeKeepsItsWord is what each Store promises.
func storeKeepsItsWord(t *testing.T, s Store) {
	ctx := t.Context()
	e := execution(1)
	if _, err := s.Get(ctx, e); !errors.Is(err, ErrNotKept) {
		t.Errorf("get of nothing: %v", err)
	}
	if err := s.Delete(ctx, e); err != nil {
		t.Errorf("delete of nothing: %v", err)
	}
	for _, b := range [][]byte{[]byte("first"), bytes.Repeat([]byte("long "), 100_000), {}} {
		if err := s.Put(ctx, e, b); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(ctx, e); err != nil || !bytes.Equal(got, b) {
			t.Errorf("got %d bytes of %d, %v", len(got), len(b), err)
		}
	}
	if err := s.Put(ctx, execution(2), []byte("second")); err != nil {
		t.Fatal(err)
	}
	if got := list(t, s); !slices.Equal(got, []idem.ExecutionID{e, execution(2)}) {
		t.Errorf("listed %v", got)
	}
	for range s.List(ctx) { // may be left early
		break
	}
	if err := s.Delete(ctx, e); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(ctx, e); !errors.Is(err, ErrNotKept) {
		t.Errorf("get of what was deleted: %v", err)
	}
	if got := list(t, s); !slices.Equal(got, []idem.ExecutionID{execution(2)}) {
		t.Errorf("listed %v", got)
	}
	refusesOtherNames(t, s)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for name, err := range map[string]error{"put": s.Put(ended, e, nil), "get": second(s.Get(ended, e)),
		"delete": s.Delete(ended, e), "list": listed(ended, s)} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s after the end of its context: %v", name, err)
		}
	}
}

func refusesOtherNames(t *testing.T, s Store) {
	for _, e := range []idem.ExecutionID{"", "..", "../x", "exec_", execution(1) + "x", "exec_/" + execution(1)[6:],
		execution(1)[:36] + "\n", "EXEC_" + execution(1)[5:]} {
		for name, err := range map[string]error{"put": s.Put(t.Context(), e, nil), "get": second(s.Get(t.Context(), e)),
			"delete": s.Delete(t.Context(), e)} {
			if !errors.Is(err, idem.ErrExecutionID) {
				t.Errorf("%s of %q: %v", name, e, err)
			}
		}
	}
}

func second(_ []byte, err error) error { return err }

func listed(ctx context.Context, s Store) error {
	for _, err := range s.List(ctx) {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestAFolderMeetsTheContractOfAStore(t *testing.T) {
	storeKeepsItsWord(t, openDir(t, filepath.Join(t.TempDir(), "requests")))
}

func TestAFolderIsThisUsersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "requests")
	d := openDir(t, path)
	if err := d.Put(t.Context(), execution(1), []byte("x")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{path: 0o700 | fs.ModeDir,
		filepath.Join(path, string(execution(1))): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		path:                                 "chmod 700",
		filepath.Join(t.TempDir(), "a", "b"): "no such file",
		filepath.Join(path, string(execution(1))): "is no folder",
		"": "no folder is named",
	} {
		if d, err := OpenDir(path); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "park_store.dir") {
			t.Errorf("%q: %v %v", path, d, err)
		}
	}
}

func TestWhatHooklockDidNotMakeIsLeftAlone(t *testing.T) {
	path, outside := filepath.Join(t.TempDir(), "requests"), filepath.Join(t.TempDir(), "outside")
	d := openDir(t, path)
	if err := os.WriteFile(outside, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	link, folder, pending := string(execution(1)), string(execution(2)), string(execution(3))
	if err := errors.Join(
		os.Symlink(outside, filepath.Join(path, link)),
		os.Mkdir(filepath.Join(path, folder), 0o700),
		os.Symlink(outside, filepath.Join(path, pending+unfinished)),
		os.WriteFile(filepath.Join(path, "notes.txt"), nil, 0o600),
		os.WriteFile(filepath.Join(path, link+".old"), nil, 0o600),
		os.WriteFile(filepath.Join(path, unfinished), nil, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	if got := list(t, d); len(got) > 0 {
		t.Errorf("listed %v", got)
	}
	for _, e := range []idem.ExecutionID{execution(1), execution(2), execution(3)} {
		for name, err := range map[string]error{"put": d.Put(t.Context(), e, []byte("x")),
			"get": second(d.Get(t.Context(), e)), "delete": d.Delete(t.Context(), e)} {
			if err == nil || !strings.Contains(err.Error(), "Hooklock did not create it") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "mine" {
		t.Errorf("outside: %q, %v", b, err)
	}
}

// watched is a disk that writes down what is done, and fails where it is told to.
type watched struct {
	disk
	done []string
	fail string
}

var errDisk = errors.New("the disk is broken")

func (w *watched) step(format string, args ...any) error {
	step := strings.ReplaceAll(fmt.Sprintf(format, args...), string(execution(1)), "x")
	w.done = append(w.done, step)
	if step == w.fail {
		return errDisk
	}
	return nil
}

func (w *watched) Create(name string) (file, error) {
	if err := w.step("create %s", name); err != nil {
		return nil, err
	}
	f, err := w.disk.Create(name)
	return &watchedFile{f, w}, err
}

func (w *watched) Rename(from, to string) error {
	if err := w.step("rename %s %s", from, to); err != nil {
		return err
	}
	return w.disk.Rename(from, to)
}

func (w *watched) Remove(name string) error {
	return errors.Join(w.step("remove %s", name), w.disk.Remove(name))
}
func (w *watched) Sync() error { return errors.Join(w.step("sync folder"), w.disk.Sync()) }

type watchedFile struct {
	file
	w *watched
}

func (f *watchedFile) Write(b []byte) (int, error) {
	if err := f.w.step("write"); err != nil {
		n, _ := f.file.Write(b[:len(b)/2])
		return n, err
	}
	return f.file.Write(b)
}
func (f *watchedFile) Sync() error  { return errors.Join(f.w.step("sync file"), f.file.Sync()) }
func (f *watchedFile) Close() error { return errors.Join(f.file.Close(), f.w.step("close")) }

func TestTheFileReachesTheDiskBeforeItsNameAndBothBeforePutReturns(t *testing.T) {
	d := openDir(t, filepath.Join(t.TempDir(), "requests"))
	w := &watched{disk: d.disk}
	d.disk = w
	if err := d.Put(t.Context(), execution(1), []byte("bytes")); err != nil {
		t.Fatal(err)
	}
	want := []string{"create x.tmp", "write", "sync file", "close", "rename x.tmp x", "sync folder"}
	if !slices.Equal(w.done, want) {
		t.Errorf("did %q, want %q", w.done, want)
	}
	for _, step := range want {
		w.fail = ""
		if err := d.Delete(t.Context(), execution(1)); err != nil {
			t.Fatal(err)
		}
		w.fail = step
		if err := d.Put(t.Context(), execution(1), []byte("bytes")); !errors.Is(err, errDisk) {
			t.Errorf("%s fails, and Put says %v", step, err)
		}
		if _, err := os.Lstat(filepath.Join(d.path, string(execution(1))+unfinished)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s fails, and the unfinished file is there: %v", step, err)
		}
		if _, err := d.Get(t.Context(), execution(1)); step != "sync folder" && !errors.Is(err, ErrNotKept) {
			t.Errorf("%s fails, and Get says %v", step, err)
		}
	}
}

func TestAFailedPutLeavesWhatWasThere(t *testing.T) {
	d := openDir(t, filepath.Join(t.TempDir(), "requests"))
	if err := d.Put(t.Context(), execution(1), []byte("first")); err != nil {
		t.Fatal(err)
	}
	d.disk = &watched{disk: d.disk, fail: "write"}
	if err := d.Put(t.Context(), execution(1), []byte("second")); !errors.Is(err, errDisk) {
		t.Fatal(err)
	}
	if b, err := d.Get(t.Context(), execution(1)); err != nil || string(b) != "first" {
		t.Errorf("got %q, %v", b, err)
	}
}
