package config

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// hang puts a pipe in the place of the file at path, and waits until somebody reads it. That
// reading goes on until the end of the test.
func hang(t *testing.T, path string) {
	t.Helper()
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	must(t, os.Rename(pipe, path))
	f, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for the reader
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
}

func TestAFileWhoseReadingHangsDoesNotHoldUpTheEndOfTheWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sidecar.yaml")
	write(t, path, "a")
	watcher := NewWatcher(path, []byte("a"), func([]byte, error) {})
	must(t, watcher.Start())
	hang(t, path)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		watcher.Stop()
	}()
	select {
	case <-stopped:
	case <-time.After(30 * time.Second):
		t.Fatal("the watch has not ended")
	}
}

// What it hung on may never end, as of a network file system that was given up and is mounted anew.
func TestALaterReadOfTheFileEndsOneThatHangs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sidecar.yaml")
	write(t, path, "a")
	changes := make(chan told, 16)
	watcher := NewWatcher(path, []byte("a"), func(text []byte, err error) { changes <- told{string(text), err} })
	must(t, watcher.Start())
	defer watcher.Stop()
	hang(t, path)
	must(t, os.Remove(path))
	write(t, path, "b")
	watcher.Read([]byte("b"))
	write(t, path, "c")
	watched{t, path, changes}.expect("c")
}

func TestAFolderThatHangsDoesNotHoldUpTheEndOfTheWatch(t *testing.T) {
	hanging, asked, _ := testkit.HangingFolder(t)
	folder := filepath.Join(t.TempDir(), "folder")
	must(t, os.Mkdir(folder+"-before", 0o700))
	must(t, os.Symlink(folder+"-before", folder))
	path := filepath.Join(folder, "sidecar.yaml")
	write(t, path, "a")
	watcher := NewWatcher(path, []byte("a"), func([]byte, error) {})
	watcher.poll, watcher.settle = time.Millisecond, 20*time.Millisecond
	must(t, watcher.Start())
	must(t, os.Symlink(hanging, folder+"-after"))
	must(t, os.Rename(folder+"-after", folder))
	<-asked
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		watcher.Stop()
	}()
	select {
	case <-stopped:
	case <-time.After(30 * time.Second):
		t.Fatal("the watch has not ended")
	}
}
