package predecessor

import "testing"

// TestTheKindOfAFileSystemIsKnownWithoutAskingIt: one of a network that is away never answers, and
// nothing ends a process that waits for it.
func TestTheKindOfAFileSystemIsKnownWithoutAskingIt(t *testing.T) {
	const list = `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /data rw - nfs4 server:/export rw,addr=192.0.2.1
31 30 0:27 / /data/local\040disk rw,noatime - xfs /dev/vdb rw
32 22 0:28 / /twice rw - tmpfs none rw
33 22 0:29 / /twice rw master:2 propagate_from:3 - fuse.sshfs host: rw
`
	for path, want := range map[string]string{
		"/": "ext4", "/var/lib/hooklock": "ext4", "/data": "nfs4", "/data/hooklock": "nfs4", "/database": "ext4",
		"/data/local disk/hooklock": "xfs", "/twice/a": "fuse.sshfs",
	} {
		if kind := mountIn(list, path); kind != want {
			t.Errorf("%s is on %q, not on %q", path, kind, want)
		}
	}
	if kind := mountIn("", "/data"); kind != "" {
		t.Errorf("an empty list says %q", kind)
	}
	if kind, foreign := mountOf("/proc/self"); kind != "proc" || !foreign {
		t.Errorf("/proc is %q, and may be asked: %v", kind, !foreign)
	}
	if kind, foreign := mountOf(t.TempDir()); foreign {
		t.Errorf("%q may not be asked", kind)
	}
}
