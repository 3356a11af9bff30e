package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// told is one call of a Watcher's function.
type told struct {
	text string
	err  error
}

type watched struct {
	t    *testing.T
	path string
	got  chan told
}

func watch(t *testing.T, path, loaded string) watched {
	t.Helper()
	w := watched{t, path, make(chan told, 16)}
	watcher := NewWatcher(path, []byte(loaded), func(text []byte, err error) { w.got <- told{string(text), err} })
	if err := watcher.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Stop)
	return w
}

func (w watched) next() told {
	w.t.Helper()
	select {
	case got := <-w.got:
		return got
	case <-time.After(30 * time.Second):
		w.t.Fatal("nothing was told")
		return told{}
	}
}

// expect waits for a text. A file that is written in its place is empty for a moment, and where CPU
// is scarce it is read in that moment, too.
func (w watched) expect(text string) {
	w.t.Helper()
	got := w.next()
	for got == (told{}) {
		got = w.next()
	}
	if got.text != text || got.err != nil {
		w.t.Fatalf("told %q %v, want %q", got.text, got.err, text)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAFileThatIsWrittenOrRenamedOverIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sidecar.yaml")
	write(t, path, "1")
	w := watch(t, path, "1")
	write(t, path, "2")
	w.expect("2")
	write(t, path+".new", "3")
	must(t, os.Rename(path+".new", path))
	w.expect("3")
	write(t, path+".new", "4")
	must(t, os.Rename(path+".new", path))
	w.expect("4")
}

func TestAFileThatIsDeletedIsToldOnceAndAgainWhenItIsBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sidecar.yaml")
	write(t, path, "1")
	w := watch(t, path, "1")
	for range 2 {
		must(t, os.Remove(path))
		if got := w.next(); got.err == nil {
			t.Fatalf("told %q", got.text)
		}
		write(t, path, "1")
		w.expect("1")
	}
}

func TestAConfigMapThatSwapsItsLinkIsTold(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"1", "2", "3"} {
		must(t, os.Mkdir(filepath.Join(dir, "..v"+version), 0o755))
		write(t, filepath.Join(dir, "..v"+version, "sidecar.yaml"), version)
	}
	swap := func(version string) {
		must(t, os.Symlink("..v"+version, filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	swap("1")
	path := filepath.Join(dir, "sidecar.yaml")
	must(t, os.Symlink("..data/sidecar.yaml", path))
	w := watch(t, path, "1")
	swap("2")
	must(t, os.RemoveAll(filepath.Join(dir, "..v1")))
	w.expect("2")
	swap("3")
	w.expect("3")
}

func TestWhatChangedBeforeTheStartIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sidecar.yaml")
	write(t, path, "new")
	watch(t, path, "old").expect("new")
}

func TestTheSameContentIsNotToldAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sidecar.yaml")
	write(t, path, "1")
	w := watch(t, path, "1")
	write(t, path+".new", "1")
	must(t, os.Rename(path+".new", path))
	write(t, filepath.Join(filepath.Dir(path), "other"), "x")
	write(t, path, "2")
	w.expect("2") // and nothing before it
}

func TestAChangeThatNoEventToldIsFoundByPolling(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "target")
	write(t, elsewhere, "1")
	path := filepath.Join(t.TempDir(), "sidecar.yaml")
	must(t, os.Symlink(elsewhere, path))
	got := make(chan told, 1)
	w := NewWatcher(path, []byte("1"), func(text []byte, err error) { got <- told{string(text), err} })
	w.settle, w.poll = time.Millisecond, 10*time.Millisecond
	must(t, w.Start())
	defer w.Stop()
	write(t, elsewhere+".new", "2")
	must(t, os.Rename(elsewhere+".new", elsewhere))
	watched{t, path, got}.expect("2")
}

func TestAWatcherMayBeStartedAndStoppedTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sidecar.yaml")
	write(t, path, "1")
	w := NewWatcher(path, []byte("1"), func([]byte, error) {})
	w.Stop()
	must(t, w.Start())
	must(t, w.Start())
	w.Stop()
	w.Stop()
	must(t, w.Start())
	w.Stop()
	if err := NewWatcher("/nonexistent/x/y", nil, nil).Start(); err == nil {
		t.Error("a folder that is not there can be watched")
	}
}

func TestAChangeThatWasReadElsewhereIsNotReportedAndAnEarlierOneIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sidecar.yaml")
	write(t, path, "1")
	got := make(chan told, 16)
	w := NewWatcher(path, []byte("1"), func(text []byte, err error) { got <- told{string(text), err} })
	w.Read([]byte("2")) // as long as it was there
	must(t, w.Start())
	t.Cleanup(w.Stop)
	watched{t, path, got}.expect("1")
	w.Read([]byte("3"))
	write(t, path, "3")
	write(t, path, "4")
	watched{t, path, got}.expect("4") // and nothing before it
	w.Read(nil)
	write(t, path, "4")
	watched{t, path, got}.expect("4")
}
