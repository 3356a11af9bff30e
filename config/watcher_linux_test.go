package config

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// hang puts a pipe in the place of the file at path, and waits until somebody reads it. That reading goes on until the end of the test.
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
func TestWhoReadsTheFileAfterAllEndsAReadingThatHangs(t *testing.T) {
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

// hangingFolder is a folder on a file system that answers nobody, as one of a network that is away: whoever asks for the folder waits until the end of the test.
// asked gets somebody who does.
func hangingFolder(t *testing.T) (folder string, asked <-chan struct{}) {
	t.Helper()
	device, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("no file system of our own can be mounted here: ", err)
	}
	t.Cleanup(func() { _ = syscall.Close(device) }) // who waits gets an error
	at := t.TempDir()
	if err := syscall.Mount("hangs", at, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device)); err != nil {
		t.Skip("no file system of our own can be mounted here: ", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(at, syscall.MNT_DETACH)) })
	request := make([]byte, 256<<10)
	if _, err = syscall.Read(device, request); err != nil { // FUSE_INIT, as linux/fuse.h has it
		t.Fatal(err)
	}
	answer := binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, 16+24), binary.NativeEndian.Uint64(request[8:]))
	for _, field := range []uint32{7, 22, 0, 0, 0, 4096} { // the version, no flags, no background, as much as is written at once
		answer = binary.NativeEndian.AppendUint32(answer, field)
	}
	if _, err = syscall.Write(device, answer); err != nil {
		t.Fatal(err)
	}
	heard := make(chan struct{})
	go func() {
		_, _ = syscall.Read(device, request)
		close(heard)
	}()
	return filepath.Join(at, "folder"), heard
}

func TestAFolderThatHangsDoesNotHoldUpTheEndOfTheWatch(t *testing.T) {
	hanging, asked := hangingFolder(t)
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
