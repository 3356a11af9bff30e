package testkit

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// HangingFolder is a folder on a file system that never answers, as one of a network that is away:
// a call on the folder waits until free is called, or the test ends. A process with a thread that
// waits so does not go away. asked is closed by the first call.
func HangingFolder(tb testing.TB) (folder string, asked <-chan struct{}, free func()) {
	tb.Helper()
	device, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		tb.Skip("no file system of our own can be mounted here: ", err)
	}
	free = sync.OnceFunc(func() { _ = syscall.Close(device) }) // who waits gets an error
	tb.Cleanup(free)
	at := tb.TempDir()
	if err := syscall.Mount("hangs", at, "fuse", 0,
		fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device)); err != nil {
		tb.Skip("no file system of our own can be mounted here: ", err)
	}
	tb.Cleanup(func() {
		if err := syscall.Unmount(at, syscall.MNT_DETACH); err != nil {
			tb.Error(err)
		}
	})
	request := make([]byte, 256<<10)
	if _, err = syscall.Read(device, request); err != nil { // FUSE_INIT, as linux/fuse.h has it
		tb.Fatal(err)
	}
	answer := binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, 16+24),
		binary.NativeEndian.Uint64(request[8:]))
	// the version, no flags, no background, as much as is written at once
	for _, field := range []uint32{7, 22, 0, 0, 0, 4096} {
		answer = binary.NativeEndian.AppendUint32(answer, field)
	}
	if _, err = syscall.Write(device, answer); err != nil {
		tb.Fatal(err)
	}
	heard := make(chan struct{})
	go func() {
		_, _ = syscall.Read(device, request)
		close(heard)
	}()
	return filepath.Join(at, "folder"), heard, free
}
