package predecessor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// localFileSystems are those whose locks are the kernel's own, and that one kernel has mounted at a
// time. On overlayfs the lock is in the file system of the upper directory, which cannot be a
// network's.
var localFileSystems = map[int64]string{
	unix.EXT4_SUPER_MAGIC:      "ext4",
	unix.XFS_SUPER_MAGIC:       "xfs",
	unix.BTRFS_SUPER_MAGIC:     "btrfs",
	unix.F2FS_SUPER_MAGIC:      "f2fs",
	unix.TMPFS_MAGIC:           "tmpfs",
	unix.OVERLAYFS_SUPER_MAGIC: "overlayfs",
	0x2fc12fc1:                 "zfs",
	0xca451a4e:                 "bcachefs",
}

// otherFileSystems are the names of some that are not trusted.
var otherFileSystems = map[int64]string{
	unix.NFS_SUPER_MAGIC:   "NFS",
	unix.SMB_SUPER_MAGIC:   "SMB",
	unix.SMB2_SUPER_MAGIC:  "SMB",
	unix.CIFS_SUPER_MAGIC:  "SMB",
	unix.V9FS_MAGIC:        "9p",
	unix.FUSE_SUPER_MAGIC:  "FUSE",
	unix.CEPH_SUPER_MAGIC:  "CephFS",
	unix.OCFS2_SUPER_MAGIC: "OCFS2",
	0x01161970:             "GFS2",
}

// fileSystemOf returns the name of the file system of a path, and whether its locks are this
// kernel's own.
func fileSystemOf(path string) (name string, local bool, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return "", false, fmt.Errorf("look at the file system of %s: %w", path, err)
	}
	name, local = nameOf(int64(s.Type)) //nolint:unconvert // it has another type elsewhere
	return name, local, nil
}

func nameOf(magic int64) (name string, local bool) {
	if name, local = localFileSystems[magic]; local {
		return name, true
	}
	if name, known := otherFileSystems[magic]; known {
		return name, false
	}
	return fmt.Sprintf("a file system of type %#x", magic), false
}

// bootID returns what tells this boot of this kernel from any other; see boot_id in random(4).
func bootID() (string, error) { return readBootID("/proc/sys/kernel/random/boot_id") }

// mounts is where the kernel lists what is mounted, see proc(5).
const mounts = "/proc/self/mountinfo"

// mountOf returns the type of the file system that a path is on, as the kernel's list says it, and
// whether it is none of those whose locks are trusted. It does not ask that file system: one of a
// network that is away does not answer, and a process that waits for it cannot be killed. A list
// that cannot be read says nothing.
func mountOf(path string) (kind string, foreign bool) {
	path, err := filepath.Abs(path)
	list, unread := os.ReadFile(mounts)
	if err != nil || unread != nil {
		return "", false
	}
	switch kind = mountIn(string(list), path); kind {
	case "", "overlay", "ext2", "ext3": // they have the numbers of others
		return kind, false
	}
	for _, name := range localFileSystems {
		if kind == name {
			return kind, false
		}
	}
	return kind, true
}

// mountIn returns the type of the file system of a path by a list of mounts; "" = it does not say.
func mountIn(list, path string) (kind string) {
	longest := -1
	for line := range strings.Lines(list) {
		before, after, _ := strings.Cut(line, " - ")
		fields, types := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(types) == 0 {
			continue
		}
		at := unescapeMount(fields[4])
		within := at == "/" || path == at || strings.HasPrefix(path, at+"/")
		if within && len(at) >= longest { // of two at one place, the later one is on top
			longest, kind = len(at), types[0]
		}
	}
	return kind
}

// unescapeMount returns a path as it is of which proc(5) has spaces, tabs, line feeds and
// backslashes as octal numbers.
func unescapeMount(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if n, err := strconv.ParseUint(path[min(i+1, len(path)):min(i+4, len(path))], 8, 8); path[i] == '\\' &&
			err == nil {
			b.WriteByte(byte(n))
			i += 3
			continue
		}
		b.WriteByte(path[i])
	}
	return b.String()
}
