package config

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestAFileWhoseReadingHangsDoesNotHoldUpTheEndOfTheWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sidecar.yaml")
	if err := os.WriteFile(path, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	watcher := NewWatcher(path, []byte("a"), func([]byte, error) {})
	if err := watcher.Start(); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(pipe, path); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for the reader
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
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
