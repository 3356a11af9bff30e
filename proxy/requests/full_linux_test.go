package requests

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAFullDiskKeepsNothingAndLosesNothing(t *testing.T) {
	mount := t.TempDir()
	if err := unix.Mount("tmpfs", mount, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v; a full disk is not tested", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	d := openDir(t, filepath.Join(mount, "requests"))
	if err := d.Put(t.Context(), execution(1), []byte("first")); err != nil {
		t.Fatal(err)
	}
	for range 3 { // each leaves room for the next
		if err := d.Put(t.Context(), execution(2), make([]byte, 1<<20)); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := os.Lstat(filepath.Join(mount, "requests", string(execution(2))+unfinished)); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("the unfinished file: %v", err)
	}
	if b, err := d.Get(t.Context(), execution(1)); err != nil || string(b) != "first" {
		t.Errorf("got %q, %v", b, err)
	}
	if err := d.Put(t.Context(), execution(2), make([]byte, 64<<10)); err != nil {
		t.Errorf("what fits: %v", err)
	}
}
