package predecessor

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is an etcd with a directory.
type rig struct {
	t    *testing.T
	etcd *etcdtest.Etcd
	o    *Options
}

func newRig(t *testing.T) *rig {
	t.Helper()
	e := etcdtest.Start(t)
	pool, err := link.OpenPool(&link.Target{Endpoints: []string{e.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	r := &rig{t: t, etcd: e}
	r.o = &Options{
		Dir: filepath.Join(t.TempDir(), Folder), Pool: pool, Layout: protocol.NewLayout("/hooklock"),
		Clock: link.SystemClock(),
		Log:   slog.New(slog.DiscardHandler),
	}
	return r
}

// session writes the key of a session, on a lease of an hour, with a queue entry on it.
func (r *rig) session(name string) (cluster uint64) {
	r.t.Helper()
	ctx := etcdtest.Within(r.t, etcdtest.Patience)
	granted, err := r.etcd.Client.Grant(ctx, 3600)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, key := range []string{r.key(name), "/hooklock/entry-of-" + name} {
		if _, err := r.etcd.Client.Put(ctx, key, "", clientv3.WithLease(granted.ID)); err != nil {
			r.t.Fatal(err)
		}
	}
	return granted.ClusterId
}

func (r *rig) key(name string) string { return r.o.Layout.Alive(protocol.SessionAlive(name)) }

func (r *rig) alive(name string) bool {
	r.t.Helper()
	session, err := r.etcd.Count(etcdtest.Within(r.t, etcdtest.Patience), r.key(name))
	if err != nil {
		r.t.Fatal(err)
	}
	entry, err := r.etcd.Count(etcdtest.Within(r.t, etcdtest.Patience), "/hooklock/entry-of-"+name)
	if err != nil || entry != session {
		r.t.Fatalf("%d keys of the session, %d on its lease: %v", session, entry, err)
	}
	return session > 0
}

// dead leaves the file of a process that had the session and died. change is made to the head.
func (r *rig) dead(cluster uint64, name string, change func(*head)) (path string) {
	r.t.Helper()
	d, err := openFolder(r.o.Dir)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := d.writeOwnFile(head{Cluster: cluster, Prefix: r.o.Layout.Root, Sessions: []string{name}}); err != nil {
		r.t.Fatal(err)
	}
	if change != nil {
		page := make([]byte, headSize)
		if _, err := d.own.ReadAt(page, 0); err != nil {
			r.t.Fatal(err)
		}
		h, err := decodeHead(page)
		if err != nil {
			r.t.Fatal(err)
		}
		change(h)
		if page, err = h.encode(); err != nil {
			r.t.Fatal(err)
		}
		if _, err := d.own.WriteAt(page, 0); err != nil {
			r.t.Fatal(err)
		}
	}
	path = d.ownPath()
	d.close(false)
	return path
}

// starts lets a process open the session "mine".
func (r *rig) starts() *Predecessors {
	r.t.Helper()
	p := New(r.o)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	r.t.Cleanup(func() { stop(); <-done; p.Close(true) })
	p.Opening(etcdtest.Within(r.t, etcdtest.Patience), r.session("mine"), "mine", "")
	return p
}

func TestTheSessionOfADeadProcessEndsWithAllThatIsOnItsLease(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path := r.dead(r.session("dead"), "dead", nil)
	r.starts()
	if r.alive("dead") || !r.alive("mine") {
		t.Errorf("dead: %v, mine: %v", r.alive("dead"), r.alive("mine"))
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("its file is still there: %v", err)
	}
}

// Each line is a reason why the file may not be that of a dead process of this etcd.
func TestAFileThatMayBeAnothersEndsNoSession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*head)
	}{
		{"of another machine, or from before a reboot", func(h *head) {
			h.Boot = "539aa1fe-0de3-4628-af28-ea30864b0000"
		}},
		{"a copy", func(h *head) { h.Inode++ }},
		{"a snapshot of the file system", func(h *head) { h.Device++ }},
		{"of another etcd", func(h *head) { h.Cluster++ }},
		{"of another prefix", func(h *head) { h.Prefix = "/other/v1/" }},
		{"of another release", func(h *head) { h.Version++ }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			path := r.dead(r.session("dead"), "dead", c.change)
			p := r.starts()
			if !r.alive("dead") {
				t.Error("its session was ended")
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("its file was not left to others: %v", err)
			}
			then := time.Now().Add(-2 * keepOthers)
			if err := os.Chtimes(path, then, then); err != nil {
				t.Fatal(err)
			}
			p.Opening(etcdtest.Within(t, etcdtest.Patience), 0, "mine", "")
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("after a day its file is still there: %v", err)
			}
		})
	}
}

// A process that lives may be slow, or frozen: its lock alone says that it lives.
func TestAFileThatIsLockedIsNotTouched(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	d, err := openFolder(r.o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close(true)
	if err := d.writeOwnFile(head{Cluster: r.session("living"), Prefix: r.o.Layout.Root,
		Sessions: []string{"living"}}); err != nil {
		t.Fatal(err)
	}
	r.starts()
	if !r.alive("living") {
		t.Error("its session was ended")
	}
}

// A session that is lost is followed by another, which adopts its locks: until it has, the file
// names both.
func TestTheFileNamesTheSessionThatIsOpeningAndTheOneBefore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.starts()
	ctx := etcdtest.Within(t, etcdtest.Patience)
	cluster := r.session("second")
	p.Opening(ctx, cluster, "failed", "mine")
	p.Opening(ctx, cluster, "second", "mine")
	page, err := os.ReadFile(p.folder.ownPath())
	if err != nil {
		t.Fatal(err)
	}
	h, err := decodeHead(page)
	if err != nil || len(h.Sessions) != 2 || h.Sessions[0] != "second" || h.Sessions[1] != "mine" {
		t.Errorf("%+v, %v", h, err)
	}
}

// A start does not wait for a disk that hangs, or for etcd.
func TestAnOpeningDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	p := New(&Options{}) // nothing runs
	ctx := etcdtest.Within(t, etcdtest.Patience)
	p.Opening(ctx, 1, "mine", "")
	if ctx.Err() != nil {
		t.Error("it waited for its caller")
	}
}

func TestADirectoryWhoseLocksAreNotTrustedIsNotUsed(t *testing.T) {
	t.Parallel()
	for magic, want := range map[int64]struct {
		name  string
		local bool
	}{
		unix.EXT4_SUPER_MAGIC: {"ext4", true}, unix.OVERLAYFS_SUPER_MAGIC: {"overlayfs", true},
		unix.TMPFS_MAGIC:     {"tmpfs", true},
		unix.NFS_SUPER_MAGIC: {"NFS", false}, unix.SMB2_SUPER_MAGIC: {"SMB", false}, unix.V9FS_MAGIC: {"9p", false},
		unix.FUSE_SUPER_MAGIC: {"FUSE", false},
		0x01161970:            {"GFS2", false}, 0x1234: {"a file system of type 0x1234", false},
	} {
		if name, local := nameOf(magic); name != want.name || local != want.local {
			t.Errorf("%#x is %s, trusted: %v", magic, name, local)
		}
	}
	if _, err := openFolder("/proc/self"); err == nil {
		t.Error("the locks of proc are trusted")
	}
	if _, err := Look("/proc/self/outcomes"); err == nil {
		t.Error("the locks of proc are trusted")
	}
	if name, err := Look(filepath.Join(t.TempDir(), "not", "there")); err != nil || name == "" {
		t.Errorf("%q: %v", name, err)
	}
}

// FuzzHead: what a file has may be anything.
func FuzzHead(f *testing.F) {
	page, err := (&head{Version: headVersion, Boot: "b", Sessions: []string{"s"}}).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(page)
	f.Add([]byte("0 \n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := decodeHead(b)
		if err != nil {
			return
		}
		again, err := h.encode()
		if err != nil {
			return
		}
		if same, err := decodeHead(again); err != nil || same.Boot != h.Boot || len(same.Sessions) != len(h.Sessions) {
			t.Errorf("%+v became %+v: %v", h, same, err)
		}
	})
}
