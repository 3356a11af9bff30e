package predecessor

import (
	"fmt"

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
